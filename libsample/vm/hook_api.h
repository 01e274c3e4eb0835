/* One sample of the hook engine where stacks cannot be read raw. */
#ifndef LS_LIBSAMPLE_VM_HOOK_API_H
#define LS_LIBSAMPLE_VM_HOOK_API_H

#include "libsample/handler/vms.h"
#include "libsample/thread.h"

/* As ls_hook. */
void ls_hook_api(struct ls_thread *t, const struct ls_vm *vm, lua_State *L, int vmstate);

#endif
