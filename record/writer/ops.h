/* What the recorder tells the writer, and what is done then: a table. Called by main.c. */
#ifndef LS_RECORD_WRITER_OPS_H
#define LS_RECORD_WRITER_OPS_H

#include "record/writer/serve.h"

/* Does what a message says, whose data are len bytes. fds: what came with it; what is not kept is
 * closed. Returns 0 or -errno, for the answer, or LS_SERVE_QUIET; *ret_value is 0 unless it is
 * said. */
int ls_serve_op(struct ls_serve *s, const struct ls_out_head *h, const char *data, size_t len,
                int fds[LS_OUT_FDS], uint64_t *ret_value);
/* Whether the recorder waits for an answer to it. */
int ls_serve_answers(uint32_t op);
/* Writes what is due, or all there is, and shows the recorder the figures of it. Returns 0 or
 * -errno. */
int ls_serve_flush(struct ls_serve *s, uint64_t now_ns, int force);

#endif
