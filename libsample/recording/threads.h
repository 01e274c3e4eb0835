/* Rings and ticks for the threads of the program. Normal context. */
#ifndef LS_LIBSAMPLE_RECORDING_THREADS_H
#define LS_LIBSAMPLE_RECORDING_THREADS_H

#include <pthread.h>
#include <time.h>

#include "libsample/thread.h"

/* Gives the calling thread a ring and ticks. stack_size: of its C stack, 0 = not known. Does
 * nothing when it has them or all rings are taken. */
void ls_thread_begin(size_t stack_size);
/* The same for a thread of the agent's own, which gets no ticks. */
void ls_thread_begin_quiet(void);
/* What is pending on the calling thread t becomes a sample or a loss, and waiting texts are sent.
 * Returns 0 when a handler of the program's has interrupted ours: then nothing is touched. */
int ls_thread_flush(struct ls_thread *t);
/* There is a VM: all threads get ticks, and those that begin from now on. */
void ls_threads_arm_all(void);
/* Begins and ends its ticks, keeps the ring. */
void ls_thread_arm(struct ls_thread *t);
void ls_thread_disarm(struct ls_thread *t);
/* Ends the calling thread's ticks and gives the ring back. */
void ls_thread_end(void);
/* The next recording of an attached process. Nothing is armed. */
void ls_threads_restart(void);
/* In a process that others have started. Of many that live for a tick or less one that ends
 * counts a tick now and then, as one of many such threads does: each begins anywhere in a tick.
 * */
void ls_threads_in_child(void);
/* Ends the ticks of all threads, before exec. */
void ls_threads_stop(void);
/* After that: until the recorder sends no tick any more, to any thread (half a second at most: it
 * may have lost its processor between its last look and the signal). Returns 0, or -1: it may
 * still. perf_too: its events are closed then, too. */
int ls_threads_wait_for_recorder(int perf_too);
/* When exec failed: installs the handler and begins the ticks again, unless another thread is
 * about to exec. */
void ls_threads_go_on(void);
/* In the child after fork: this process writes nothing. Returns 0 when the fork interrupted our
 * own code, which will go on with the thread's tables and ring: then they must stay as they are.
 * */
int ls_threads_after_fork_child(void);
/* The child has memory of its own. Returns 1 when that of its parent may go. */
int ls_threads_leave_parent(void);

/* The table of threads, which attach/threads.c fills too: how an entry is made and freed. */

extern _Atomic(struct ls_thread *) ls_threads[LS_THREADS_MOST];         /* by ring */
extern pthread_mutex_t ls_threads_lock;

/* All with the lock held. */

/* A thread of the process with a ring; nothing is known of its stack. NULL = no ring is free, or
 * no memory. */
struct ls_thread *ls_thread_make(int tid);
/* The thread is gone, or runs no handler of ours: its ticks end, what is pending is sent, its
 * ring is given back. */
void ls_thread_unmake(struct ls_thread *t);
/* Frees what has no ring any more. */
void ls_thread_free(struct ls_thread *t);
/* The thread of this id, NULL = none that is shown. Without the lock: the caller's own id, which
 * is in use. */
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

/* The C stack of the first thread, and of another: from below here to its thread pointer. Any
 * context, on the thread. */
void ls_thread_find_stack(struct ls_thread *t, size_t size, uintptr_t here);
/* Makes it the calling thread's own. */
void ls_thread_own_it(struct ls_thread *t);

#endif
