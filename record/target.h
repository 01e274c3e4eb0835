/* One process that is recorded: its shared memory, its ticks, what is counted of it. Its rings are
 * looked at by the writer alone, which knows it by a number. A session has one for each process.
 * Called by the session, in the recorder's main thread; of the memory single figures are read here,
 * and nothing that stands there is trusted. */
#ifndef LS_RECORD_TARGET_H
#define LS_RECORD_TARGET_H

#include <limits.h>
#include <sys/types.h>
#include <time.h>

#include "record/process/memory.h"
#include "record/tick/ticker.h"
#include "record/watcher.h"
#include "record/writer/out.h"

/* What is counted of a process, or of all: see figures.def. */
struct ls_sums {
#define LS_FIGURE(field, INFO, switched, value) uint64_t field;
#include "record/figures.def"
#undef LS_FIGURE
        uint64_t lost[LS_NLOSSES];
};

#define LS_TARGET_NAME 200

struct ls_target {
        const struct ls_process_kind *kind;     /* see session.h */
        struct ls_attached *attached;           /* of one that ran already: attached.c */
        pid_t pid;
        char name[LS_TARGET_NAME];              /* what it was called when it came */
        int pidfd;                              /* readable when it has ended; -1 = not open */
        struct ls_out *out;                     /* NULL = the writer does not have it */
        unsigned number;                        /* there */
        const struct ls_counted *counted;       /* what it counts; never NULL */
        int named;                              /* 0 = it has no name yet, and nothing was taken */
        uint64_t generation;                    /* of its memory: our own copy */
        struct ls_memory memory;
        uint32_t exact;                         /* of the events asked for, those that are counted:
                                                 * LS_RECORD_* */
        struct ls_ticker *ticker;               /* NULL = the agent makes its ticks, or none are
                                                 * wanted */
        struct ls_watcher watcher;
        uint64_t watcher_cpu_ns;
        struct ls_workers *workers, *lent;      /* of all targets: ours, and the writer's */
        struct ls_worker *worker;               /* the one of ours that has its rights */
        struct ls_worker *writers;              /* likewise the one of the writer's */
        clockid_t clock;                        /* of its CPU time */
        uint64_t cpu_before_ns;                 /* that, when the recording began */
        uint64_t cpu_ns;                        /* since then, as of the last look */
        int ended;                              /* the process is dead: what is open in a ring stays
                                                 * open */
        int finished;                           /* all was taken */
        struct ls_sums held;                    /* its figures of one moment, while is_held: what it
                                                 * counts goes on */
        int is_held;
        struct ls_sums before;                  /* its figures when the file that is being written
                                                 * began */
        uint64_t begin_ns, end_ns;              /* CLOCK_MONOTONIC; end: 0 = it is recorded still */
        uint64_t name_ns;                       /* CLOCK_MONOTONIC when it is to be named */
};

struct ls_target_config {
        const struct ls_record_options *o;
        struct ls_out *out;
        const char *cwd;                        /* the process's at its start, of less than PATH_MAX
                                                 * bytes */
        struct ls_workers *workers, *lent;      /* of all targets */
        uint32_t ordinal;                       /* of the process, from 0 */
        uint32_t has_ticker;                    /* ls_target_tick will start one */
        uint64_t start_ns;                      /* CLOCK_MONOTONIC: no sample is older */
};

/* One that has nothing yet. */
void ls_target_clear(struct ls_target *t);
/* Makes the memory, before its process is known. Returns 0 or -errno. */
int ls_target_init(struct ls_target *t, const struct ls_record_options *o);
/* Takes half-made ones. */
void ls_target_done(struct ls_target *t);

/* The process is there. Returns 0 or -errno. */
int ls_target_begin(struct ls_target *t, pid_t pid, const struct ls_target_config *cfg);
/* What CPU time the process had until now is not counted. */
void ls_target_since_now(struct ls_target *t);
/* Its name: from now on its samples are taken. Once. */
void ls_target_name(struct ls_target *t, const char *name);
/* The child has the machine code of the process that forked it: so has its target what is known of
 * that. */
void ls_target_inherit(struct ls_target *child, const struct ls_target *parent);
/* Starts the recorder's timer, unless the agent makes its own ticks. full_fd: as for
 * ls_ticker_start. Returns 0 or -errno. */
int ls_target_tick(struct ls_target *t, enum ls_timer timer, const struct ls_record_options *o,
                   int full_fd);

/* Each second: the CPU clock of the process, and whose rights it has. */
void ls_target_second(struct ls_target *t);

/* Ends the recording of it in two steps: no tick comes any more; the last records and names are in
 * the trace. Between them some ms may pass for what the last tick led to, unless it has ended. */
void ls_target_stop(struct ls_target *t);
/* Between them, of several: all are told that it is over before one is waited for. */
void ls_target_tell(struct ls_target *t);
void ls_target_finish(struct ls_target *t);

/* Starts the process that watches for its blocked threads, when wall time is wanted. Its pid may
 * come later. Returns 0 or -errno. */
int ls_target_watch(struct ls_target *t, const struct ls_record_options *o);

/* Adds its figures to sums. */
void ls_target_sums(const struct ls_target *t, struct ls_sums *sums);
/* From now on, or no longer, its figures are those of this moment. */
void ls_target_hold(struct ls_target *t, int hold);
uint64_t ls_target_lost(const struct ls_target *t, enum ls_loss loss);

#endif
