/* The helper timer: a thread of the recorder that wakes once an interval and sends the tick's
 * signal to each thread of the program that runs at that moment. */
#include "record/tick/helper.h"

#include "record/tick/request.h"
#include "record/tick/signal.h"

#include <sys/prctl.h>
#include <time.h>

void ls_tick_grid_begin(struct ls_ticker *t)
{
        if (!t->next_ns)
                t->next_ns = ls_clock_ns(CLOCK_MONOTONIC) + t->interval_ns;
        /* Else the kernel may make us late by 50 us. */
        prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0);
}

/* Within its interval each tick comes at another time: what the program does in step with it, or
 * with turns of the processor that our own thread ends, would always be met at the same place. */
static void shift(struct ls_ticker *t)
{
        t->random ^= t->random << 13;   /* Marsaglia's xorshift; never 0 */
        t->random ^= t->random >> 7;
        t->random ^= t->random << 17;
        t->shift_ns = t->random % (t->interval_ns - t->interval_ns / 4);
}

uint64_t ls_tick_grid_wait(struct ls_ticker *t, uint32_t request)
{
        uint64_t now;

        ls_ticker_sleep_until(t, request, t->next_ns + t->shift_ns);
        now = ls_clock_ns(CLOCK_MONOTONIC);
        if (now < t->next_ns + t->shift_ns)
                return 0;               /* a request, or a signal */
        shift(t);
        t->next_ns += t->interval_ns;
        if (t->next_ns <= now)
                t->next_ns += (now - t->next_ns) / t->interval_ns * t->interval_ns + t->interval_ns;
        return now;
}

static int helper_arm(struct ls_ticker *t, struct ls_tick_thread *h)
{
        int err = ls_tick_look_open(h);

        if (err == 0)
                ls_tick_grid_begin(t);
        return err;
}

static void helper_wait(struct ls_ticker *t, uint32_t request)
{
        uint64_t now = ls_tick_grid_wait(t, request);

        for (unsigned i = 0; now && i < t->used; i++)
                if (t->threads[i].armed)
                        ls_tick_try(&t->threads[i], now);
}

const struct ls_tick_source ls_tick_source_helper = {
        .name = "helper",
        .arm = helper_arm,
        .disarm = ls_tick_look_close,
        .wait = helper_wait,
};
