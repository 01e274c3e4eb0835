/* A worker's answers. Called by worker.c in place of a worker, and by serve.c's loop in one. */
#ifndef LS_RECORD_WORKER_SERVE_H
#define LS_RECORD_WORKER_SERVE_H

#include <stddef.h>

#include "record/worker/wire.h"

/* Answers a request of so many bytes. fds: what came with it, LS_WORKER_FDS, the caller's; -1 =
 * nothing. Returns the bytes of the reply. Normal context, one thread; may take as long as the
 * files that are named make it. */
size_t ls_worker_answer(const struct ls_worker_request *q, size_t size, const int *fds,
                        struct ls_worker_reply *ret);

/* From now on paths are as the root directory has them, whatever process is named. */
void ls_worker_has_root(void);

#endif
