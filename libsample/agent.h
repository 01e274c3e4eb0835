/* What the parts of the in-process agent know of each other. start/preload.c (start, interposed
 * functions) and inject/ (entry patches, file inspection) bring the agent in; vm/vms.c knows the
 * VMs; handler/ runs in the tick's signal. Nothing here is seen by the recorder. */
#ifndef LS_AGENT_H
#define LS_AGENT_H

#include <signal.h>
#include <stdint.h>
#include <sys/time.h>

#include "formats/wire/shm.h"

typedef struct lua_State lua_State;
struct ls_vm;

/* The agent's process-wide state. shm is NULL while nothing is recorded here: each entry point
 * looks first. */
struct ls_agent {
        struct ls_shm *shm;             /* mapped in start/preload.c's constructor, never
                                         * unmapped */
        size_t mapped;                  /* bytes of it: rings are mapped as threads need them */
        volatile uint64_t *generation;  /* on a page of its own that fork wipes (MADV_WIPEONFORK); 0
                                         * in a forked child */
        int pid;                        /* the recorded process */
        int attached;                   /* 1 = the agent came into a running process
                                         * (start/attach.c): nothing is interposed */
        _Atomic int leaving;            /* 1 = an attachment ends: calls of the program do nothing
                                         * from now on */
        _Atomic int calls;              /* of the program that are at work in an attached process:
                                         * its end waits for them */
};
extern struct ls_agent ls_agent;        /* interpose/process.c */

/* 1 when this process may write to the rings: recorded, and not a forked child. Whether the
 * recorder is alive and wants samples is in shm. Any thread, signal handlers too. */
static inline int ls_agent_live(void)
{
        return ls_agent.shm && *ls_agent.generation != 0 &&
               *ls_agent.generation == ls_agent.shm->generation;
}

/* The original functions behind those that the agent interposes, found in the constructor
 * (libc/real.c). */
struct ls_real {
        int (*sigaction)(int, const struct sigaction *, struct sigaction *);
        int (*setitimer)(int, const struct itimerval *, struct itimerval *);
        int (*sigprocmask)(int, const sigset_t *, sigset_t *);
        /* start/preload.c adds what else it needs */
};
extern struct ls_real ls_real;

/* Lua's C API in this process, found with dlsym in the object that holds the VM; NULL members where
 * not exported. Complete when a VM is created. */
struct lua_Debug;
struct ls_lua_api {
#define LS_LUA(ret, name, args) ret (*name) args;
#include "libsample/lua_api.def"
#undef LS_LUA
        const char *path;               /* file that holds lua_newstate */
        uintptr_t base;                 /* where it is loaded */
};
extern struct ls_lua_api ls_lua;

#endif
