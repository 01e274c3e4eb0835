/* What ticker.c shares with its sources, perf.c and helper.c. */
#ifndef LS_RECORD_TICK_TICKER_PRIVATE_H
#define LS_RECORD_TICK_TICKER_PRIVATE_H

#include <pthread.h>
#include <time.h>

#include "record/tick/ticker.h"
#include "formats/wire/clock.h"

struct ls_tick_thread {                 /* a thread of the program that is ticked, by its ring */
        struct ls_ticker *ticker;
        struct ls_ring *ring;
        pid_t tid, inner_tid;           /* here, and as the program knows it: in another pid namespace they differ */
        uint32_t claim;                 /* the ring's when it was armed */
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
        int starved;                    /* the event brings too few ticks: we send what is missing */
        int off;                        /* the event is off, since it costs too much: we send all */
        uint64_t sent;                  /* signals sent */
        uint64_t window_ns, window_cpu_ns, window_sent; /* start of the time that is judged; clock, CPU, signals sent */
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
        uint64_t next_ns;               /* ticks that we send: the next interval, CLOCK_MONOTONIC; 0 = none was sent yet */
        uint64_t shift_ns, random;      /* when in it */
        uint64_t calm_ns;               /* perf: time between two looks at threads that do not run */
        unsigned n, used;               /* rings; of these, that have had a thread */
        struct ls_tick_thread threads[];        /* by ring */
};

extern const struct ls_tick_source ls_tick_source_perf, ls_tick_source_helper;

/* signal.c: begins and ends looking at a thread. */
int ls_tick_look_open(struct ls_tick_thread *h);
void ls_tick_look_close(struct ls_tick_thread *h);
/* The thread's CPU time in ns, as of the kernel's last tick, and how often it got a processor; 0 = not known. */
uint64_t ls_tick_clock(const struct ls_tick_thread *h, uint64_t *ret_times);
/* Sends a tick if the thread runs and none is on its way. Returns 1 when it was sent. */
int ls_tick_try(struct ls_tick_thread *h, uint64_t now);
/* helper.c: the grid of ticks that we send. It is the same for all threads, and fixed when the first needs it: times
 * that were missed are left out, none moves. */
void ls_tick_grid_begin(struct ls_ticker *t);
/* Waits for the next one. Returns CLOCK_MONOTONIC; 0 = it is not yet time, but there may be a request. */
uint64_t ls_tick_grid_wait(struct ls_ticker *t, uint32_t request);
/* signal.c: signals that the thread has handled. */
uint32_t ls_tick_handled(const struct ls_tick_thread *h);

/* ticker.c. Whether the agent wants ticks on the thread that was armed. */
int ls_tick_is_wanted(const struct ls_tick_thread *h);
/* Sleeps until request changes, the ticker stops, or ns have passed; or the clock is at until_ns. */
void ls_ticker_sleep(struct ls_ticker *t, uint32_t request, uint64_t ns);
void ls_ticker_sleep_until(struct ls_ticker *t, uint32_t request, uint64_t until_ns);
#define LS_TICKER_IDLE_NS 100000000ull

#endif
