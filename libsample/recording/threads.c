/* Rings and ticks for the threads of the program. See thread.h. A thread gets a ring when it begins
 * (interpose/thread.c) or makes a VM, and ticks once there is a VM in the process. */

#include "libsample/recording/threads.h"

#include "libsample/handler/labels.h"
#include "libsample/thread.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "formats/wire/clock.h"
#include "libsample/agent.h"
#include "libsample/handler/coroutines.h"
#include "libsample/handler/functions.h"
#include "libsample/handler/names_search.h"
#include "libsample/handler/native.h"
#include "libsample/handler/ring_writer.h"
#include "libsample/handler/sample.h"
#include "libsample/handler/sources.h"
#include "libsample/handler/zones.h"
#include "libsample/libc/real.h"
#include "libsample/lock.h"
#include "libsample/pages.h"
#include "libsample/recording/notice.h"
#include "libsample/recording/share.h"
#include "libsample/recording/threads_lost.h"
#include "libsample/recording/tick_action.h"

/* How long to wait for the recorder's helper to be done with a signal; it needs a microsecond
 * unless it is stopped. */
#define SENDING_SPINS 10000
#define ANSWER_NS UINT64_C(500000000)   /* for the recorder to stop the ticks, on a busy machine */

_Atomic(struct ls_thread *) ls_threads[LS_THREADS_MOST];
static atomic_int tids[LS_THREADS_MOST];        /* by ring; a handler finds its own by it, and looks
                                                 * at nothing that others free */
pthread_mutex_t ls_threads_lock = PTHREAD_MUTEX_INITIALIZER;
static int arming;                      /* there is a VM: threads get ticks */
static unsigned stops;                  /* threads that are about to exec: none gets ticks
                                         * meanwhile */
static uint32_t next_thread_id;

static pthread_key_t at_thread_end;
static int have_key;

static struct ls_ring *ring_at(unsigned i)
{
        return (struct ls_ring *)((char *)ls_agent.shm + ls_ring_offset(ls_agent.shm->ring_size,
                                                                        ls_agent.shm->ring_stride,
                                                                        i));
}

static void wake_recorder(void)
{
        atomic_fetch_add(&ls_agent.shm->request, 1);
        syscall(SYS_futex, &ls_agent.shm->request, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The program's own destructors may run Lua: ours waits until they have had their rounds. */
static void thread_ends(void *value)
{
        static __thread int rounds __attribute__((tls_model("initial-exec")));

        if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS &&
            !ls_libc()->pthread_setspecific(at_thread_end, value))
                return;
        if (ls_agent_live())
                ls_thread_end();
}

/* With the lock held. Threads may come with a library that is loaded late: then there was none for
 * the first. */
static void make_key(void)
{
        if (!have_key)
                have_key = ls_libc()->pthread_key_create(&at_thread_end, thread_ends) == 0;
}

/* The first thread's stack begins below the environment, and grows as far as its limit allows. */
static void first_stack(struct ls_thread *t)
{
        extern void *__libc_stack_end;
        struct rlimit limit = { 8u << 20, 8u << 20 };

        getrlimit(RLIMIT_STACK, &limit);
        if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > 1u << 30)
                limit.rlim_cur = 1u << 30;
        t->stack_high = (uintptr_t)__libc_stack_end;
        t->stack_low = t->stack_high > limit.rlim_cur ? t->stack_high - limit.rlim_cur : 1;
}

/* The C library keeps its data of a thread at the top of the thread's stack. It is not asked: its
 * answer is allocated. size: bytes, 0 = not known. */
static void other_stack(struct ls_thread *t, size_t size, uintptr_t here)
{
        uintptr_t high = (uintptr_t)pthread_self();

        if (size == 0)
                size = 8u << 20;
        if (high <= here || high - here > size)
                return;
        t->stack_high = high;
        t->stack_low = high > size ? high - size : 1;
}

void ls_thread_find_stack(struct ls_thread *t, size_t size, uintptr_t here)
{
        if (t->tid == ls_agent.pid)
                first_stack(t);
        else
                other_stack(t, size, here);
}

