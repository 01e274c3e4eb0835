/* Threads that wait for all signals (sigwait, signalfd) in a process where nothing is interposed
 * would be told of ticks. Called by ticker.c. */
#ifndef LS_RECORD_TICK_TOLD_H
#define LS_RECORD_TICK_TOLD_H

#include "record/tick/state.h"

/* 1 when this thread would be, or may be: it blocks the tick's signal. One that only works between
 * short waits is met in one of the two sooner or later; each look takes some 20 us. The ticker's
 * thread. */
int ls_tick_would_be_told(const struct ls_ticker *t, struct ls_tick_thread *h);

#endif
