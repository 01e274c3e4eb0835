/* What the parts of the in-process agent know of each other. interpose/preload.c (start, interposed functions) and inject/
 * (entry patches, file inspection) bring the agent in; vm/engine.c knows the VMs; handler/ runs in the tick's signal.
 * Nothing here is seen by the recorder. */
#ifndef LS_AGENT_H
#define LS_AGENT_H

#include <signal.h>
#include <stdint.h>
#include <sys/time.h>

#include "formats/wire/shm.h"

typedef struct lua_State lua_State;
struct ls_vm;

/* The agent's process-wide state. shm is NULL while nothing is recorded here: each entry point looks first. */
struct ls_agent {
        struct ls_shm *shm;             /* mapped in interpose/preload.c's constructor, never unmapped */
        size_t mapped;                  /* bytes of it: rings are mapped as threads need them */
        volatile uint64_t *generation;  /* on a page of its own that fork wipes (MADV_WIPEONFORK); 0 in a forked child */
        int pid;                        /* the recorded process */
        int attached;                   /* 1 = the agent came into a running process (attach/attach.c): nothing is interposed */
        _Atomic int leaving;            /* 1 = an attachment ends: calls of the program do nothing from now on */
        _Atomic int calls;              /* of the program that are at work in an attached process: its end waits for them */
};
extern struct ls_agent ls_agent;        /* interpose/process.c */

/* 1 when this process may write to the rings: recorded, and not a forked child. Whether the recorder is alive and wants
 * samples is in shm. Any thread, signal handlers too. */
static inline int ls_agent_live(void)
{
        return ls_agent.shm && *ls_agent.generation != 0 && *ls_agent.generation == ls_agent.shm->generation;
}

/* The original functions behind those that the agent interposes, found in the constructor (interpose/real.c). */
struct ls_real {
        int (*sigaction)(int, const struct sigaction *, struct sigaction *);
        int (*setitimer)(int, const struct itimerval *, struct itimerval *);
        int (*sigprocmask)(int, const sigset_t *, sigset_t *);
        /* interpose/preload.c adds what else it needs */
};
extern struct ls_real ls_real;

/* Lua's C API in this process, found with dlsym in the object that holds the VM; NULL members where not exported.
 * Complete when a VM is created. */
struct lua_Debug;
struct ls_lua_api {
#define LS_LUA(ret, name, args) ret (*name) args;
#include "libsample/vm/lua_api.def"
#undef LS_LUA
        const char *path;               /* file that holds lua_newstate */
        uintptr_t base;                 /* where it is loaded */
};
extern struct ls_lua_api ls_lua;

/* Engine (vm/engine.c), called from the patched entries in the VM's own thread, normal context: */

/* A VM was created and is returned to its host next. */
void ls_engine_vm_created(lua_State *L);
/* In a process that was attached to: a VM that was there before the agent, or one that a thread has just made, which may have
 * no ring yet. It is not read, since it may be gone again. Returns NULL, or why it is not sampled. */
const char *ls_engine_vm_adopt(lua_State *L);
/* lua_close is about to run. Returns the VM, NULL = it is not sampled. */
struct ls_vm *ls_engine_vm_closing(lua_State *L, uint32_t *ret_vm_id);
/* lua_close of that VM has returned. L is only compared. */
void ls_engine_vm_closed(lua_State *L, struct ls_vm *vm, uint32_t vm_id);
/* The program itself calls luaJIT_profile_start / _stop: these replace the calls. They use ls_lua's members
 * luaJIT_profile_start / _stop, which then must be the originals behind the patch (relocated entries). */
void ls_engine_app_profile_start(lua_State *L, const char *mode, void (*cb)(void *, lua_State *, int, int), void *data);
void ls_engine_app_profile_stop(lua_State *L);
/* LuaJIT's stop in a process that is no longer recorded, such as a forked child. */
void ls_engine_child_profile_stop(lua_State *L);
/* LuaJIT calls sigaction(SIGPROF) and setitimer(ITIMER_PROF) from within luaJIT_profile_start/_stop. While the engine
 * itself is in such a call this returns 1 and the interposed function must not reach the kernel: the engine has
 * taken the handler from act (may be NULL) and filled old. Any other time 0. */
int ls_engine_swallow_sigaction(int sig, const struct sigaction *act, struct sigaction *old);
int ls_engine_swallow_setitimer(int which, const struct itimerval *value, struct itimerval *old);
/* The process is about to exec in place: stop ticks so that none is pending in the new image; undo when exec fails.
 * Returns 0, or -1: the recorder does not answer, a tick may still come. */
int ls_engine_before_exec(void);
void ls_engine_exec_failed(void);
/* The process ends normally (destructor): send last names, disarm. */
void ls_engine_process_end(void);
/* The program has a signal stack that is too small for a tick: from now on ticks use the stack that runs. */
void ls_engine_leave_signal_stacks(void);
/* In the child after fork: no tick comes, nothing is written. */
void ls_engine_after_fork_child(void);
/* In that child: 1 when it has VMs that can be sampled on. */
int ls_engine_may_go_on(void);
/* A process that has just joined: what it has of its VMs, and of the runtime, is told anew, and ticks begin. */
void ls_engine_go_on(void);
/* Greatest id of a JIT trace so far. */
uint32_t ls_engine_jit_ids(void);

/* One sentence for the user into the ring of the process (NOTICE). Not in signal handlers. */
void ls_agent_notice(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