void ls_thread_free(struct ls_thread *t)
{
        if (!t)
                return;
        ls_functions_free(t->functions);
        ls_sources_free(t->sources);
        ls_coroutines_free(t->coroutines);
        ls_zones_free(t->zones);
        ls_label_cache_free(t->labels);
        ls_names_free(t->names);
        if (t->sampler) {
                ls_native_free(t->sampler->native);
                for (int i = 0; i < 2; i++)
                        ls_pages_free(t->sampler->walks[i].frames,
                                      t->sampler->walks[i].room * sizeof(struct ls_wframe));
                ls_pages_free(t->sampler, sizeof *t->sampler);
        }
        ls_pages_free(t, sizeof *t);
}

static struct ls_thread *new_thread(void)
{
        struct ls_thread *t = ls_pages_new(sizeof *t);

        if (!t)
                return NULL;
        t->functions = ls_functions_new();
        t->sources = ls_sources_new();
        t->coroutines = ls_coroutines_new();
        t->zones = ls_zones_new();
        t->labels = ls_label_cache_new();
        t->names = ls_names_new();
        t->sampler = ls_pages_new(sizeof *t->sampler);
        if (!t->functions || !t->sources || !t->coroutines || !t->zones || !t->labels ||
            !t->names || !t->sampler) {
                ls_thread_free(t);
                return NULL;
        }
        t->sampler->native = ls_native_new();
        return t;
}

/* The recorder has put no size into rings but the first: each would take a page of memory. */
static int fits(struct ls_ring *ring)
{
        if (!ring->size)
                ring->size = ls_agent.shm->small_size;
        return ring->size >= 4096 && !(ring->size & (ring->size - 1)) &&
               LS_RING_DATA + (uint64_t)ring->size <= ls_agent.shm->ring_stride;
}

/* A ring that no thread has, for this one. The first is that of the process's first thread. */
static struct ls_ring *claim(int tid, unsigned *ret_index)
{
        unsigned n = ls_agent.shm->ring_count < LS_THREADS_MOST ? ls_agent.shm->ring_count
                                                                : LS_THREADS_MOST;
        int first = tid == getpid();

        for (unsigned i = first || n == 1 ? 0 : 1; i < n; i++) {
                struct ls_ring *ring = ring_at(i);
                uint32_t nobody = 0;

                if (ls_share_grow(ls_agent.shm, &ls_agent.mapped, i))
                        break;
                if (i && !fits(ring))
                        continue;
                if (ls_threads[i] ||
                    !atomic_compare_exchange_strong(&ring->tid, &nobody, (uint32_t)tid))
                        continue;
                atomic_fetch_add(&ring->claim, 1);
                if (atomic_load(&ls_agent.shm->rings_used) <= i)
                        atomic_store(&ls_agent.shm->rings_used, i + 1);
                *ret_index = i;
                if (i >= n / 2)
                        ls_ring_call_recorder();
                return ring;
        }
        ls_ring_call_recorder();        /* rings of threads that have ended are free when it has
                                         * seen that */
        return NULL;
}

static void start_timer(struct ls_thread *t)
{
        struct ls_sampler *s = t->sampler;
        uint64_t ns = ls_agent.shm->interval_ns;
        struct timespec period = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
        struct itimerspec spec = { period, period };

        if (!s->has_timer) {
                struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
                                          .sigev_signo = LS_TICK_SIGNAL };

                event._sigev_un._tid = t->tid;
                if (syscall(SYS_timer_create, ls_thread_clock(t->tid), &event, &s->timer)) {
                        ls_agent_notice("no CPU-time timer can be had (%s): use --timer helper",
                                        strerror(errno));
                        return;
                }
                s->has_timer = 1;
        }
        syscall(SYS_timer_settime, s->timer, 0, &spec, NULL);
}

static uint64_t cpu_of(const struct ls_thread *t)
{
        return t == ls_thread_own ? ls_thread_cpu_ns() : ls_clock_ns(ls_thread_clock(t->tid));
}

