/* How the LuaJIT that is loaded beside the agent lays out its VMs: see probe_entry.c. */
#ifndef LS_LIBSAMPLE_START_PROBE_ENTRY_H
#define LS_LIBSAMPLE_START_PROBE_ENTRY_H

/* Writes a struct ls_probe_answer (vm/view.h) to fd. Returns 0 when it was written whole. Normal
 * context, one thread. */
int luasample_probe(int fd);

#endif
