/* Starts and ends the process that watches the program's threads for wall time (libsample/outside). Called by session.c. */
#ifndef LS_RECORD_WATCHER_H
#define LS_RECORD_WATCHER_H

#include <sys/types.h>

#include "record/memory.h"

/* Starts it, before the program: target is 0 then, else the process that is watched, which can write all of the memory.
 * Returns its pid or -errno. */
pid_t ls_watcher_start(const struct ls_memory *m, pid_t target, uint64_t interval_ns);
/* Waits until it has sent what it has: the recording is over, or the program. Takes what ls_watcher_start returned; returns
 * the CPU time that it used, in ns. take: makes room in the rings meanwhile. */
uint64_t ls_watcher_stop(pid_t pid, void (*take)(void *ctx), void *ctx);
/* What its word says, for people: NULL = it reads stacks, or there was nothing to read. */
const char *ls_watcher_complaint(const struct ls_memory *m);

#endif
