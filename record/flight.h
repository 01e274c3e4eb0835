/* --ring: the last TIME of a recording that goes on, written when somebody asks for it, when the program gets busy, and at the end.
 * The trace is kept in pieces, in files without a name; when they are asked for, a process of its own makes one trace of them.
 * Called by the session, signals.c and control.c. */
#ifndef LS_RECORD_FLIGHT_H
#define LS_RECORD_FLIGHT_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/target.h"

struct ls_session;

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
        pid_t writer;                   /* writes what was asked for last, 0 = that is done */
        char path[PATH_MAX];            /* where */
        uint32_t number;                /* of the last one without a name of its own */
        struct ls_sums sums;            /* of the whole recording, up to the last piece */
        int joined;                     /* the pieces are in one file, their totals too */
        uint64_t recorder_ns;           /* CPU time of the recorder then */
        int asked;                      /* by a signal, while the writer was at work */
        unsigned asker;                 /* serial number of the client that waits for the writer, 0 = none */
        uint64_t cpu_ns, cpu_at_ns;     /* CPU time of the program at the last look */
        int busy;                       /* more of it than --ring-on-cpu since then */
        int marked;                     /* a mark of --ring-on-mark has come */
        uint64_t marked_ns;             /* when one was last answered, 0 = never */
};

/* The trace file is open, and takes what there is at the end; the trace is to go to s->trace_fd. Returns 0 or -errno. */
int ls_flight_begin(struct ls_session *s);
/* The program has marked an instant. */
void ls_flight_mark(struct ls_session *s, const char *name, uint32_t len);
/* Next piece, --ring-on-cpu and --ring-on-mark, what the writer has done. */
void ls_flight_look(struct ls_session *s, uint64_t now_ns);
/* Writes what there is to path, NULL = FILE.1, FILE.2, ...; the client gets its answer then. Returns 0 or -errno. */
int ls_flight_write(struct ls_session *s, const char *path, unsigned client);
/* All has been taken from the processes: what there is goes to FILE, which is in s->trace_fd then, and not at its end yet. Returns
 * 0 or -errno. */
int ls_flight_finish(struct ls_session *s);
void ls_flight_done(struct ls_session *s);

#endif
