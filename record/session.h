/* One recording, from before the program starts until after it has ended. session.c runs it; signals.c, totals.c,
 * status.c and children.c each look after one side of it. */
#ifndef LS_RECORD_SESSION_H
#define LS_RECORD_SESSION_H

#include <limits.h>
#include <time.h>

#include "formats/trace_writer.h"
#include "record/children.h"
#include "record/drain.h"
#include "record/launch.h"
#include "record/memory.h"
#include "record/options.h"
#include "record/ticker.h"
#include "record/translate.h"
#include "record/watcher.h"

#define LS_NOTICES 32

struct ls_session_ring { uint64_t cpu_before_ns; };     /* armed_cpu_ns of the ring's threads before the one it has */

struct ls_session {
        const struct ls_record_options *o;
        struct ls_memory memory;
        struct ls_launch_saved saved;
        struct ls_launch launch;
        struct ls_trace_writer *writer;
        struct ls_drain drain;
        struct ls_translate translate;
        struct ls_session_ring rings[LS_RINGS];
        struct ls_ticker *ticker;               /* NULL = the agent makes its ticks, or none are wanted */
        struct ls_children children;
        enum ls_timer timer;
        int with_agent;                         /* 0 = the program cannot hold it and runs alone */
        int trace_fd;
        int signal_fd;
        int terminal;                           /* status line wanted */
        pid_t pid;
        pid_t watcher;                          /* see watcher.h; 0 = none */
        pid_t sentinel;                         /* see sentinel.h */
        clockid_t process_clock;
        char cwd[PATH_MAX];

        int recording;                          /* the trace is open */
        int runtime_written;                    /* the runtime of the first image is in the trace */
        uint64_t lost_written[LS_NLOSSES];      /* losses that are in the trace */
        int exited;
        int exit_status;                        /* as a shell gives it; valid when exited */
        int write_error;                        /* first -errno of the trace, 0 = none */
        uint64_t start_ns, end_ns;              /* CLOCK_MONOTONIC; end: of the recording */
        uint64_t process_cpu_ns, watcher_cpu_ns;
        uint64_t status_samples, status_ns;     /* at the last status line */
        uint64_t wake_ns;                       /* time between two looks at the ring */
        uint64_t next_second_ns, next_minute_ns;
        uint64_t final_size, dropped_chunks;

        char *notices[LS_NOTICES];              /* for the summary */
        unsigned n_notices;
};

/* Records what o asks for. Returns the status to exit with. */
int ls_session_run(const struct ls_record_options *o);

static inline uint64_t ls_session_clock(clockid_t id)
{
        struct timespec t;

        if (clock_gettime(id, &t) < 0)
                return 0;
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* signals.c */
/* Blocks what is to be passed on and opens signal_fd. Returns 0 or -errno. */
int ls_signals_open(struct ls_session *s);
/* Reads what has come: passes it on, follows stops, sets exited. */
void ls_signals_handle(struct ls_session *s);
/* Reaps the program, sets exit_status. */
void ls_signals_reap(struct ls_session *s);

/* totals.c: facts and totals of the trace */
void ls_totals_start(struct ls_session *s);             /* once, before the program runs */
void ls_totals_clocks(struct ls_session *s);            /* at start, each minute, at the end */
void ls_totals_second(struct ls_session *s, uint64_t now_ns);
void ls_totals_write(struct ls_session *s);             /* now and then, and at the end */
uint64_t ls_totals_lost(const struct ls_session *s, enum ls_loss loss);
/* CPU time of the sampled threads while they were sampled. The agent adds it up when sampling ends; until then, and when
 * the program was killed, a thread's clock at its last tick is the next best. */
uint64_t ls_totals_cpu(const struct ls_session *s);
/* From the translator: the thread of a ring has ended. ctx: the session. */
void ls_totals_thread_ended(void *ctx, unsigned ring);
/* Sum of the losses counted in ticks. */
uint64_t ls_totals_lost_ticks(const struct ls_session *s);

/* status.c */
void ls_status_line(struct ls_session *s, uint64_t now_ns);
void ls_status_clear(struct ls_session *s);
void ls_status_summary(struct ls_session *s);
/* Keeps a sentence for the summary. */
void ls_status_notice(struct ls_session *s, const char *text);

#endif
