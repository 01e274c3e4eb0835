/* A debugger that holds the program stops it at each signal, and gdb, which has no name for that of
 * the tick, cannot go on: while there is one no tick is sent. Called by ticker.c. */
#ifndef LS_RECORD_TICK_TRACED_H
#define LS_RECORD_TICK_TRACED_H

#include "record/tick/state.h"

/* 1 while a debugger traces the program; looks again after LS_TICKER_IDLE_NS. The ticker's
 * thread. */
int ls_tick_is_traced(struct ls_ticker *t);

#endif
