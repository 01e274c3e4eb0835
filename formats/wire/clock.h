/* Clocks in nanoseconds. Used by the agent, in its signal handler too, and by all commands. */
#ifndef LS_WIRE_CLOCK_H
#define LS_WIRE_CLOCK_H

#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

static inline __attribute__((always_inline)) uint64_t ls_timespec_ns(const struct timespec *t)
{
        return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

/* 0 when the clock cannot be read: that of a thread which has ended. */
static inline __attribute__((always_inline)) uint64_t ls_clock_ns(clockid_t id)
{
        struct timespec t;

        return clock_gettime(id, &t) < 0 ? 0 : ls_timespec_ns(&t);
}

/* CPU time, of the process and in the kernel. */
static inline uint64_t ls_rusage_ns(const struct rusage *r)
{
        return (uint64_t)(r->ru_utime.tv_sec + r->ru_stime.tv_sec) * 1000000000u +
               (uint64_t)(r->ru_utime.tv_usec + r->ru_stime.tv_usec) * 1000u;
}

#endif
