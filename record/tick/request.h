/* What the agent asks of a ticker: which thread of a ring is to be ticked, and when that has
 * changed. Called by ticker.c and its sources. */
#ifndef LS_RECORD_TICK_REQUEST_H
#define LS_RECORD_TICK_REQUEST_H

#include "record/tick/state.h"

/* The thread that the agent wants ticked in a ring, as it knows itself, 0 = none; the ring's
 * claim with it. */
pid_t ls_tick_wanted(const struct ls_ring *ring, uint32_t *ret_claim);
/* 1 while the agent wants ticks on the thread that was armed. */
int ls_tick_is_wanted(const struct ls_tick_thread *h);
/* Sleep until request changes, the ticker stops, or ns have passed; or the clock is at until_ns. */
void ls_ticker_sleep(struct ls_ticker *t, uint32_t request, uint64_t ns);
void ls_ticker_sleep_until(struct ls_ticker *t, uint32_t request, uint64_t until_ns);

#endif
