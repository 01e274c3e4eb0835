/* Ticks for the program: follows what the agent asks for in the shared memory (armed and tid of each ring, request) with
 * a perf event for each thread or with signals of our own, from a thread of the recorder. The cputime timer is the
 * agent's. Called by the session and by doctor. */
#ifndef LS_RECORD_TICK_TICKER_H
#define LS_RECORD_TICK_TICKER_H

#include <stdatomic.h>
#include <sys/types.h>

#include "record/memory.h"

struct ls_ticker;

struct ls_tick_thread;

/* How one timer works. All in the ticker's thread. */
struct ls_tick_source {
        const char *name;
        /* Ticks begin on this thread of the program. Returns 0 or -errno. */
        int (*arm)(struct ls_ticker *t, struct ls_tick_thread *h);
        /* No tick may come to it after it returns. */
        void (*disarm)(struct ls_tick_thread *h);
        /* Waits for a change of request, or ticks meanwhile. Some thread is armed. */
        void (*wait)(struct ls_ticker *t, uint32_t request);
};

struct ls_ticker_totals {
        _Atomic uint64_t sent;          /* helper: signals sent */
        _Atomic uint64_t skipped;       /* helper: times that the thread was not running */
        _Atomic uint64_t failed;        /* signals that could not be sent */
};

/* Can this process open a perf event on another one (pid), as the perf timer does? 0 or -errno. */
int ls_ticker_perf_probe(pid_t pid);
/* 1 in a virtual machine, where each timer that the kernel sets costs some us. */
int ls_ticker_is_virtual(void);
/* Can it see whether another process runs, as the helper timer does? 0 or -errno. */
int ls_ticker_helper_probe(pid_t pid);

/* Starts the thread. timer: LS_TIMER_PERF or LS_TIMER_HELPER; when perf fails at run time the ticker goes on with
 * helper. full_fd: an eventfd that it writes to when the agent says that a ring fills, -1 = none. Returns 0 or -errno. */
int ls_ticker_start(const struct ls_memory *m, pid_t pid, enum ls_timer timer, uint64_t interval_ns, int full_fd,
                    struct ls_ticker **ret);
/* Ends the thread: no tick comes after it returns. May be called again. Both take NULL. */
void ls_ticker_stop(struct ls_ticker *t);
void ls_ticker_free(struct ls_ticker *t);
/* The timer in use now. */
enum ls_timer ls_ticker_timer(const struct ls_ticker *t);
const struct ls_ticker_totals *ls_ticker_totals(const struct ls_ticker *t);

#endif
