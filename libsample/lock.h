/* Locks of the agent's normal code. A signal handler of the program's may call exec or exit, make
 * or end a thread or a VM, or wait for another thread that does: none runs on a thread that holds
 * one of these. Called by recording/threads.c and vm/vms.c; never in a signal handler of ours. */
#ifndef LS_LOCK_H
#define LS_LOCK_H

#include <pthread.h>
#include <signal.h>

#include "libsample/agent.h"

/* Blocks all signals of the thread, then takes the lock. *ret_mask: what was blocked before, for
 * ls_unlock. */
static inline void ls_lock(pthread_mutex_t *mutex, sigset_t *ret_mask)
{
        sigset_t all;

        sigfillset(&all);
        ls_real.sigprocmask(SIG_BLOCK, &all, ret_mask);
        pthread_mutex_lock(mutex);
}

static inline void ls_unlock(pthread_mutex_t *mutex, const sigset_t *mask)
{
        pthread_mutex_unlock(mutex);
        ls_real.sigprocmask(SIG_SETMASK, mask, NULL);
}

#endif
