/* The helper timer: a thread of the recorder that wakes once an interval and, if the program's thread runs, sends it
 * the tick's signal. */
#include "record/ticker_private.h"

#include <sys/prctl.h>
#include <time.h>

static int helper_arm(struct ls_ticker *t, pid_t tid)
{
        int err = ls_tick_look_open(t, tid);

        if (err < 0)
                return err;
        t->next_ns = ls_clock_ns(CLOCK_MONOTONIC) + t->interval_ns;
        /* Else the kernel may make us late by 50 us. */
        prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0);
        return 0;
}

/* The grid of ticks is fixed at arm: times that were missed are left out, none moves. Returns the time. */
static uint64_t sleep_to_next(struct ls_ticker *t)
{
        struct timespec at = { (time_t)(t->next_ns / 1000000000u), (long)(t->next_ns % 1000000000u) };
        uint64_t now;

        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        now = ls_clock_ns(CLOCK_MONOTONIC);
        t->next_ns += t->interval_ns;
        if (t->next_ns <= now)
                t->next_ns += (now - t->next_ns) / t->interval_ns * t->interval_ns + t->interval_ns;
        return now;
}

static void helper_wait(struct ls_ticker *t, uint32_t request)
{
        uint64_t now;

        /* Do not sleep through a request. */
        if (t->interval_ns > LS_TICKER_IDLE_NS && t->next_ns > ls_clock_ns(CLOCK_MONOTONIC) + LS_TICKER_IDLE_NS) {
                ls_ticker_sleep(t, request, LS_TICKER_IDLE_NS);
                return;
        }
        now = sleep_to_next(t);
        if (atomic_load(&t->shm->request) != request)
                return;
        ls_tick_try(t, now);
}

const struct ls_tick_source ls_tick_source_helper = {
        .name = "helper",
        .arm = helper_arm,
        .disarm = ls_tick_look_close,
        .wait = helper_wait,
};
