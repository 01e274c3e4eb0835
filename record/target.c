/* One process that is recorded: see target.h. */
#include "record/target.h"

#include "formats/wire/clock.h"
#include "record/process/thread_ids.h"
#include "record/worker/worker.h"

#include <errno.h>
#include <signal.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void ls_target_clear(struct ls_target *t)
{
        static const struct ls_counted nothing;

        memset(t, 0, sizeof(*t));
        t->memory.fd = t->pidfd = -1;
        t->counted = &nothing;
}

int ls_target_init(struct ls_target *t, const struct ls_record_options *o)
{
        ls_target_clear(t);
        return ls_memory_init(&t->memory, o);
}

static void take_nothing(void *ctx)
{
        (void)ctx;
}

void ls_target_done(struct ls_target *t)
{
        if (t->watcher.pid) {           /* nothing was recorded */
                kill(t->watcher.pid, SIGKILL);
                ls_watcher_stop(&t->watcher, take_nothing, NULL);
        }
        ls_ticker_free(t->ticker);
        t->ticker = NULL;
        if (t->out)
                ls_out_done(t->out, t->number);
        t->out = NULL;
        ls_workers_hold(NULL, t->worker);
        ls_workers_hold(NULL, t->writers);
        t->worker = t->writers = NULL;
        ls_memory_done(&t->memory);
        if (t->pidfd >= 0)
                close(t->pidfd);
        t->pidfd = -1;
}

static uint64_t ring_u64(const _Atomic uint64_t *value)
{
        return atomic_load_explicit(value, memory_order_relaxed);
}

static int tell(const struct ls_target *t, enum ls_out_op op, uint64_t a, uint64_t b,
                struct ls_out_reply *ret)
{
        return ls_out_tell(t->out,
                           &(struct ls_out_message){
                                   .op = op, .target = t->number, .arg = { a, b } },
                           ret);
}

/* What it has counted comes after all that was sampled. */
static void tell_exact(const struct ls_target *t)
{
        int fd = t->memory.exact_fd;

        if (t->exact)
                ls_out_tell(t->out,
                            &(struct ls_out_message){ .op = LS_OUT_EXACT,
                                                      .target = t->number,
                                                      .arg = { t->exact },
                                                      .fds = { fd > 0 ? fd : 0 } },
                            NULL);
}

/* With the rights that the process has now; after its end, that it had. */
static void use_workers(struct ls_target *t)
{
        struct ls_worker *own = ls_workers_of(t->workers, t->pid, t->worker),
                         *w = ls_workers_of(t->lent, t->pid, t->writers);
        uint32_t tenant;
        unsigned place;

        ls_workers_hold(own, t->worker);
        t->worker = own;
        ls_workers_hold(w, t->writers);
        if (w != t->writers) {
                place = ls_worker_place(w, &tenant);
                tell(t, LS_OUT_WORKER, place, tenant, NULL);
        }
        t->writers = w;
}

/* The writer takes it in. Returns 0 or -errno. */
static int begin_there(struct ls_target *t, const struct ls_target_config *cfg)
{
        static struct ls_out_begin b;
        pid_t inner = ls_thread_inner_id(t->pid, t->pid);
        int number = ls_out_number(cfg->out, t->pid);
        struct ls_out_message m = { .op = LS_OUT_BEGIN,
                                    .target = (unsigned)number,
                                    .data = &b,
                                    .len = sizeof(b),
                                    .fds = { t->memory.fd,
                                             t->memory.watchers ? t->memory.watchers_fd : 0 } };

        if (number < 0)
                return -E2BIG;
        t->out = cfg->out;
        t->number = (unsigned)number;
        t->counted = &ls_out_figures(t->out)->targets[number];
        b.memory = t->memory;
        b.memory.shm = NULL;            /* where it is here is nobody's business */
        b.memory.watchers = NULL;
        b.memory.exact_fd = -1;
        b.start_ns = cfg->start_ns;
        b.ordinal = cfg->ordinal;
        b.pid = (int32_t)t->pid;
        b.other_namespace = inner && inner != t->pid;
        b.has_ticker = cfg->has_ticker;
        snprintf(b.cwd, sizeof(b.cwd), "%s", cfg->cwd);
        return ls_out_tell(t->out, &m, NULL);
}

