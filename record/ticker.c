/* Ticks for the program: see ticker.h. Before it execs the agent must be sure that no tick is under way. With helper
 * there is a handshake: we set sending, then look at armed once more; the agent clears armed, then waits for sending
 * to be 0. With perf the kernel removes the event in exec, and the agent has the signal ignored meanwhile. */
#include "record/ticker_private.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct ls_tick_source *const sources[] = {
        [LS_TIMER_PERF] = &ls_tick_source_perf,
        [LS_TIMER_HELPER] = &ls_tick_source_helper,
};

void ls_ticker_sleep(struct ls_ticker *t, uint32_t request, uint64_t ns)
{
        struct timespec timeout = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

        if (!atomic_load(&t->stop))
                syscall(SYS_futex, &t->shm->request, FUTEX_WAIT, request, &timeout, NULL, 0);
}

static int arm(struct ls_ticker *t, pid_t tid)
{
        int err = t->source->arm(t, tid);

        /* The event may be forbidden for this one process, such as one that is not dumpable. */
        if (err < 0 && err != -ESRCH && t->source == &ls_tick_source_perf) {
                t->source = &ls_tick_source_helper;
                atomic_store(&t->timer, LS_TIMER_HELPER);
                err = t->source->arm(t, tid);
        }
        if (err < 0 && err != -ESRCH)
                atomic_fetch_add(&t->totals.failed, 1);
        return err;
}

static void *ticker_thread(void *arg)
{
        struct ls_ticker *t = arg;
        int armed = 0;

        while (!atomic_load(&t->stop)) {
                uint32_t request = atomic_load(&t->shm->request);
                pid_t tid = (pid_t)atomic_load(&t->shm->tick_tid);
                int want = atomic_load(&t->shm->armed) && tid > 0;

                if (armed) {
                        t->source->disarm(t);
                        armed = 0;
                }
                if (want)
                        armed = arm(t, tid) == 0;
                do {
                        if (armed)
                                t->source->wait(t, request);
                        else
                                ls_ticker_sleep(t, request, LS_TICKER_IDLE_NS);
                } while (!atomic_load(&t->stop) && atomic_load(&t->shm->request) == request && (armed || !want));
        }
        if (armed)
                t->source->disarm(t);
        return NULL;
}

int ls_ticker_start(const struct ls_memory *m, pid_t pid, enum ls_timer timer, uint64_t interval_ns,
                    struct ls_ticker **ret)
{
        struct ls_ticker *t = calloc(1, sizeof(*t));
        sigset_t all, old;
        int err;

        if (!t)
                return -ENOMEM;
        t->shm = m->shm;
        t->pid = pid;
        t->interval_ns = interval_ns;
        t->source = sources[timer];
        t->timer = timer;
        t->event_fd = -1;
        t->look_fd = t->cpu_fd = -1;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        err = pthread_create(&t->thread, NULL, ticker_thread, t);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        if (err) {
                free(t);
                return -err;
        }
        *ret = t;
        return 0;
}

void ls_ticker_stop(struct ls_ticker *t)
{
        if (!t || atomic_exchange(&t->stop, 1))
                return;
        syscall(SYS_futex, &t->shm->request, FUTEX_WAKE, 1, NULL, NULL, 0);
        pthread_join(t->thread, NULL);
}

void ls_ticker_free(struct ls_ticker *t)
{
        ls_ticker_stop(t);
        free(t);
}

enum ls_timer ls_ticker_timer(const struct ls_ticker *t)
{
        return (enum ls_timer)atomic_load(&t->timer);
}

const struct ls_ticker_totals *ls_ticker_totals(const struct ls_ticker *t)
{
        return &t->totals;
}
