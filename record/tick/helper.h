/* The helper timer, and the grid of ticks that we send. Called by ticker.c and perf.c. */
#ifndef LS_RECORD_TICK_HELPER_H
#define LS_RECORD_TICK_HELPER_H

#include "record/tick/state.h"

extern const struct ls_tick_source ls_tick_source_helper;

/* The grid is the same for all threads, and fixed when the first needs it: times that were
 * missed are left out, none moves. */
void ls_tick_grid_begin(struct ls_ticker *t);
/* Waits for the next one. Returns CLOCK_MONOTONIC; 0 = it is not yet time, but there may be a
 * request. */
uint64_t ls_tick_grid_wait(struct ls_ticker *t, uint32_t request);

#endif