int ls_target_begin(struct ls_target *t, pid_t pid, const struct ls_target_config *cfg)
{
        int err;

        t->pid = pid;
        t->exact = cfg->o->events & LS_RECORD_EXACT;
        t->workers = cfg->workers;
        t->lent = cfg->lent;
        if (clock_getcpuclockid(pid, &t->clock) != 0)
                t->clock = 0;
        t->generation = t->memory.shm->generation;
        t->begin_ns = ls_clock_ns(CLOCK_MONOTONIC);
        err = begin_there(t, cfg);
        if (err == 0)
                use_workers(t);
        return err;
}

void ls_target_since_now(struct ls_target *t)
{
        t->cpu_before_ns = t->clock ? ls_clock_ns(t->clock) : 0;
}

void ls_target_name(struct ls_target *t, const char *name)
{
        ls_out_tell(t->out,
                    &(struct ls_out_message){ .op = LS_OUT_NAME,
                                              .target = t->number,
                                              .data = name,
                                              .len = strlen(name) },
                    NULL);
        t->named = 1;
}

void ls_target_inherit(struct ls_target *child, const struct ls_target *parent)
{
        tell(child, LS_OUT_INHERIT, parent->number, 0, NULL);
}

int ls_target_tick(struct ls_target *t, enum ls_timer timer, const struct ls_record_options *o,
                   int full_fd)
{
        if (o->bare_tick == 2 || timer == LS_TIMER_CPUTIME)
                return 0;
        return ls_ticker_start(&t->memory, t->pid, timer, o->interval_ns, full_fd, &t->ticker);
}

/* What waits for a process's end has the writer make room in the rings. */
static void take_all(void *ctx)
{
        const struct ls_target *t = ctx;

        tell(t, LS_OUT_WORK, 0, 0, NULL);
}

void ls_target_second(struct ls_target *t)
{
        uint64_t cpu = t->clock ? ls_clock_ns(t->clock) : 0;

        if (t->finished)
                return;
        if (t->watcher.pid) {
                if (!t->ended && !t->watcher.told_ns)
                        ls_watcher_follow(&t->watcher, &t->memory, t->pid, take_all, t);
                t->watcher_cpu_ns = ls_watcher_cpu_ns(&t->watcher);
        }
        if (cpu > t->cpu_before_ns + t->cpu_ns)
                t->cpu_ns = cpu - t->cpu_before_ns;
        if (!t->ended && t->out)
                use_workers(t);
}

/* A process that has ended between two looks at its clock used at least what its threads did. */
static void use_thread_clocks(struct ls_target *t)
{
        struct ls_sums sums = { 0 };

        ls_target_sums(t, &sums);
        if (sums.cpu_ns > t->cpu_ns)
                t->cpu_ns = sums.cpu_ns;
}

int ls_target_watch(struct ls_target *t, const struct ls_record_options *o)
{
        if (!(o->events & (LS_RECORD_WALL | LS_RECORD_SUSPENDED)))
                return 0;
        return ls_watcher_start(&t->watcher, &t->memory, t->pid, o->interval_ns);
}

void ls_target_stop(struct ls_target *t)
{
        ls_ticker_stop(t->ticker);
}

