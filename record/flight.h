/* --last: the last TIME of a recording that goes on, written when somebody asks for it, when the
 * program gets busy, and at the end. The trace is kept in pieces, in files without a name; when
 * they are asked for, a copy of the writer makes one trace of them. Called by the session,
 * signals.c and control.c. */
#ifndef LS_RECORD_FLIGHT_H
#define LS_RECORD_FLIGHT_H

#include <stdint.h>

struct ls_session;

/* The trace file is open, and takes what there is at the end; the trace is to go to s->trace_fd.
 * Returns 0 or -errno. */
int ls_flight_begin(struct ls_session *s);
/* Next piece, --last-on-cpu and --last-on-mark, what has been written. */
void ls_flight_look(struct ls_session *s, uint64_t now_ns);
/* Writes what there is to path, NULL = FILE.1, FILE.2, ...; the client gets its answer then.
 * Returns 0 or -errno. */
int ls_flight_write(struct ls_session *s, const char *path, unsigned client);
/* All has been taken from the processes: what there is goes to FILE, which is in s->trace_fd then,
 * and not at its end yet. Returns 0 or -errno. */
int ls_flight_finish(struct ls_session *s);
void ls_flight_done(struct ls_session *s);

#endif
