/* Where a thread is inside compiled code. Signal handler; what is read is guarded. */
#ifndef LS_LIBSAMPLE_HANDLER_JIT_LOCATE_H
#define LS_LIBSAMPLE_HANDLER_JIT_LOCATE_H

#include "libsample/handler/guard.h"
#include "libsample/handler/jit_traces.h"

/* What ls_jit_locate found. */
#define LS_JIT_NOWHERE    0             /* compiled code does not run, or nothing is known */
#define LS_JIT_IN_TRACE 1 /* ip is in the machine code of a trace: no other code of the VM runs */
#define LS_JIT_CALLED_OUT                                                                          \
        2 /* compiled code has called what runs: the collector, a helper, an FFI function */

/* Where the thread is inside compiled code of vm, whose running lua_State is L: ip and sp are the
 * registers at the tick. Finds the trace that ip is in; else, when compiled code has called out,
 * the trace that the return address on the C stack belongs to. Gives the trace's id and the
 * offset in its code (when it has called out, of the calling instruction's last byte;
 * LS_JIT_NO_OFFSET when only the trace is known). Signal handler; trusts no pointer that the VM
 * may be changing. */
int ls_jit_locate(const struct ls_vm *vm, const lua_State *L, uintptr_t ip, uintptr_t sp,
                  uint32_t *ret_jit_id, uint32_t *ret_offset);

/* Address of the C function that trace jit_id of the VM, the one that runs, has called by the
 * instruction whose last byte is at offset, as ls_jit_locate gave them. 0 = it is no call through
 * the FFI, or what it calls is not known. base: of the running Lua function, as the VM has it for
 * compiled code. */
uintptr_t ls_jit_callee(const struct ls_jit *jit, struct ls_guard *guard, const char *global,
                        const uint64_t *base, uint32_t jit_id, uint32_t offset);

/* 1 when ip is in the machine code of the trace that the VM names as the one that runs. For a VM
 * whose traces are not watched, as in a process that was attached to. Signal handler; what it
 * reads is guarded. */
int ls_jit_in_running(struct ls_guard *guard, const char *global, uintptr_t ip);

/* The trace of this number in the VM, NULL = none, or it cannot be read. */
const char *ls_jit_trace_of(struct ls_guard *g, const char *global, uint32_t number);
/* 1 when ip is in its machine code. */
int ls_jit_is_at(const char *trace, uintptr_t ip);
/* 1 when the table has it as it is now. */
int ls_jit_is_known(const struct ls_jit *jit, const char *trace);

#endif
