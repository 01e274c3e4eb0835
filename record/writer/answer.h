/* What the writer, which has no rights, is given of what the recorder's rights can open. Called by
 * out.c. */
#ifndef LS_RECORD_WRITER_ANSWER_H
#define LS_RECORD_WRITER_ANSWER_H

#include "record/writer/wire.h"

struct ls_workers;

/* Answers ask, whose text ends. is_target: its pid is that of a process that is recorded. *ret_fd:
 * what is sent along, if it is set; the caller's, but for a worker's socket. */
void ls_answer(const struct ls_ask *ask, int is_target, struct ls_workers *workers,
               struct ls_answer *ret, int *ret_fd);

#endif
