/* One recording, from before the program starts until after it has ended. Each file that looks
 * after one side of it has a header of its own; this is what they share. */
#ifndef LS_RECORD_SESSION_H
#define LS_RECORD_SESSION_H

#include <limits.h>
#include <time.h>

#include "formats/wire/clock.h"
#include "record/attach/children.h"
#include "record/control/clients.h"
#include "record/options.h"
#include "record/process/children.h"
#include "record/process/launch.h"
#include "record/registry.h"
#include "record/target.h"
#include "record/trace_file.h"

#define LS_NOTICES 32

/* pause.c: when samples are wanted */
struct ls_pause {
        int on;                         /* no samples are wanted now */
        int was_on;                     /* at any time so far */
        uint64_t until_ns;              /* CLOCK_MONOTONIC: end of --delay, 0 = it is over, or there
                                         * was none */
        uint64_t late_ns;               /* from the end of --delay to when it was seen */
        uint64_t since_ns;              /* they are wanted since then; when not on */
        uint64_t enabled_ns;            /* times in which they were wanted that are over */
};

/* rotate.c: one trace in several files */
struct ls_rotate {
        int possible;                   /* the trace is a file of ours, and somebody may want it */
        uint64_t begin_ns;              /* CLOCK_MONOTONIC of the beginning of this file */
        struct ls_sums before;          /* what is in the files before this one */
        uint64_t enabled_before_ns, recorder_before_ns;
        uint32_t number;                /* of the last file that ended, 0 = none */
        uint32_t *kept;                 /* with --keep: numbers of the files that are there, oldest
                                         * first */
        unsigned n_kept;
        unsigned files;                 /* that have ended */
};

/* flight.c: the last TIME of it */
#define LS_FLIGHT_PIECES 8u             /* of the time that is kept */
#define LS_FLIGHT_MOST 40u              /* each time that somebody asks makes one more */

struct ls_flight_piece {
        int fd;
        uint64_t begin_ns, end_ns;
        struct ls_sums before;          /* what was recorded before it */
        uint64_t enabled_before_ns, recorder_before_ns;
};

struct ls_flight {
        int out_fd;                     /* FILE, for the end; -1 = there is no ring */
        struct ls_flight_piece pieces[LS_FLIGHT_MOST];  /* whole ones, oldest first */
        unsigned n;
        struct ls_out *copy;            /* of the writer: writes what was asked for last, NULL =
                                         * that is done */
        char path[PATH_MAX];            /* where */
        uint32_t number;                /* of the last one without a name of its own */
        struct ls_sums sums;            /* of the whole recording, up to the last piece */
        int joined;                     /* the pieces are in one file, their totals too */
        uint64_t recorder_ns;           /* CPU time of the recorder then */
        int asked;                      /* by a signal, while the writer was at work */
        unsigned asker;                 /* serial number of the client that waits for the writer, 0
                                         * = none */
        uint64_t cpu_ns, cpu_at_ns;     /* CPU time of the program at the last look */
        int busy;                       /* more of it than --last-on-cpu since then */
        uint32_t marks;                 /* those of --last-on-mark that have been seen */
        uint64_t marked_ns;             /* when one was last answered, 0 = never */
};

struct ls_tell_said {                   /* telling.c: of one of --tell */
        uint32_t came, went;            /* as the writer has counted, when a line was said last */
        uint64_t ns;
};

struct ls_session;

/* How a process came to be one of the recording, and what follows from that. */
struct ls_process_kind {
        /* Asked at each turn of the loop, until it says 1. */
        int (*has_ended)(struct ls_session *s, struct ls_target *t, uint64_t now_ns);
        /* The recording ends and the process goes on; no tick comes any more. NULL = nothing is
         * to be done. */
        void (*leave)(struct ls_session *s, struct ls_target *t);
        /* Frees what the kind has of it. NULL = nothing. */
        void (*done)(struct ls_target *t);
};

struct ls_session {
        const struct ls_record_options *o;
        struct ls_target *targets[LS_TARGETS_MAX];      /* processes that are recorded now; the
                                                         * first stays in 0 */
        unsigned n_targets;
        struct ls_workers *workers, *lent;      /* read what they name: for us, and for the
                                                 * writer */
        struct ls_sums ended;                   /* of those that are no longer in targets */
        struct ls_registry_side registry;       /* processes.c: where children come in */
        struct ls_attach_children forked;       /* attached.c: children to attach to */
        char agent[PATH_MAX];
        struct ls_pause pause;
        struct ls_rotate rotate;
        struct ls_control control;
        struct ls_flight flight;
        struct ls_tell_said tells[LS_RECORD_TELLS];
        unsigned n_processes, n_refused;        /* that have come; that were too many */
        struct ls_launch_saved saved;
        struct ls_launch launch;                /* of the program; its pid is 0 when none was
                                                 * started */
        struct ls_out *out;                     /* the writer, which alone looks at rings */
        struct ls_children children;
        enum ls_timer timer;
        int with_agent;                         /* 0 = the program cannot hold it and runs alone */
        int trace_fd;
        struct ls_trace_file trace_file;
        int signal_fd;
        int full_fd;                            /* eventfd: the rings of a target fill */
        int look_soon;                          /* a process that has no name yet fills its rings */
        int terminal;                           /* status line wanted */
        pid_t pid;                              /* the first process */
        pid_t sentinel;                         /* see process/sentinel.h */
        char cwd[PATH_MAX];

        int leaving;                            /* the agents are being sent away: no process comes
                                                 * or goes any more */
        int recording;                          /* the trace is open */
        int runtime_written;                    /* the runtime of the first image is in the trace */
        int has_runtime;
        char runtime[64], runtime_path[256];    /* as the agent wrote them: not to be trusted to
                                                 * end */
        uint64_t lost_written[LS_NLOSSES];      /* losses that are in the trace */
        int exited;                             /* the program has ended */
        int stopping;                           /* somebody has asked for the end */
        int reaped;
        uint64_t exited_ns;                     /* when it was */
        int said_who_is_left;
        int exit_status;                        /* as a shell gives it; valid when exited */
        int write_error;                        /* first -errno of the trace, 0 = none; -EOWNERDEAD:
                                                 * the writer has died */
        uint64_t start_ns, end_ns;              /* CLOCK_MONOTONIC; end: of the recording */
        uint64_t status_samples, status_ns;     /* at the last status line */
        uint64_t next_second_ns, next_minute_ns;
        uint64_t final_size, dropped_chunks;

        char *notices[LS_NOTICES];              /* for the summary */
        unsigned n_notices;
};

/* Tells the writer what has a number or a text, and no answer. */
static inline void ls_session_tell(struct ls_session *s, enum ls_out_op op, uint64_t a, uint64_t b,
                                   uint64_t c)
{
        ls_out_tell(s->out, &(struct ls_out_message){ .op = op, .arg = { a, b, c } }, NULL);
}

static inline uint64_t ls_session_clock(clockid_t id)
{
        return ls_clock_ns(id);
}

#endif
