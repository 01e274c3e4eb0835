/* Tick signals that the recorder itself sends, to threads that run. Called by helper.c and
 * perf.c, and by the session for what works here. */
#ifndef LS_RECORD_TICK_SIGNAL_H
#define LS_RECORD_TICK_SIGNAL_H

#include "record/tick/state.h"

/* Can this process see whether another one (pid) runs, as the helper timer does? 0 or -errno. */
int ls_ticker_helper_probe(pid_t pid);

/* Begins and ends looking at a thread. */
int ls_tick_look_open(struct ls_tick_thread *h);
void ls_tick_look_close(struct ls_tick_thread *h);
/* The thread's CPU time in ns, as of the kernel's last tick, and how often it got a processor; 0
 * = not known. */
uint64_t ls_tick_clock(const struct ls_tick_thread *h, uint64_t *ret_times);
/* Sends a tick if the thread runs and none is on its way. Returns 1 when it was sent. */
int ls_tick_try(struct ls_tick_thread *h, uint64_t now);
/* Signals that the thread has handled. */
uint32_t ls_tick_handled(const struct ls_tick_thread *h);

#endif
