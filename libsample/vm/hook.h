/* One sample of the hook engine. */
#ifndef LS_LIBSAMPLE_VM_HOOK_H
#define LS_LIBSAMPLE_VM_HOOK_H

typedef struct lua_State lua_State;

/* The callback for luaJIT_profile_start: one sample. */
void ls_hook(void *data, lua_State *L, int samples, int vmstate);

#endif
