/* See clock.h. */

#include "libsample/handler/clock.h"

#include <time.h>

LS_HANDLER static uint64_t clock_ns(clockid_t id)
{
        struct timespec t;

        clock_gettime(id, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

LS_HANDLER uint64_t ls_now_ns(void)
{
        return clock_ns(CLOCK_MONOTONIC);
}

LS_HANDLER uint64_t ls_thread_cpu_ns(void)
{
        return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Longer than the agent's work takes: the thread was off the CPU meanwhile. */
#define LONG_NS 20000

LS_HANDLER uint64_t ls_own_ns(uint64_t since_ns, uint64_t cpu_ns)
{
        uint64_t passed = ls_now_ns() - since_ns, cpu;

        if (passed < LONG_NS)
                return passed;
        cpu = ls_thread_cpu_ns() - cpu_ns;
        return cpu < passed ? cpu : passed;
}