void ls_target_tell(struct ls_target *t)
{
        atomic_store(&t->memory.shm->recording, 0);
        atomic_fetch_add(&t->memory.shm->request, 1);
        syscall(SYS_futex, &t->memory.shm->request, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        ls_watcher_told(&t->watcher);
}

void ls_target_finish(struct ls_target *t)
{
        if (t->finished)
                return;
        ls_target_tell(t);
        if (t->watcher.pid)
                t->watcher_cpu_ns = ls_watcher_stop(&t->watcher, take_all, t);
        t->end_ns = ls_clock_ns(CLOCK_MONOTONIC);
        ls_target_second(t);
        tell(t, LS_OUT_FINISH, (uint64_t)t->ended, 0, NULL);
        tell_exact(t);
        use_thread_clocks(t);
        t->finished = 1;
}

uint64_t ls_target_lost(const struct ls_target *t, enum ls_loss loss)
{
        uint64_t n = ring_u64(&t->memory.shm->lost[loss]);

        switch (loss) {                 /* what the writer and the recorder have counted */
        case LS_LOSS_ABANDONED: return n + t->counted->abandoned;
        case LS_LOSS_BAD_RECORD: return n + t->counted->bad_records;
        case LS_LOSS_TEXT_CUT: return n + t->counted->text_cut;
        case LS_LOSS_DEFINITION_LOST: return n + t->counted->definition_missing;
        case LS_LOSS_NATIVE_CUT: return n + t->counted->native_cut;
        case LS_LOSS_MAP_MISSING: return n + t->counted->map_missing;
        case LS_LOSS_SIGNAL_FAILED:
                return n + (t->ticker ? ls_ticker_totals(t->ticker)->failed : 0);
        default: return n;
        }
}

/* CPU time of the threads that have had a ring, while they were sampled. The agent adds it up when
 * sampling ends. */
static uint64_t ring_cpu(const struct ls_target *t, unsigned i)
{
        const struct ls_ring *ring = ls_memory_ring(&t->memory, i);
        uint64_t sum = ring_u64(&ring->armed_cpu_ns), last, start;
        uint64_t paused = ring_u64(&ring->paused_cpu_ns);

        /* Of the thread that has it now, the clock at its last tick is the next best. */
        last = atomic_load_explicit(&ring->armed, memory_order_relaxed)
                       ? ring_u64(&ring->last_cpu_ns)
                       : 0;
        start = ring_u64(&ring->armed_at_cpu_ns);
        sum += last > start ? last - start : 0;
        return sum > paused ? sum - paused : 0;
}

static void add_sums(struct ls_sums *sums, const struct ls_sums *more)
{
        uint64_t *x = (uint64_t *)sums;
        const uint64_t *y = (const uint64_t *)more;

        _Static_assert(sizeof(*sums) % sizeof(uint64_t) == 0, "sums are numbers of 64 bits");
        for (size_t i = 0; i < sizeof(*sums) / sizeof(uint64_t); i++)
                x[i] += y[i];
}

void ls_target_hold(struct ls_target *t, int hold)
{
        t->is_held = 0;
        memset(&t->held, 0, sizeof(t->held));
        if (hold)
                ls_target_sums(t, &t->held);
        t->is_held = hold;
}

/* A number of all the agent's rings: that at this offset of each. */
static uint64_t rings_u64(const struct ls_target *t, size_t offset)
{
        uint64_t sum = 0;

        for (unsigned i = 0, n = ls_memory_rings(&t->memory); i < n; i++)
                sum += ring_u64(
                        (const _Atomic uint64_t *)(const void *)((const char *)
                                                                         ls_memory_ring(&t->memory,
                                                                                        i) +
                                                                 offset));
        return sum;
}

static uint64_t rings_cpu(const struct ls_target *t)
{
        uint64_t sum = 0;

        for (unsigned i = 0, n = ls_memory_rings(&t->memory); i < n; i++)
                sum += ring_cpu(t, i);
        return sum;
}

void ls_target_sums(const struct ls_target *t, struct ls_sums *sums)
{
        const struct ls_shm *shm = t->memory.shm;

        if (t->is_held) {
                add_sums(sums, &t->held);
                return;
        }
#define LS_FIGURE(field, INFO, switched, value) sums->field += value;
#include "record/figures.def"
#undef LS_FIGURE
        for (unsigned i = 0; i < LS_NLOSSES; i++)
                sums->lost[i] += ls_target_lost(t, (enum ls_loss)i);
}