void ls_thread_arm(struct ls_thread *t)
{
        struct ls_sampler *s = t->sampler;

        if (ls_agent.shm->bare_tick == 2 || t->quiet || atomic_load(&t->ring->armed))
                return;
        s->cpu_start = cpu_of(t);
        atomic_store(&t->ring->armed_at_cpu_ns, s->cpu_start);
        atomic_store(&s->last_cpu_ns, s->cpu_start);
        s->remainder_ns = 0;
        s->traced = atomic_load(&ls_agent.shm->traced);
        s->ready = 1;
        atomic_store(&t->ring->armed, 1);
        if (ls_agent.shm->timer == LS_TIMER_CPUTIME)
                start_timer(t);
        wake_recorder();
}

static int own_blocks;                  /* with the lock held: the calling thread blocked ticks
                                         * before it took the lock */

static _Atomic uint64_t parts_ns;       /* what threads have left of less than a tick */

void ls_threads_in_child(void)
{
        atomic_store(&parts_ns, ls_now_ns() % ls_agent.shm->interval_ns);
}

/* What is left of less than a tick: nothing of a thread that lived long, and most of those that
 * live for a tick or less. */
static void count_parts(struct ls_thread *t, uint64_t ns)
{
        uint64_t interval = ls_agent.shm->interval_ns, before = atomic_fetch_add(&parts_ns, ns);
        uint64_t ticks = (before + ns) / interval - before / interval;

        atomic_fetch_add(&t->ring->ticks, ticks);
        ls_lose(LS_LOSS_THREAD_ENDED, ticks);
}

/* CPU time since the last tick: it had no tick of its own, so it is counted as one that met no safe
 * point, or was blocked. */
static void count_rest(struct ls_thread *t)
{
        struct ls_sampler *s = t->sampler;
        uint64_t cpu = cpu_of(t), last = atomic_load(&s->last_cpu_ns),
                 interval = ls_agent.shm->interval_ns, rest, ticks;

        if (cpu < last)                 /* 0: it has ended */
                cpu = last;
        if (cpu > s->cpu_start)
                atomic_fetch_add(&t->ring->armed_cpu_ns, cpu - s->cpu_start);
        s->cpu_start = cpu;
        if (ls_agent.shm->bare_tick)
                return;
        atomic_store(&s->last_cpu_ns, cpu);
        rest = s->remainder_ns + cpu - last;
        ticks = rest / interval;
        s->remainder_ns = 0;
        if (ls_sampler_paused(s, ls_agent.shm)) {
                atomic_fetch_add(&t->ring->paused_cpu_ns, ticks * interval);
        } else {
                atomic_fetch_add(&t->ring->ticks, ticks);
                ls_thread_lose_rest(t, ticks, own_blocks);
                count_parts(t, rest - ticks * interval);
        }
        atomic_store(&t->ring->last_cpu_ns, cpu);
}

/* When this returns the recorder sends no further signal; one may be pending. */
void ls_thread_disarm(struct ls_thread *t)
{
        struct itimerspec never = { 0 };

        if (!atomic_load(&t->ring->armed))
                return;
        if (t->sampler->has_timer)
                syscall(SYS_timer_settime, t->sampler->timer, 0, &never, NULL);
        atomic_store(&t->ring->armed, 0);
        wake_recorder();
        for (int i = 0; i < SENDING_SPINS && atomic_load(&t->ring->sending); i++)
                if (i > 100)
                        syscall(SYS_sched_yield);
        t->sampler->ready = 0;
        count_rest(t);
        atomic_store(&t->ring->disarmed_ns, ls_now_ns());
}

static int is_forked(struct ls_thread *t);

struct ls_thread *ls_thread_make(int tid)
{
        unsigned index = 0;
        struct ls_ring *ring = claim(tid, &index);
        struct ls_thread *t = ring ? new_thread() : NULL;

        if (!t) {
                if (ring)
                        atomic_store(&ring->tid, 0);
                return NULL;
        }
        t->ring = ring;
        t->index = index;
        t->tid = tid;
        t->thread_id = ++next_thread_id;
        ls_threads[index] = t;
        ls_thread_show(t);
        atomic_store(&ring->thread, (uintptr_t)t);
        return t;
}

