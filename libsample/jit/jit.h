/* The JIT traces of a VM: watched through LuaJIT's own events "record" and "trace", so that a place
 * in machine code can be turned into functions and lines later, and found again by the tick
 * handler. The method is told in docs/jit.md. probe.c finds the places
 * of what is read (in the throw-away VM), events.c watches a VM, handler/jit_locate.c looks a place
 * up. */
#ifndef LS_LIBSAMPLE_JIT_JIT_H
#define LS_LIBSAMPLE_JIT_JIT_H

#include "libsample/handler/vms.h"

/* Finds the JIT state and the layout of its traces in the probe's VM (vm/probe.c; L has all
 * libraries open), and the names of IR instructions. Protected by the caller: an error raised here
 * only means that there is no map. */
void ls_jit_probe(lua_State *L);
/* Where jit_base is in global_State, as it was seen to change with compiled code; 0 = it was not
 * seen. */
unsigned ls_jit_base_seen(void);
/* Where the array of traces is in global_State; 0 = it was not found. */
unsigned ls_jit_traces_seen(void);
/* NULL = verified; else why no map can be made, for people. */
const char *ls_jit_why_not(void);

/* Watches the VM of L, as vm->jit_leaf says; sets vm->jit. Called right after the VM was created,
 * before its libraries are open, on its thread, between ls_thread_enter and _leave. Does nothing
 * when the probe failed. Raises no error and leaves the Lua stack as it was. */
void ls_jit_open(struct ls_vm *vm, lua_State *L);
/* What runs in place of jit.attach. */
int ls_jit_on_attach(lua_State *L);
/* The VM is about to be closed. */
void ls_jit_close(struct ls_vm *vm);
/* In a forked child: no lock is held. */
void ls_jit_after_fork(void);
/* Watches a VM that runs already: nothing is called in it, and its traces are found as they run
 * (handler/jit_find.c). Sets vm->jit, where a map can be made and is wanted. Normal context, any
 * thread; before the handler finds the VM. */
void ls_jit_open_running(struct ls_vm *vm, const char *global);

#endif
