/* One recording, from before the program starts until after it has ended. session.c runs it; signals.c, totals.c,
 * status.c and process/children.c each look after one side of it. */
#ifndef LS_RECORD_SESSION_H
#define LS_RECORD_SESSION_H

#include <limits.h>
#include <poll.h>
#include <time.h>

#include "formats/trace/writer.h"
#include "formats/wire/clock.h"
#include "record/process/children.h"
#include "record/control.h"
#include "record/flight.h"
#include "record/process/launch.h"
#include "record/options.h"
#include "record/pause.h"
#include "record/process/processes.h"
#include "record/rotate.h"
#include "record/target.h"
#include "record/trace_file.h"

#define LS_NOTICES 32

struct ls_session {
        const struct ls_record_options *o;
        struct ls_target *root;                 /* the program itself; NULL = not yet */
        struct ls_target *targets[LS_TARGETS_MAX];      /* processes that are recorded now; the program stays in 0 */
        unsigned n_targets;
        struct ls_map_shared maps;              /* files that several of them have mapped */
        struct ls_workers *workers;             /* read what they name */
        struct ls_sums ended;                   /* of those that are no longer in targets */
        struct ls_registry_side registry;       /* process/processes.c: where children come in */
        struct ls_pause pause;
        struct ls_rotate rotate;
        struct ls_control control;
        struct ls_flight flight;
        unsigned n_processes, n_refused;        /* that have come; that were too many */
        struct ls_launch_saved saved;
        struct ls_launch launch;
        struct ls_trace_writer *writer;
        struct ls_children children;
        enum ls_timer timer;
        int with_agent;                         /* 0 = the program cannot hold it and runs alone */
        int trace_fd;
        struct ls_trace_file trace_file;
        int signal_fd;
        int full_fd;                            /* eventfd: the rings of a target fill */
        uint64_t full_ns;                       /* CLOCK_MONOTONIC when we last knew */
        int terminal;                           /* status line wanted */
        pid_t pid;
        pid_t sentinel;                         /* see process/sentinel.h */
        char cwd[PATH_MAX];

        void (*leave)(struct ls_session *s);    /* attached: the agents go; NULL = the program was started here */
        int recording;                          /* the trace is open */
        int runtime_written;                    /* the runtime of the first image is in the trace */
        int has_runtime;
        char runtime[64], runtime_path[256];    /* as the agent wrote them: not to be trusted to end */
        uint64_t lost_written[LS_NLOSSES];      /* losses that are in the trace */
        int exited;                             /* the program has ended */
        int stopping;                           /* somebody has asked for the end */
        int reaped;
        uint64_t exited_ns;                     /* when it was */
        int said_who_is_left;
        int exit_status;                        /* as a shell gives it; valid when exited */
        int write_error;                        /* first -errno of the trace, 0 = none */
        uint64_t start_ns, end_ns;              /* CLOCK_MONOTONIC; end: of the recording */
        uint64_t status_samples, status_ns;     /* at the last status line */
        uint64_t next_second_ns, next_minute_ns;
        uint64_t final_size, dropped_chunks;

        char *notices[LS_NOTICES];              /* for the summary */
        unsigned n_notices;
};

/* Records what o asks for. Returns the status to exit with. */
int ls_session_run(const struct ls_record_options *o);
/* attach/session.c: records processes that run already. */
int ls_session_attach(const struct ls_record_options *o);

/* For attach/session.c, steps of a recording. Errors are printed. */
void ls_session_init(struct ls_session *s, const struct ls_record_options *o);
/* The asked timer, or the best one for s->pid. Returns 0 or -errno. */
int ls_session_choose_timer(struct ls_session *s);
/* Opens the trace with the first process. Returns 0 or -errno. */
int ls_session_start_trace(struct ls_session *s);
/* Time in ns until the next look at any process; full: what to poll for that may come before. */
uint64_t ls_session_time_to_wait(const struct ls_session *s, uint64_t now_ns, struct pollfd *full);
void ls_session_end(struct ls_session *s);
void ls_session_done(struct ls_session *s);
/* For process/processes.c and attach/session.c: a process becomes one of the recording. Returns 0 or -errno. */
int ls_session_begin_target(struct ls_session *s, struct ls_target *t, pid_t pid);
/* For signals.c: takes what has come from all processes, those not due too when at_once; tells all that we live, until
 * until_ns and the agent's patience. */
void ls_session_work(struct ls_session *s, int at_once);
void ls_session_heartbeat(struct ls_session *s, uint64_t until_ns);

/* CPU time of the recorder and its workers so far, ns. */
uint64_t ls_session_own_cpu(const struct ls_session *s);

static inline uint64_t ls_session_clock(clockid_t id)
{
        return ls_clock_ns(id);
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
/* What is counted of one process; when it leaves the recording, and at the end. */
void ls_totals_process(struct ls_session *s, const struct ls_target *t);
void ls_totals_write(struct ls_session *s);             /* now and then, and at the end */
/* All processes so far, those that have ended too. */
void ls_totals_sums(const struct ls_session *s, struct ls_sums *ret);
/* Sum of the losses counted in ticks. */
uint64_t ls_totals_lost_ticks(const struct ls_sums *sums);

/* status.c */
void ls_status_line(struct ls_session *s, uint64_t now_ns);
void ls_status_clear(struct ls_session *s);
void ls_status_summary(struct ls_session *s);
/* Keeps a sentence for the summary. */
void ls_status_notice(struct ls_session *s, const char *text);

#endif
