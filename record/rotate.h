/* One trace in several files, each whole in itself: by size or time (--switch-output), or when
 * asked to. FILE is the one that is being written; it becomes FILE.1, FILE.2, ... Called by the
 * session and by control.c. */
#ifndef LS_RECORD_ROTATE_H
#define LS_RECORD_ROTATE_H

#include <stdint.h>

#include "record/target.h"

struct ls_session;

/* The trace is open, and the session has its start_ns. Returns 0, or -errno after a line. */
int ls_rotate_begin(struct ls_session *s);
/* What was taken is in the file. Returns 0 or -errno, which is remembered. */
int ls_rotate_flush(struct ls_session *s);
/* Begins the next file when it is time. */
void ls_rotate_look(struct ls_session *s, uint64_t now_ns);
/* The file so far becomes path, NULL = the next number; the trace goes on in a new one. Returns 0
 * or -errno: then the trace goes on in the same file. */
int ls_rotate_now(struct ls_session *s, const char *path);
/* The same for pieces: what there is so far is whole, in *ret_old, which is the caller's; the trace
 * goes on in fd. */
int ls_rotate_to(struct ls_session *s, int fd, int *ret_old);
void ls_rotate_done(struct ls_session *s);

#endif
