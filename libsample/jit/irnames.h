/* Names of IR instructions. */
#ifndef LS_LIBSAMPLE_JIT_IRNAMES_H
#define LS_LIBSAMPLE_JIT_IRNAMES_H

typedef struct lua_State lua_State;

/* Finds the names of IR instructions; trace: one that is a loop. Returns NULL, or why there are
 * none. */
const char *ls_jit_find_irnames(lua_State *L, const char *trace);

#endif
