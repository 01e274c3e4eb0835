/* One process that is recorded: see target.h. */
#include "record/target.h"

#include "formats/wire/clock.h"
#include "record/process/thread_ids.h"
#include "record/translate/exact.h"
#include "record/worker/worker.h"

#include <signal.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WAKE_MIN_NS 1000000ull
#define WAKE_FIRST_NS 10000000ull
#define WAKE_ALONE_NS 20000000ull       /* without a ticker that the agent can wake when a ring fills */
#define WAKE_MAX_NS 100000000ull        /* also the heartbeat's period, and how far the trace may be behind */

int ls_target_init(struct ls_target *t, const struct ls_record_options *o)
{
        memset(t, 0, sizeof(*t));
        t->memory.fd = t->pidfd = -1;
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
        if (t->translate.rings)
                ls_translate_done(&t->translate);
        ls_workers_hold(NULL, t->translate.cfg.worker);
        t->translate.cfg.worker = NULL;
        ls_drain_done(&t->drain);
        ls_memory_done(&t->memory);
        if (t->pidfd >= 0)
                close(t->pidfd);
        t->pidfd = -1;
}

static uint64_t ring_u64(const _Atomic uint64_t *value)
{
        return atomic_load_explicit(value, memory_order_relaxed);
}

static void put_threadcpu(struct ls_target *t, unsigned i, uint64_t now_ns)
{
        uint64_t cpu = ring_u64(&ls_memory_ring(&t->memory, i)->last_cpu_ns);

        /* Of a thread without samples it says nothing that anybody asks for. */
        if (cpu && t->translate.rings[i].thread)
                ls_trace_threadcpu(t->translate.cfg.writer, t->translate.rings[i].thread, now_ns, cpu);
}

static uint64_t monotonic(void)
{
        return ls_clock_ns(CLOCK_MONOTONIC);
}

/* From the translator: the thread of a ring has ended. */
static void thread_ended(void *ctx, unsigned ring)
{
        struct ls_target *t = ctx;
        struct ls_ring *shared = ls_memory_ring(&t->memory, ring);

        put_threadcpu(t, ring, t->translate.now_ns);
        atomic_store_explicit(&shared->last_cpu_ns, 0, memory_order_relaxed);
}

int ls_target_begin(struct ls_target *t, pid_t pid, const struct ls_target_config *cfg)
{
        struct ls_translate_config tr = {
                .writer = cfg->writer, .memory = &t->memory, .maps = cfg->maps, .worker = ls_workers_of(cfg->workers, pid, NULL), .cwd = t->cwd, .pid = pid,
                .ordinal = cfg->ordinal, .interval_ns = cfg->o->interval_ns, .start_ns = cfg->start_ns,
                .clock = monotonic,
                .no_source = cfg->o->no_source, .wall_only = !(cfg->o->events & LS_RECORD_CPU),
                .native = cfg->o->native_bytes != 0,
                .notice = cfg->notice, .marked = cfg->marked, .notice_ctx = cfg->ctx, .ended = thread_ended, .ended_ctx = t,
        };
        struct ls_drain_sink sink = { .record = ls_translate_record, .gap = ls_translate_gap, .closed = ls_translate_closed,
                                      .ctx = &t->translate };
        pid_t inner = ls_thread_inner_id(pid, pid);
        int err;

        tr.other_namespace = inner && inner != pid;
        t->pid = pid;
        t->full_fd = cfg->full_fd;
        t->exact = cfg->o->events & LS_RECORD_EXACT;
        t->workers = cfg->workers;
        memcpy(t->cwd, cfg->cwd, strlen(cfg->cwd) + 1);
        if (clock_getcpuclockid(pid, &t->clock) != 0)
                t->clock = 0;
        t->generation = t->memory.shm->generation;
        t->begin_ns = ls_clock_ns(CLOCK_MONOTONIC);
        t->wake_ns = WAKE_FIRST_NS;
        ls_workers_hold(tr.worker, NULL);
        err = ls_translate_init(&t->translate, &tr);
        return err < 0 ? err : ls_drain_init(&t->drain, &t->memory, &sink);
}

void ls_target_since_now(struct ls_target *t)
{
        t->cpu_before_ns = t->clock ? ls_clock_ns(t->clock) : 0;
}

void ls_target_name(struct ls_target *t, const char *name)
{
        struct ls_trace_writer *w = t->translate.cfg.writer;

        t->process = ls_trace_process(w, (uint32_t)t->pid, ls_trace_string(w, name, strlen(name)));
        t->translate.cfg.process = t->process;
}

void ls_target_inherit(struct ls_target *child, struct ls_target *parent, uint64_t now_ns)
{
        if (!parent->finished)          /* what it sent before it forked may still be in its ring */
                ls_target_work(parent, now_ns, 1);
        ls_sources_inherit(&child->translate.sources, &parent->translate.sources);
        ls_jit_keep_inherit(&child->translate.jit, &parent->translate.jit, child->memory.shm->parent_jit_ids);
}