struct ls_thread *ls_thread_of(int tid)
{
        for (unsigned i = 0; i < LS_THREADS_MOST; i++)
                if (atomic_load(&tids[i]) == tid)
                        return ls_threads[i];
        return NULL;
}

void ls_thread_show(const struct ls_thread *t)
{
        atomic_store(&tids[t->index], t->tid);
}

void ls_thread_hide(const struct ls_thread *t)
{
        atomic_store(&tids[t->index], 0);
}

int ls_threads_are_arming(void)
{
        return arming && !stops;
}

void ls_thread_own_it(struct ls_thread *t)
{
        ls_thread_own = t;
        ls_thread_own_generation = *ls_agent.generation;
}

void ls_thread_begin(size_t stack_size)
{
        int saved = errno, tid = (int)syscall(SYS_gettid);
        struct ls_thread *t;
        sigset_t mask;

        if (!ls_agent_live() || ls_thread_self())
                return;
        ls_lock(&ls_threads_lock, &mask);
        if (!ls_agent.attached)
                make_key();
        t = ls_agent.attached ? ls_thread_of(tid) : NULL;
        if (!t)
                t = ls_thread_make(tid);
        if (!t) {
                ls_unlock(&ls_threads_lock, &mask);
                if (!ls_agent.attached)         /* else it comes again, and is counted by
                                                 * attach/threads.c */
                        atomic_fetch_add(&ls_agent.shm->nthreads_unrecorded, 1);
                errno = saved;
                return;
        }
        if (!is_forked(t))
                ls_thread_find_stack(t, stack_size, (uintptr_t)__builtin_frame_address(0));
        ls_thread_own_it(t);
        ls_sample_describe_thread(t);
        atomic_fetch_add(&ls_agent.shm->nthreads_seen, 1);
        if (have_key && tid != getpid())
                ls_libc()->pthread_setspecific(at_thread_end, t);
        if (ls_threads_are_arming())
                ls_thread_arm(t);
        ls_unlock(&ls_threads_lock, &mask);
        errno = saved;
}

void ls_thread_begin_quiet(void)
{
        ls_thread_begin(0);
        if (ls_thread_self())
                ls_thread_self()->quiet = 1;
        atomic_store(&ls_agent.shm->nthreads_seen, 0);
}

/* With the lock held. */
static void arm_all(void)
{
        for (unsigned i = 0; i < LS_THREADS_MOST; i++)
                if (ls_threads_are_arming() && ls_threads[i])
                        ls_thread_arm(ls_threads[i]);
}

void ls_threads_arm_all(void)
{
        sigset_t mask;

        ls_lock(&ls_threads_lock, &mask);
        arming = ls_tick_action_is_installed();       /* the thread may come late: the attachment
                                                       * that it armed for has ended */
        arm_all();
        ls_unlock(&ls_threads_lock, &mask);
}

int ls_thread_flush(struct ls_thread *t)
{
        struct ls_ticks ticks;

        if (t->busy || t->sampler->inside)      /* a handler of the program's has interrupted
                                                 * ours */
                return 0;
        ls_thread_enter(t);
        ls_sample_flush_outside(t, NULL);
        ls_ticks_take(t->sampler, &ticks);
        if (ticks.sum)
                ls_lose(LS_LOSS_NO_SAFE_POINT, ticks.sum);
        ls_sources_send_text(t);
        ls_thread_leave(t);
        return 1;
}

void ls_thread_unmake(struct ls_thread *t)
{
        ls_thread_disarm(t);
        if (t->sampler->has_timer)
                syscall(SYS_timer_delete, t->sampler->timer);
        t->sampler->has_timer = 0;
        ls_thread_flush(t);
        ls_thread_hide(t);
        ls_threads[t->index] = NULL;
        atomic_store(&t->ring->thread, 0);
        atomic_store(&t->ring->closing, 1);
        wake_recorder();
}

