/* A target as the writer has it: its memory, the reader of its rings, and what its ids mean.
 * Nothing that stands in the memory is trusted. Called by ops.c and main.c, in the writer's
 * process. */
#ifndef LS_RECORD_WRITER_TAKEN_H
#define LS_RECORD_WRITER_TAKEN_H

#include "record/translate/drain.h"
#include "record/translate/translate.h"
#include "record/writer/wire.h"

struct ls_taken {
        struct ls_memory memory;
        struct ls_drain drain;
        struct ls_translate translate;
        struct ls_counted *counted;             /* where the recorder sees what is counted */
        char cwd[PATH_MAX];                     /* at its start */
        pid_t pid;
        uint32_t process;                       /* its id in the trace, 0 = it has no name yet, and
                                                 * nothing was taken */
        int has_ticker;                         /* which the agent can wake when a ring fills */
        int ended;                              /* the process is dead: what is open in a ring stays
                                                 * open */
        int finished;                           /* all was taken */
        uint64_t wake_ns;                       /* time between two looks at the rings */
        uint64_t due_ns;                        /* CLOCK_MONOTONIC of the next */
        uint64_t worked_ns;                     /* and of the last */
};

/* tr: what is the same for all targets. fds: of its memory and of the watcher's rings; the
 * caller's. Returns 0 or -errno, and nothing is left then. */
int ls_taken_begin(struct ls_taken *t, const struct ls_out_begin *b,
                   const struct ls_translate_config *tr, const int fds[LS_OUT_FDS],
                   struct ls_counted *counted);
void ls_taken_done(struct ls_taken *t);
/* From now on its samples are taken. Once. */
void ls_taken_name(struct ls_taken *t, const char *name, size_t len);
/* The child has the machine code of the process that forked it: so has its target what is known of
 * that. */
void ls_taken_inherit(struct ls_taken *child, struct ls_taken *parent, uint64_t now_ns);
/* Tells the agent that we live; takes what has come when that is due, or at once. */
void ls_taken_work(struct ls_taken *t, uint64_t now_ns, int at_once);
/* CPU clocks of its threads. */
void ls_taken_clocks(struct ls_taken *t, uint64_t now_ns);
/* The file ends here, and its last values are in it; native: so are the names that are known. */
void ls_taken_settle(struct ls_taken *t, uint64_t now_ns, int native);
/* The last records and names are in the trace. */
void ls_taken_finish(struct ls_taken *t, uint64_t now_ns);
/* After that: what it has counted, in the memory of fd; -1 = it has none. events: as
 * ls_exact_finish. */
void ls_taken_exact(struct ls_taken *t, int fd, uint32_t events);

#endif
