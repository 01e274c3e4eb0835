/* What threads.c and attach/threads.c share: the table of threads, and how an entry is made and freed. */
#ifndef LS_THREADS_PRIVATE_H
#define LS_THREADS_PRIVATE_H

#include <pthread.h>
#include <time.h>

#include "libsample/thread.h"

extern _Atomic(struct ls_thread *) ls_threads[LS_THREADS_MOST];         /* by ring */
extern pthread_mutex_t ls_threads_lock;

/* All with the lock held. */

/* A thread of the process with a ring; nothing is known of its stack. NULL = no ring is free, or no memory. */
struct ls_thread *ls_thread_make(int tid);
/* The thread is gone, or runs no handler of ours: its ticks end, what is pending is sent, its ring is given back. */
void ls_thread_unmake(struct ls_thread *t);
/* Frees what has no ring any more. */
void ls_thread_free(struct ls_thread *t);
/* The thread of this id, NULL = none that is shown. Without the lock: the caller's own id, which is in use. */
struct ls_thread *ls_thread_of(int tid);
void ls_thread_show(const struct ls_thread *t);
void ls_thread_hide(const struct ls_thread *t);
/* 1 once threads get ticks. */
int ls_threads_are_arming(void);

/* The CPU clock of a thread of this process. */
static inline clockid_t ls_thread_clock(int tid)
{
        return (clockid_t)((~(unsigned)tid << 3) | 6);
}

/* threads_lost.c: ticks of which no signal has come are counted by their reason. own_blocks: the calling thread blocked ticks
 * before it took the lock. */
void ls_thread_lose_rest(const struct ls_thread *t, uint64_t ticks, int own_blocks);

/* The C stack of the first thread, and of another: from below here to its thread pointer. Any context, on the thread. */
void ls_thread_find_stack(struct ls_thread *t, size_t size, uintptr_t here);
/* Makes it the calling thread's own. */
void ls_thread_own_it(struct ls_thread *t);

#endif
