/* The watcher: a process beside the recorder that watches the threads of the program from outside
 * and sends their wall time, and that of suspended coroutines. A thread that is blocked is never
 * signalled: that it is, the kernel tells in /proc; its stack is read from its memory by the code
 * that reads it in the program (libsample/handler). Started by record/watcher.c. */
#ifndef LS_RECORD_WATCH_OUTSIDE_H
#define LS_RECORD_WATCH_OUTSIDE_H

#include <sys/types.h>

#include "formats/wire/shm.h"

/* What the watcher trusts: made before the program runs. */
struct ls_outside {
        struct ls_shm *shm;             /* shared with the agent, which may write there what it
                                         * likes */
        uint32_t ring_size;             /* of the agent's first */
        char *own;                      /* a ring for each of the agent's, for what is found here */
        uint64_t stride;                /* from ring to ring, of both */
        uint32_t rings;                 /* of the agent */
        uint64_t interval_ns;
        pid_t pid;                      /* as it is known here; 0 = not yet, and it knows itself by
                                         * the same number */
        pid_t (*outer_id)(pid_t pid, pid_t inner);      /* the same for its threads */
        int threads;                    /* 1 = wall time of threads is wanted */
        struct ls_ring *coroutines;     /* for the time of suspended coroutines; NULL = it is not
                                         * wanted */
};

/* Watches until the recording or the program ends, or this process's parent does. The program need
 * not run yet: its pid is awaited in shm. Does not return. */
void __attribute__((noreturn)) ls_outside_watch(const struct ls_outside *o);

#endif
