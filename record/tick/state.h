/* A ticker and the threads that it ticks. Its thread alone uses them: ticker.c and its sources,
 * perf.c and helper.c. */
#ifndef LS_RECORD_TICK_STATE_H
#define LS_RECORD_TICK_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

#include "formats/wire/clock.h"
#include "record/process/memory.h"

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
        _Atomic uint64_t traced_ns;     /* in which a debugger held the program */
};

struct ls_tick_thread {                 /* a thread of the program that is ticked, by its ring */
        struct ls_ticker *ticker;
        struct ls_ring *ring;
        pid_t tid, inner_tid;           /* here, and as the program knows it: in another pid
                                         * namespace they differ */
        uint32_t claim;                 /* the ring's when it was armed */
        uint32_t told_claim;            /* the claim and 1, of a thread that waits for all signals;
                                         * 0 = none */
        int armed;                      /* the source ticks it */
        /* signals that we send */
        int look_fd;                    /* file that tells whether the thread runs, -1 = not open */
        unsigned look;                  /* which one */
        uint64_t sent_ns;               /* when we last sent */
        uint32_t handled;               /* ticks_handled then */
        int outstanding;                /* that signal may not have been handled yet */
        /* perf */
        int event_fd;
        int cpu_fd;                     /* the thread's schedstat */
        uint64_t armed_ns;              /* when it was armed */
        int starved;                    /* the event brings too few ticks: we send what is
                                         * missing */
        int off;                        /* the event is off, since it costs too much: we send all */
        int once;                       /* we do that by letting it go, to come once */
        uint64_t sent;                  /* signals sent */
        uint64_t window_ns, window_cpu_ns, window_sent; /* start of the time that is judged; clock,
                                                         * CPU, signals sent */
        uint64_t window_times;          /* how often it had got a processor */
        uint32_t window_handled, last_handled;
};

struct ls_ticker {
        struct ls_shm *shm;
        const struct ls_tick_source *source;
        pid_t pid;
        int other_namespace;            /* the program's pid namespace is not ours */
        uint64_t interval_ns;
        int full_fd;                    /* eventfd of the main thread, -1 = none */
        pthread_t thread;
        _Atomic int stop;
        _Atomic int timer;              /* enum ls_timer in use */
        struct ls_ticker_totals totals;
        unsigned n_armed;
        int is_virtual;                 /* this is a virtual machine */
        uint64_t next_ns;               /* ticks that we send: the next interval, CLOCK_MONOTONIC; 0
                                         * = none was sent yet */
        uint64_t shift_ns, random;      /* when in it */
        uint64_t calm_ns;               /* perf: time between two looks at threads that do not
                                         * run */
        uint64_t traced_look_ns;        /* when we last looked for a debugger, CLOCK_MONOTONIC */
        uint32_t traced;                /* odd while there is one; the agent has a copy */
        unsigned n, used;               /* rings; of these, that have had a thread */
        struct ls_tick_thread threads[];        /* by ring */
};

#define LS_TICKER_IDLE_NS 100000000ull

#endif
