/* Starts and ends the process that watches the program's threads for wall time (record/watch),
 * with the program's rights. Called by target.c. */
#ifndef LS_RECORD_WATCHER_H
#define LS_RECORD_WATCHER_H

#include <sys/types.h>

#include "record/process/memory.h"
#include "record/worker/confine.h"

struct ls_broker;

struct ls_watcher {
        pid_t pid;                      /* 0 = there is none */
        struct ls_broker *broker;       /* opens files for it */
        struct ls_rights rights;        /* it has these */
        uint64_t interval_ns;
        unsigned changes;               /* of the target's user that it has followed */
        unsigned clashes;               /* how often its memory lay where the target's is */
        uint64_t before_ns;             /* CPU time of those before it */
        uint64_t told_ns;               /* CLOCK_MONOTONIC when it was told to end; 0 = not yet */
};

/* Starts it, before the program: target is 0 then, else the process that is watched, which can
 * write all of the memory. Returns 0 or -errno. */
int ls_watcher_start(struct ls_watcher *w, const struct ls_memory *m, pid_t target,
                     uint64_t interval_ns);
/* The program is this process, which has run nothing of its own yet. */
void ls_watcher_target(struct ls_watcher *w, pid_t pid);
/* Each second, while target is there: when that has become another user's, as daemons do that start
 * as root, one with the rights of that user takes its place; when its memory lies where target's
 * is, another whose memory lies elsewhere. take: makes room in the rings meanwhile. */
void ls_watcher_follow(struct ls_watcher *w, const struct ls_memory *m, pid_t target,
                       void (*take)(void *ctx), void *ctx);
/* It has been told that the recording is over, or the program, by the memory that it shares with
 * us. Does not wait. */
void ls_watcher_told(struct ls_watcher *w);
/* Waits until it has sent what it has, half a second from when it was told at most. Returns the CPU
 * time that it used, in ns. */
uint64_t ls_watcher_stop(struct ls_watcher *w, void (*take)(void *ctx), void *ctx);
/* The CPU time of it so far, in ns. */
uint64_t ls_watcher_cpu_ns(const struct ls_watcher *w);
/* What its word says, for people: NULL = it reads stacks, or there was nothing to read. */
const char *ls_watcher_complaint(const struct ls_memory *m);

#endif