int ls_target_tick(struct ls_target *t, enum ls_timer timer, const struct ls_record_options *o)
{
        if (o->bare_tick == 2 || timer == LS_TIMER_CPUTIME)
                return 0;
        return ls_ticker_start(&t->memory, t->pid, timer, o->interval_ns, t->full_fd, &t->ticker);
}

/* Often enough to keep the ring below half, and seldom enough to cost nothing. */
static void adapt_wake(struct ls_target *t)
{
        uint64_t most;

        if (t->drain.fill > 1024 / 4)
                t->wake_ns /= 2;
        else if (t->drain.fill < 1024 / 16)
                t->wake_ns += t->wake_ns / 2;
        if (t->wake_ns < WAKE_MIN_NS)
                t->wake_ns = WAKE_MIN_NS;
        most = t->ticker ? WAKE_MAX_NS : WAKE_ALONE_NS;
        if (t->wake_ns > most)
                t->wake_ns = most;
}

void ls_target_work(struct ls_target *t, uint64_t now_ns, int at_once)
{
        if (t->finished || !t->process)
                return;
        /* A ring fills; no process can make us do nothing else than look at it. */
        if (atomic_load(&t->memory.shm->filling) && t->due_ns > t->worked_ns + WAKE_MIN_NS)
                t->due_ns = t->worked_ns + WAKE_MIN_NS;
        if (!at_once && now_ns < t->due_ns)
                return;
        t->worked_ns = now_ns;
        atomic_store(&t->memory.shm->heartbeat_ns, now_ns);
        atomic_store(&t->memory.shm->filling, 0);
        t->translate.now_ns = now_ns;
        ls_drain_run(&t->drain, t->ended, now_ns);
        ls_translate_settle(&t->translate);
        adapt_wake(t);
        t->due_ns = (now_ns / t->wake_ns + 1) * t->wake_ns;    /* of many idle processes all at once */
}

static void use_worker(struct ls_target *t, struct ls_worker *w)
{
        ls_workers_hold(w, t->translate.cfg.worker);
        ls_translate_worker(&t->translate, w);
}

static void take_all(void *ctx)
{
        ls_target_work(ctx, ls_clock_ns(CLOCK_MONOTONIC), 1);
}

void ls_target_second(struct ls_target *t, uint64_t now_ns)
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
        if (!t->ended)
                use_worker(t, ls_workers_of(t->workers, t->pid, t->translate.cfg.worker));
        for (unsigned i = 0, n = ls_memory_rings(&t->memory); i < n; i++)
                put_threadcpu(t, i, now_ns);
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
        uint64_t now = ls_clock_ns(CLOCK_MONOTONIC);

        if (t->finished)
                return;
        ls_target_tell(t);
        if (t->watcher.pid)
                t->watcher_cpu_ns = ls_watcher_stop(&t->watcher, take_all, t);
        now = ls_clock_ns(CLOCK_MONOTONIC);
        ls_target_work(t, now, 1);
        ls_target_second(t, now);
        ls_translate_finish(&t->translate);
        ls_exact_finish(&t->translate, t->memory.exact_fd, t->exact);
        use_thread_clocks(t);
        t->finished = 1;
        t->end_ns = now;
}

uint64_t ls_target_lost(const struct ls_target *t, enum ls_loss loss)
{
        uint64_t n = ring_u64(&t->memory.shm->lost[loss]);

        switch (loss) {                 /* what the recorder itself has counted */
        case LS_LOSS_ABANDONED: return n + t->drain.abandoned;
        case LS_LOSS_BAD_RECORD: return n + t->drain.bad_records + t->translate.bad_records;
        case LS_LOSS_TEXT_CUT: return n + t->translate.sources.text_cut;
        case LS_LOSS_DEFINITION_LOST: return n + t->translate.definition_missing;
        case LS_LOSS_NATIVE_CUT: return n + t->translate.native_cut;
        case LS_LOSS_MAP_MISSING: return n + t->translate.jit.missing;
        case LS_LOSS_SIGNAL_FAILED: return n + (t->ticker ? ls_ticker_totals(t->ticker)->failed : 0);
        default: return n;
        }
}

/* CPU time of the threads that have had a ring, while they were sampled. The agent adds it up when sampling ends. */
static uint64_t ring_cpu(const struct ls_target *t, unsigned i)
{
        const struct ls_ring *ring = ls_memory_ring(&t->memory, i);
        uint64_t sum = ring_u64(&ring->armed_cpu_ns), last, start;
        uint64_t paused = ring_u64(&ring->paused_cpu_ns);

        /* Of the thread that has it now, the clock at its last tick is the next best. */
        last = atomic_load_explicit(&ring->armed, memory_order_relaxed) ? ring_u64(&ring->last_cpu_ns) : 0;
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
                sum += ring_u64((const _Atomic uint64_t *)(const void *)((const char *)ls_memory_ring(&t->memory, i) + offset));
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
