/* The JIT traces of a VM: watched through LuaJIT's own events "record" and "trace", so that a place in machine code can be
 * turned into functions and lines later, and found again by the tick handler. The method is told in DESIGN.md ("The leaf
 * inside JIT code"). probe.c finds the places of what is read (in the throw-away VM), events.c watches a VM,
 * handler/jit_locate.c looks a place up. */
#ifndef LS_LIBSAMPLE_JIT_JIT_H
#define LS_LIBSAMPLE_JIT_JIT_H

#include "libsample/handler/guard.h"
#include "libsample/thread.h"
#include "libsample/vm/vm.h"

/* Finds the JIT state and the layout of its traces in the probe's VM (vm/probe.c; L has all libraries open), and the
 * names of IR instructions. Protected by the caller: an error raised here only means that there is no map. */
void ls_jit_probe(lua_State *L);
/* Where jit_base is in global_State, as it was seen to change with compiled code; 0 = it was not seen. */
unsigned ls_jit_base_seen(void);
/* Where the array of traces is in global_State; 0 = it was not found. */
unsigned ls_jit_traces_seen(void);
/* NULL = verified; else why no map can be made, for people. */
const char *ls_jit_why_not(void);

/* Watches the VM of L, as vm->jit_leaf says; sets vm->jit. Called right after the VM was created, before its libraries
 * are open, on its thread, between ls_thread_enter and _leave. Does nothing when the probe failed. Raises no error and
 * leaves the Lua stack as it was. */
void ls_jit_open(struct ls_vm *vm, lua_State *L);
/* The VM is about to be closed. */
void ls_jit_close(struct ls_vm *vm);

/* In a forked child: no lock is held. */
void ls_jit_after_fork(void);
/* Greatest id of a trace so far. */
uint32_t ls_jit_last_id(void);

/* Addresses of our functions that LuaJIT calls while it compiles: never frames of the program's. */
extern uintptr_t ls_jit_functions[2];

/* What ls_jit_locate found. */
#define LS_JIT_NOWHERE    0             /* compiled code does not run, or nothing is known */
#define LS_JIT_IN_TRACE   1             /* ip is in the machine code of a trace: no other code of the VM runs */
#define LS_JIT_CALLED_OUT 2             /* compiled code has called what runs: the collector, a helper, an FFI function */

/* Where the thread is inside compiled code of vm, whose running lua_State is L: ip and sp are the registers at the tick.
 * Finds the trace that ip is in; else, when compiled code has called out, the trace that the return address on the C stack
 * belongs to. Gives the trace's id and the offset in its code (when it has called out, of the calling instruction's last
 * byte; LS_JIT_NO_OFFSET when only the trace is known). Signal handler; trusts no pointer that the VM may be changing. */
int ls_jit_locate(const struct ls_vm *vm, const lua_State *L, uintptr_t ip, uintptr_t sp, uint32_t *ret_jit_id,
                  uint32_t *ret_offset);

/* 1 when ip is in the machine code of the trace that the VM names as the one that runs. For a VM whose traces are not
 * watched, as in a process that was attached to. Signal handler; what it reads is guarded. */
int ls_jit_in_running(struct ls_guard *guard, const char *global, uintptr_t ip);

/* Watches a VM that runs already: nothing is called in it, and its traces are found as they run (handler/jit_find.c). Sets
 * vm->jit, where a map can be made and is wanted. Normal context, any thread; before the handler finds the VM. */
void ls_jit_open_running(struct ls_vm *vm, const char *global);
/* Adds the trace that is interrupted at ip to those that ls_jit_locate finds, when it is not known yet. Signal handler. Returns
 * 1; from outside, where nothing is added, 0 when ls_jit_locate would find what had its number before. */
int ls_jit_find(const struct ls_vm *vm, struct ls_thread *t, struct ls_guard *guard, const char *global, uintptr_t ip);

#endif
