/* The broker: a thread of the recorder that opens files of one process in /proc for a worker that
 * has no right to open anything. It hands over descriptors to read, of that process alone, and only
 * as long as the process has no more rights than the worker. Called by watcher.c and stack.c; the
 * worker's side is called through record/watch/remote.h. */
#ifndef LS_RECORD_WORKER_BROKER_H
#define LS_RECORD_WORKER_BROKER_H

#include <stddef.h>
#include <sys/types.h>

#include "record/worker/confine.h"

struct ls_broker;

/* rights: the worker's. outer_id: tells the number of a process's thread as we know it, 0 = there
 * is none. first, of n bytes: what the worker is told before it asks; NULL = nothing. *ret_socket
 * is for the worker: the caller closes it when the worker has it. Returns NULL and errno. */
struct ls_broker *ls_broker_start(const struct ls_rights *rights,
                                  pid_t (*outer_id)(pid_t pid, pid_t inner), const void *first,
                                  size_t n, int *ret_socket);
/* Whose files it opens, from now on; takes no second one. Any thread. */
void ls_broker_target(struct ls_broker *b, pid_t pid);
/* Waits until the worker has said that it is ready, so many ms at most. Returns 0 or -ETIME. */
int ls_broker_await(struct ls_broker *b, int ms);
/* Ends the thread and waits for that. Takes NULL. */
void ls_broker_stop(struct ls_broker *b);

/* The worker's side: asks over its socket, and waits. Normal context, one thread. */

/* What it is told first. Returns 0 or -EPROTO. */
int ls_broker_first(int socket, void *to, size_t n);
int ls_broker_say_ready(int socket);

/* A file of the process, or of its thread tid (as we know it here; 0 = of the process): "mem",
 * "maps", "schedstat", "syscall", "stat", "comm". Returns a descriptor to read, or -errno. */
int ls_broker_open(int socket, pid_t tid, const char *name);
/* The number of its thread as we know it here, of the one that it has itself. 0 = there is none. */
pid_t ls_broker_outer_id(int socket, pid_t inner);

#endif
