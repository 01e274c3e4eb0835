/* See clock.h. */

#include "libsample/handler/clock.h"

#include "formats/wire/clock.h"

LS_HANDLER uint64_t ls_now_ns(void)
{
        return ls_clock_ns(CLOCK_MONOTONIC);
}

LS_HANDLER uint64_t ls_thread_cpu_ns(void)
{
        return ls_clock_ns(CLOCK_THREAD_CPUTIME_ID);
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
