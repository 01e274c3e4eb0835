/* Threads of a program that is to be attached to: which is best to stop, and what a stop does to
 * it. Called by inject.c and stop.c. */
#ifndef LS_RECORD_ATTACH_THREADS_H
#define LS_RECORD_ATTACH_THREADS_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "record/attach/modules.h"

#define LS_THREADS_TRIED 64u

/* Threads, those first that a stop disturbs least. Returns how many. A thread that waits with a
 * time limit in a system call that cannot go on after a stop is waited for, up to a second. */
unsigned ls_threads_by_ease(pid_t pid, pid_t ret[LS_THREADS_TRIED]);
/* 1 when the thread has ended, and is listed still: a first thread that did so (pthread_exit) stays
 * while others run. */
int ls_thread_has_ended(pid_t pid, pid_t tid);
/* 1 when it runs, or would if it had a processor. */
int ls_thread_is_ready(pid_t pid, pid_t tid);
/* 1 when the thread, which was asked to stop at that time (CLOCK_MONOTONIC), stays in the kernel
 * for too long: a second. One that merely waits for a processor has 20 s. */
int ls_thread_is_late(pid_t pid, pid_t tid, uint64_t asked_ns);
/* A thread of the process that lives: the first, or else another. What /proc/PID says of memory,
 * files and program holds for the first thread only, so it is read as /proc/THREAD. 0 = all have
 * ended. */
pid_t ls_thread_living(pid_t pid);
/* How long the thread sleeps already, ns; 0 = it does not, or this kernel does not tell. */
uint64_t ls_thread_asleep_ns(pid_t pid, pid_t tid);
/* regs: of a stopped thread, which slept so long before. A system call that ended with EINTR
 * because of the stop alone is begun again when the thread goes on with them, for the rest of its
 * time; the kernel does that for most, and not for these. Returns 1 when they have changed. */
int ls_thread_call_again(pid_t pid, pid_t tid, uint64_t asleep_ns, struct user_regs_struct *regs);
/* 1 when the stopped thread is in a restartable sequence (rseq), which may not be left for other
 * code and then resumed. */
int ls_thread_in_rseq(pid_t tid, const struct ls_modules *ms, uint64_t ip);
/* Tells the stopped thread with this thread data (address of its TCB) that it is not the only one
 * any more, as pthread_create would: a C library before 2.36 asks in each thread whether it has to
 * lock. version: see struct ls_object. */
void ls_thread_has_company(const struct ls_modules *ms, uint64_t tcb, unsigned version);
/* Why a thread may not be traced, for the error of the attempt: -EBUSY another traces it, -ESRCH it
 * has ended, or err. */
int ls_thread_seize_error(pid_t pid, pid_t tid, int err);
#endif
