/* What the probe of exact counting and the VMs share: the patched function of LuaJIT's that
 * rewrites dispatch tables. */
#ifndef LS_LIBSAMPLE_EXACT_UPDATE_H
#define LS_LIBSAMPLE_EXACT_UPDATE_H

/* The tables of this VM were rewritten. Also in a signal handler. */
void ls_exact_updated(const char *global);

#endif
