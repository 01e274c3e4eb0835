/* The process that is read from outside: a running one, or what a core file holds of one that has
 * ended. There is one in a process of ours. Called by mirror.c, look.c, watch.c, now.c and
 * record/stack.c. */
#ifndef LS_RECORD_WATCH_REMOTE_H
#define LS_RECORD_WATCH_REMOTE_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "record/watch/core.h"

/* From now on fn opens the process's files in /proc, as ls_remote_open does; ctx is passed to it.
 * Without it they are opened here, by their names. */
void ls_remote_opener(int (*fn)(void *ctx, pid_t tid, const char *name), void *ctx);

/* Reads that process from now on, in its program of this moment: after an exec it is to be named
 * again. Returns 0 or -errno. */
int ls_remote_of_process(pid_t pid);
/* core: kept, not copied. */
void ls_remote_of_core(const struct ls_core *core);

/* A file of the process in /proc, or of its thread tid (0 = of the process). Returns a descriptor
 * to read, or -errno. */
int ls_remote_open(pid_t tid, const char *name);
/* 1 = its memory does not change. */
int ls_remote_is_core(void);
/* All n bytes at this address. Returns 0 or -1. */
int ls_remote_memory(uint64_t at, void *to, size_t n);
/* Many pieces at once: piece i of there, of a process that runs, into here[i]. ret_read[i]: 1 = it
 * was read. */
struct iovec;
void ls_remote_pieces(const struct iovec *here, const struct iovec *there, unsigned n,
                      uint8_t *ret_read);
/* Its mappings, in the form of /proc/PID/maps; NULL and errno. */
FILE *ls_remote_maps(void);

#endif
