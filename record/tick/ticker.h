/* Ticks for the program: follows what the agent asks for in the shared memory (armed and tid of
 * each ring, request) with a perf event for each thread or with signals of our own, from a
 * thread of the recorder. The cputime timer is the agent's. Called by the session and by doctor. */
#ifndef LS_RECORD_TICK_TICKER_H
#define LS_RECORD_TICK_TICKER_H

#include <sys/types.h>

#include "record/process/memory.h"
#include "record/tick/state.h"

/* Starts the thread. timer: LS_TIMER_PERF or LS_TIMER_HELPER; when perf fails at run time the
 * ticker goes on with helper. full_fd: an eventfd that it writes to when the agent says that a
 * ring fills, -1 = none. Returns 0 or -errno. */
int ls_ticker_start(const struct ls_memory *m, pid_t pid, enum ls_timer timer, uint64_t interval_ns,
                    int full_fd, struct ls_ticker **ret);
/* Ends the thread: no tick comes after it returns. May be called again. Both take NULL. */
void ls_ticker_stop(struct ls_ticker *t);
void ls_ticker_free(struct ls_ticker *t);
/* One turn of its thread: brings each thread of the program to what the agent wants. Returns 1
 * when some could not be armed: to be tried again. Called by that thread, and by tests. */
int ls_ticker_follow(struct ls_ticker *t);
/* The timer in use now. */
enum ls_timer ls_ticker_timer(const struct ls_ticker *t);
const struct ls_ticker_totals *ls_ticker_totals(const struct ls_ticker *t);

#endif
