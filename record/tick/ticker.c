/* Ticks for the program: see ticker.h. Before it execs the agent must be sure that no tick is under
 * way. With helper there is a handshake: we set sending, then look at armed once more; the agent
 * clears armed, then waits for sending to be 0. With perf the kernel removes the event in exec, and
 * the agent has the signal ignored meanwhile. */
#include "record/tick/ticker.h"

#include "record/process/descriptors.h"
#include "record/process/thread_ids.h"
#include "record/tick/helper.h"
#include "record/tick/perf.h"
#include "record/tick/request.h"
#include "record/tick/told.h"
#include "record/tick/traced.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct ls_tick_source *const sources[] = {
        [LS_TIMER_PERF] = &ls_tick_source_perf,
        [LS_TIMER_HELPER] = &ls_tick_source_helper,
};

/* Returns 0 or -errno; -EAGAIN: not now. */
static int arm(struct ls_ticker *t, struct ls_tick_thread *h)
{
        int err;

        if (ls_tick_would_be_told(t, h))
                return -EAGAIN;
        atomic_store(&h->ring->ticked, 1);
        err = t->source->arm(t, h);
        /* The event may be forbidden for this one process, such as one that is not dumpable. */
        if (err < 0 && err != -ESRCH && err != -EMFILE && t->source == &ls_tick_source_perf &&
            !t->n_armed) {
                t->source = &ls_tick_source_helper;
                atomic_store(&t->timer, LS_TIMER_HELPER);
                err = t->source->arm(t, h);
        }
        if (err < 0 && err != -ESRCH)
                atomic_fetch_add(&t->totals.failed, 1);
        h->armed = err == 0;
        atomic_store(&h->ring->ticked, (uint32_t)h->armed);
        t->n_armed += err == 0;
        return err;
}

static void disarm(struct ls_ticker *t, struct ls_tick_thread *h)
{
        if (!h->armed)
                return;
        t->source->disarm(h);
        atomic_store(&h->ring->ticked, 0);
        h->armed = 0;
        t->n_armed--;
}

int ls_ticker_follow(struct ls_ticker *t)
{
        uint32_t used = atomic_load(&t->shm->rings_used);
        int missing = 0, traced = ls_tick_is_traced(t);

        if (used > t->used)             /* never fewer: what is armed is looked after */
                t->used = used < t->n ? used : t->n;
        for (unsigned i = 0; i < t->used; i++) {
                struct ls_tick_thread *h = &t->threads[i];
                uint32_t claim;
                pid_t tid = ls_tick_wanted(h->ring, &claim);

                if (h->armed && (traced || tid != h->inner_tid || claim != h->claim))
                        disarm(t, h);
                if (traced || tid <= 0 || h->armed)
                        continue;
                /* The agent, about to exec, clears armed and then waits for this: no event may be
                 * opened after that, which would tick the new image before its handler is there. */
                atomic_store(&h->ring->sending, 1);
                if (ls_tick_wanted(h->ring, &claim) == tid) {
                        h->inner_tid = tid;
                        h->tid = t->other_namespace ? ls_thread_outer_id(t->pid, tid) : tid;
                        h->claim = claim;
                        missing |= arm(t, h) < 0;
                }
                atomic_store(&h->ring->sending, 0);
        }
        if (!t->n_armed)
                t->next_ns = 0;
        return missing;
}

#define SLICE_NS 100000ull /* the least that the kernel takes; a tick needs a tenth of it */

/* On a busy machine this thread should not wait for its turn: from Linux 6.12 on a thread that says
 * that it runs but shortly goes before those that do not. Older kernels do not look at it. */
static void run_shortly(void)
{
        struct {                        /* the kernel's struct sched_attr, which not every libc
                                         * has */
                uint32_t size, policy;
                uint64_t flags;
                int32_t nice;
                uint32_t priority;
                uint64_t runtime, deadline, period;
        } attr = { .size = sizeof(attr) };

        if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0 ||
            attr.policy != 0 /* SCHED_OTHER */)
                return;
        attr.flags = 0;
        attr.runtime = SLICE_NS;
        syscall(SYS_sched_setattr, 0, &attr, 0);
}

/* The agent can wake this thread, and not the one that empties the rings, which waits for other
 * things too. */
static void pass_on(const struct ls_ticker *t)
{
        const uint64_t one = 1;

        if (t->full_fd >= 0 && atomic_load(&t->shm->filling) &&
            write(t->full_fd, &one, sizeof(one)) < 0)
                return;                 /* it is readable already */
}

static void *ticker_thread(void *arg)
{
        struct ls_ticker *t = arg;
        uint64_t retry_ns = 0;

        run_shortly();
        while (!atomic_load(&t->stop)) {
                uint32_t request = atomic_load(&t->shm->request);
                int missing = ls_ticker_follow(t), traced = (int)(t->traced & 1);

                pass_on(t);
                if (missing)
                        retry_ns = ls_clock_ns(CLOCK_MONOTONIC) + LS_TICKER_IDLE_NS;
                do {
                        if (t->n_armed)
                                t->source->wait(t, request);
                        else
                                ls_ticker_sleep(t, request, LS_TICKER_IDLE_NS);
                } while (!atomic_load(&t->stop) && atomic_load(&t->shm->request) == request &&
                         ls_tick_is_traced(t) == traced &&
                         !(missing && ls_clock_ns(CLOCK_MONOTONIC) >= retry_ns));
        }
        for (unsigned i = 0; i < t->used; i++)
                disarm(t, &t->threads[i]);
        return NULL;
}

int ls_ticker_start(const struct ls_memory *m, pid_t pid, enum ls_timer timer, uint64_t interval_ns,
                    int full_fd, struct ls_ticker **ret)
{
        struct ls_ticker *t =
                calloc(1, sizeof(*t) + m->of[LS_ROLE_AGENT].n * sizeof(t->threads[0]));
        sigset_t all, old;
        int err;

        if (!t)
                return -ENOMEM;
        t->shm = m->shm;
        t->pid = pid;
        t->interval_ns = interval_ns;
        t->full_fd = full_fd;
        t->random = ls_clock_ns(CLOCK_MONOTONIC) | 1;
        t->other_namespace = ls_thread_inner_id(pid, pid) != pid;
        t->is_virtual = ls_ticker_is_virtual();
        t->source = sources[timer];
        t->timer = timer;
        t->n = m->of[LS_ROLE_AGENT].n;
        for (unsigned i = 0; i < t->n; i++)
                t->threads[i] = (struct ls_tick_thread){ .ticker = t,
                                                         .ring = ls_memory_ring(m, i),
                                                         .event_fd = -1,
                                                         .cpu_fd = -1,
                                                         .look_fd = -1 };
        ls_allow_files(64 + 4 * t->n);  /* up to three for each thread */
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
        atomic_fetch_add(&t->shm->request, 1);  /* it may be about to sleep */
        syscall(SYS_futex, &t->shm->request, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
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
