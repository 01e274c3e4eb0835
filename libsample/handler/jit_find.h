/* Traces that nobody told of. Signal handler. */
#ifndef LS_LIBSAMPLE_HANDLER_JIT_FIND_H
#define LS_LIBSAMPLE_HANDLER_JIT_FIND_H

#include "libsample/handler/guard.h"
#include "libsample/handler/vms.h"
#include "libsample/thread.h"

/* Adds the trace that is interrupted at ip to those that ls_jit_locate finds, when it is not
 * known yet. Signal handler. Returns 1; from outside, where nothing is added, 0 when
 * ls_jit_locate would find what had its number before. */
int ls_jit_find(const struct ls_vm *vm, struct ls_thread *t, struct ls_guard *guard,
                const char *global, uintptr_t ip);
/* The same, in normal context, for one that has called what has called the allocator, on this
 * thread: L runs it, and its call's return address is at sp or above. */
void ls_jit_find_caller(const struct ls_vm *vm, struct ls_thread *t, struct ls_guard *guard,
                        const char *global, const lua_State *L, uintptr_t sp);

#endif
