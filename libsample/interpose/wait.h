/* Keeps the tick's signal away from a call that would return EINTR for it. For the files of
 * interpose/. */
#ifndef LS_LIBSAMPLE_INTERPOSE_WAIT_H
#define LS_LIBSAMPLE_INTERPOSE_WAIT_H

#include <errno.h>
#include <signal.h>

#include "libsample/agent.h"
#include "libsample/libc/real.h"
#include "libsample/thread.h"

struct ls_wait {
        int blocked;            /* 1 = ls_wait_end unblocks the signal */
};

/* 1 when this thread is ticked. That holds for each timer: the perf event counts in user code only,
 * but its signal may come a few microseconds later, when the thread is in its call already (21 of
 * 2500 polls at 250 us). */
static inline int ls_wait_needed(void)
{
        const struct ls_shm *shm = ls_agent.shm;

        return shm && ls_thread_own && atomic_load(&ls_thread_own->ring->armed);
}

static inline void ls_wait_begin(struct ls_wait *wait, int when)
{
        sigset_t set, old;

        wait->blocked = 0;
        if (!when || !ls_wait_needed())
                return;
        sigemptyset(&set);
        sigaddset(&set, LS_TICK_SIGNAL);
        wait->blocked = ls_real.sigprocmask(SIG_BLOCK, &set, &old) == 0 &&
                        !sigismember(&old, LS_TICK_SIGNAL);
}

static inline void ls_wait_end(const struct ls_wait *wait)
{
        int saved = errno;
        sigset_t set;

        if (!wait->blocked)
                return;
        sigemptyset(&set);
        sigaddset(&set, LS_TICK_SIGNAL);
        ls_real.sigprocmask(SIG_UNBLOCK, &set, NULL);
        errno = saved;
}

#endif
