/* The workers that read a process's memory: what they are told when they start. Used by watcher.c
 * and stack.c. */
#ifndef LS_RECORD_WORKER_OUTSIDE_H
#define LS_RECORD_WORKER_OUTSIDE_H

#include <stdint.h>

/* Of the role watch. Its descriptors: the broker's socket, the memory that is shared with the
 * agent, the watcher's rings. */
struct ls_watch_start {
        uint64_t shm_size, own_size;    /* bytes of the two */
        uint64_t stride, interval_ns;   /* these and the rest: as in struct ls_outside */
        uint32_t ring_size, rings;
        int32_t pid;
        uint8_t threads, coroutines;
};

/* Of the role look. Its descriptors: the broker's socket, a file that holds struct ls_now, the
 * memory of the rings, the pipes go and done, the probe's answer, and with is_core the core file.
 * */
struct ls_look_start {
        uint64_t shm_size;
        uint64_t search_ns;             /* of the stop, for the search for coroutines */
        uint64_t look_ns;               /* for all stacks */
        int32_t is_core;
        int32_t heap;                   /* 1 = a snapshot of all objects, in place of the stacks:
                                         * the next descriptor takes it */
};

/* The roles: see main.c. */
int ls_worker_watch(int argc, const char **argv);
int ls_worker_look(int argc, const char **argv);

#endif