void ls_thread_end(void)
{
        struct ls_thread *t = ls_thread_own;
        int saved = errno;
        sigset_t mask;

        if (!t)
                return;
        ls_lock(&ls_threads_lock, &mask);
        own_blocks = sigismember(&mask, LS_TICK_SIGNAL) == 1;
        ls_thread_unmake(t);
        ls_thread_own = NULL;
        ls_unlock(&ls_threads_lock, &mask);
        ls_thread_free(t);
        errno = saved;
}

void ls_threads_restart(void)
{
        arming = 0;
        stops = 0;
}

void ls_threads_stop(void)
{
        sigset_t mask;

        ls_lock(&ls_threads_lock, &mask);
        own_blocks = sigismember(&mask, LS_TICK_SIGNAL) == 1;
        stops++;
        for (unsigned i = 0; i < LS_THREADS_MOST; i++) {
                if (!ls_threads[i] || !atomic_load(&ls_threads[i]->ring->armed))
                        continue;
                ls_thread_disarm(ls_threads[i]);
                if (ls_threads[i] == ls_thread_own)
                        ls_thread_flush(ls_threads[i]);
        }
        ls_unlock(&ls_threads_lock, &mask);
}

/* 1 while the recorder may send a signal to this ring's thread. */
static int is_ticked(const struct ls_ring *ring, int perf_too)
{
        return atomic_load(&ring->sending) || (perf_too && atomic_load(&ring->ticked));
}

int ls_threads_wait_for_recorder(int perf_too)
{
        const struct ls_shm *shm = ls_agent.shm;
        uint64_t start = ls_now_ns();
        int ticked;

        do {
                ticked = 0;
                for (unsigned i = 0;
                     i < atomic_load(&shm->rings_used) && ls_share_has(shm, ls_agent.mapped, i);
                     i++)
                        ticked |= is_ticked(ring_at(i), perf_too);
                if (ticked)
                        syscall(SYS_nanosleep, &(struct timespec){ 0, 50000 }, NULL);
        } while (ticked && ls_now_ns() - start < ANSWER_NS);
        return ticked ? -1 : 0;
}

void ls_threads_go_on(void)
{
        sigset_t mask;

        ls_lock(&ls_threads_lock, &mask);
        stops -= stops > 0;             /* 0: the attachment that they were stopped for has ended */
        if (ls_threads_are_arming())
                ls_tick_action_install();
        arm_all();
        ls_unlock(&ls_threads_lock, &mask);
}

static struct ls_thread *forked;        /* in a forked child: what the thread that forked had in the
                                         * parent */

static int is_idle(const struct ls_thread *t)
{
        return !t->busy && !t->sampler->inside;
}

int ls_threads_after_fork_child(void)
{
        static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

        memcpy(&ls_threads_lock, &fresh, sizeof fresh); /* another thread may have had it */
        for (unsigned i = 0; i < LS_THREADS_MOST; i++) {
                if (ls_threads[i]) {
                        ls_threads[i]->sampler->ready = 0;
                        ls_threads[i]->sampler->has_timer = 0;
                        ls_thread_hide(ls_threads[i]);
                        ls_threads[i] = NULL;
                }
                atomic_store(&ls_vm_readers[i], NULL);
        }
        ls_threads_restart();
        /* one that was attached to records no children, and its threads keep what an attachment
         * that has ended gave them */
        forked = ls_agent.attached ? NULL : ls_thread_own;
        ls_thread_own = NULL;
        return !forked || is_idle(forked);
}

int ls_threads_leave_parent(void)
{
        int idle = !forked || is_idle(forked);

        if (idle)
                ls_thread_free(forked);
        forked = NULL;
        return idle;
}

/* The thread that forked is the child's first one, on the stack that it had: VMs know it by its
 * number. */
static int is_forked(struct ls_thread *t)
{
        if (!forked || t->tid != getpid())
                return 0;
        t->stack_low = forked->stack_low;
        t->stack_high = forked->stack_high;
        t->thread_id = forked->thread_id;
        for (unsigned i = 0; i < LS_VMS_MOST && i < atomic_load(&ls_vms_used); i++)
                if (atomic_load(&ls_vms[i].closing) == forked)
                        atomic_store(&ls_vms[i].closing, t);
        return 1;
}
