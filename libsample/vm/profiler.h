/* LuaJIT's own profiler, of which a process has one: ours for the hook engine, or the program's.
 * Normal context. */
#ifndef LS_LIBSAMPLE_VM_PROFILER_H
#define LS_LIBSAMPLE_VM_PROFILER_H

#include <signal.h>
#include <sys/time.h>

#include "libsample/handler/vms.h"

/* Starts it for this VM. Returns NULL, or why it cannot be had. */
const char *ls_profiler_start(struct ls_vm *vm);
/* The VM is about to be closed, or the process ends: ours stops. */
void ls_profiler_stop(const struct ls_vm *vm);
/* 1 while the program's own profiler has it. */
int ls_profiler_is_taken(void);
/* The recording ends while the program's profiler has it: what could not be sampled is counted. */
void ls_profiler_account(void);
/* The VM in which ours ran is about to be closed while the program's runs, or the program's VM
 * is. */
void ls_profiler_vm_closing(lua_State *L, const struct ls_vm *vm);
void ls_profiler_vm_closed(lua_State *L);
/* Last words on it. */
void ls_profiler_last_words(void);

/* The program itself calls luaJIT_profile_start / _stop: these replace the calls. They use
 * ls_lua's members luaJIT_profile_start / _stop, which then must be the originals behind the
 * patch (relocated entries). */
void ls_engine_app_profile_start(lua_State *L, const char *mode,
                                 void (*cb)(void *, lua_State *, int, int), void *data);
void ls_engine_app_profile_stop(lua_State *L);
/* LuaJIT's stop in a process that is no longer recorded, such as a forked child. */
void ls_engine_child_profile_stop(lua_State *L);
/* LuaJIT calls sigaction(SIGPROF) and setitimer(ITIMER_PROF) from within
 * luaJIT_profile_start/_stop. While the engine itself is in such a call this returns 1 and the
 * interposed function must not reach the kernel: the engine has taken the handler from act (may
 * be NULL) and filled old. Any other time 0. */
int ls_engine_swallow_sigaction(int sig, const struct sigaction *act, struct sigaction *old);
int ls_engine_swallow_setitimer(int which, const struct itimerval *value, struct itimerval *old);

#endif
