/* What the agent asks of a ticker: see request.h. */
#include "record/tick/request.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void ls_ticker_sleep_until(struct ls_ticker *t, uint32_t request, uint64_t until_ns)
{
        struct timespec at = { (time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u) };

        if (!atomic_load(&t->stop))
                syscall(SYS_futex, &t->shm->request, FUTEX_WAIT_BITSET, request, &at, NULL,
                        FUTEX_BITSET_MATCH_ANY);
}

void ls_ticker_sleep(struct ls_ticker *t, uint32_t request, uint64_t ns)
{
        ls_ticker_sleep_until(t, request, ls_clock_ns(CLOCK_MONOTONIC) + ns);
}

pid_t ls_tick_wanted(const struct ls_ring *ring, uint32_t *ret_claim)
{
        *ret_claim = atomic_load(&ring->claim);
        if (atomic_load(&ring->armed) && !atomic_load(&ring->closing))
                return (pid_t)atomic_load(&ring->tid);
        return 0;
}

int ls_tick_is_wanted(const struct ls_tick_thread *h)
{
        uint32_t claim;

        return ls_tick_wanted(h->ring, &claim) == h->inner_tid && claim == h->claim;
}
