/* The page through which children of a recorded program find memory of their own. The recorder
 * keeps some memories ready and offers each on a seat here; a process that is to be recorded takes
 * one by compare-and-exchange, opens it as /proc/RECORDER/fd/FD, and rings the bell. It need not
 * wait for the recorder unless all seats are taken at the moment, and no descriptor stays open in
 * it. Read and written by both sides; neither trusts it. */
#ifndef LS_WIRE_REGISTRY_H
#define LS_WIRE_REGISTRY_H

#include <stdatomic.h>
#include <stdint.h>

#define LS_REGISTRY_MAGIC   0x5253534cu /* "LSSR" */
#define LS_REGISTRY_VERSION 2u
#define LS_REGISTRY_SIZE    4096u
#define LS_SEATS            32u
#define LS_COMERS           128u

/* taken: who has the seat. Only the recorder makes an empty seat ready, and a taken one empty. */
#define LS_SEAT_EMPTY UINT64_C(0)
#define LS_SEAT_READY (UINT64_C(1) << 32)       /* else the pid of the process that has taken it */

struct ls_seat {
        _Atomic uint64_t taken;
        uint64_t generation;            /* of the memory (struct ls_shm) */
        uint32_t fd;                    /* the recorder's descriptor of it */
        uint32_t pad;
};

struct ls_registry {
        /* set by the recorder before the program starts */
        uint32_t magic;
        uint32_t version;
        uint64_t generation;            /* random, not 0 */
        uint32_t recorder_pid;
        uint32_t nseats;
        /* recorder writes */
        _Atomic uint64_t heartbeat_ns;  /* CLOCK_MONOTONIC, at least every 500 ms */
        _Atomic uint32_t open;          /* 1 = an empty seat will be ready again soon; 0 = no more
                                         * processes are taken */
        /* agents write */
        _Atomic uint32_t bell;          /* counts seats that were taken; futex (shared) that the
                                         * recorder waits on */
        _Atomic uint32_t turned_away;   /* processes that found no seat */
        _Atomic int32_t coming;         /* forks and execs on their way: children that may yet take
                                         * a seat. One that fails, or whose new image lets no agent
                                         * in, may leave it too high */
        struct ls_seat seats[LS_SEATS];
        /* agents write: processes, new by fork or exec, that have no seat and may yet take one.
         * CLOCK_MONOTONIC in ms << 32 | pid, as it sees itself; 0 = free. When there are more the
         * oldest gives way */
        _Atomic uint64_t comers[LS_COMERS];
};
_Static_assert(sizeof(struct ls_registry) <= LS_REGISTRY_SIZE, "the registry is one page");

#endif
