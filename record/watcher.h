/* Starts and ends the process that watches the program's threads for wall time (record/watch),
 * with the program's rights. Called by target.c. */
#ifndef LS_RECORD_WATCHER_H
#define LS_RECORD_WATCHER_H

#include <sys/types.h>

#include "record/process/memory.h"

struct ls_broker;

struct ls_watcher {
        pid_t pid;                      /* 0 = there is none */
        struct ls_broker *broker;       /* opens files for it */
};

/* Starts it, before the program: target is 0 then, else the process that is watched, which can
 * write all of the memory. Returns 0 or -errno. */
int ls_watcher_start(struct ls_watcher *w, const struct ls_memory *m, pid_t target, uint64_t interval_ns);
/* The program is this process, which has run nothing of its own yet. */
void ls_watcher_target(struct ls_watcher *w, pid_t pid);
/* Waits until it has sent what it has: the recording is over, or the program. Returns the CPU time
 * that it used, in ns. take: makes room in the rings meanwhile. */
uint64_t ls_watcher_stop(struct ls_watcher *w, void (*take)(void *ctx), void *ctx);
/* What its word says, for people: NULL = it reads stacks, or there was nothing to read. */
const char *ls_watcher_complaint(const struct ls_memory *m);

#endif
