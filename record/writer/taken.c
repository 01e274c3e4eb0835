/* A target in the writer: see taken.h. */
#include "record/writer/taken.h"

#include <string.h>

#include "formats/wire/clock.h"
#include "record/translate/counts.h"
#include "record/translate/exact.h"

#define WAKE_MIN_NS 1000000ull
#define WAKE_FIRST_NS 10000000ull
#define WAKE_ALONE_NS 20000000ull /* without a ticker that the agent can wake when a ring fills */
#define WAKE_MAX_NS                                                                                \
        100000000ull /* also the heartbeat's period, and how far the trace may be behind */

static uint64_t monotonic(void)
{
        return ls_clock_ns(CLOCK_MONOTONIC);
}

static void put_threadcpu(struct ls_taken *t, unsigned i, uint64_t now_ns)
{
        uint64_t cpu = atomic_load_explicit(&ls_memory_ring(&t->memory, i)->last_cpu_ns,
                                            memory_order_relaxed);

        /* Of a thread without samples it says nothing that anybody asks for. */
        if (cpu && t->translate.rings[i].thread)
                ls_trace_threadcpu(t->translate.cfg.writer, t->translate.rings[i].thread, now_ns,
                                   cpu);
}

/* From the translator: the thread of a ring has ended. */
static void thread_ended(void *ctx, unsigned ring)
{
        struct ls_taken *t = ctx;
        struct ls_ring *shared = ls_memory_ring(&t->memory, ring);

        put_threadcpu(t, ring, t->translate.now_ns);
        atomic_store_explicit(&shared->last_cpu_ns, 0, memory_order_relaxed);
}

int ls_taken_begin(struct ls_taken *t, const struct ls_out_begin *b,
                   const struct ls_translate_config *tr, const int fds[LS_OUT_FDS],
                   struct ls_counted *counted)
{
        struct ls_drain_sink sink = { .record = ls_translate_record,
                                      .gap = ls_translate_gap,
                                      .closed = ls_translate_closed,
                                      .ctx = &t->translate };
        struct ls_translate_config cfg = *tr;
        int err;

        memset(t, 0, sizeof(*t));
        t->memory = b->memory;
        err = ls_memory_map(&t->memory, fds[0], fds[1]);
        if (err < 0)
                return err;
        memcpy(t->cwd, b->cwd, sizeof(t->cwd));
        t->pid = b->pid;
        t->has_ticker = (int)b->has_ticker;
        t->counted = counted;
        t->wake_ns = WAKE_FIRST_NS;
        cfg.memory = &t->memory;
        cfg.cwd = t->cwd;
        cfg.pid = b->pid;
        cfg.other_namespace = (int)b->other_namespace;
        cfg.ordinal = b->ordinal;
        cfg.start_ns = b->start_ns;
        cfg.clock = monotonic;
        cfg.ended = thread_ended;
        cfg.ended_ctx = t;
        err = ls_translate_init(&t->translate, &cfg);
        if (err == 0)
                err = ls_drain_init(&t->drain, &t->memory, &sink);
        if (err < 0)
                ls_taken_done(t);
        return err;
}

void ls_taken_done(struct ls_taken *t)
{
        if (t->translate.rings)
                ls_translate_done(&t->translate);
        ls_drain_done(&t->drain);
        ls_memory_done(&t->memory);
}

void ls_taken_name(struct ls_taken *t, const char *name, size_t len)
{
        struct ls_trace_writer *w = t->translate.cfg.writer;

        t->process = ls_trace_process(w, (uint32_t)t->pid, ls_trace_string(w, name, len));
        t->translate.cfg.process = t->process;
}

void ls_taken_inherit(struct ls_taken *child, struct ls_taken *parent, uint64_t now_ns)
{
        if (!parent->finished)          /* what it sent before it forked may still be in its ring */
                ls_taken_work(parent, now_ns, 1);
        ls_sources_inherit(&child->translate.sources, &parent->translate.sources);
        ls_jit_keep_inherit(&child->translate.jit, &parent->translate.jit,
                            child->memory.shm->parent_jit_ids);
}

static void publish(const struct ls_taken *t)
{
        const struct ls_translate *x = &t->translate;
        struct ls_counted *c = t->counted;

        c->samples = x->samples;
        c->sample_ticks = x->sample_ticks;
        c->wall_ticks = x->wall_ticks;
        c->suspended_ticks = x->suspended_ticks;
        c->ready_ticks = x->ready_ticks;
        c->source_bytes = x->sources.written_bytes;
        c->allocs = x->allocs;
        c->exact = x->counted;
        c->exact_compiled = x->counted_compiled;
        c->abandoned = t->drain.abandoned;
        c->bad_records = t->drain.bad_records + x->bad_records;
        c->text_cut = x->sources.text_cut;
        c->definition_missing = x->definition_missing;
        c->native_cut = x->native_cut;
        c->map_missing = x->jit.missing;
}

/* Often enough to keep the ring below half, and seldom enough to cost nothing. */
static void adapt_wake(struct ls_taken *t)
{
        uint64_t most = t->has_ticker ? WAKE_MAX_NS : WAKE_ALONE_NS;

        if (t->drain.fill > 1024 / 4)
                t->wake_ns /= 2;
        else if (t->drain.fill < 1024 / 16)
                t->wake_ns += t->wake_ns / 2;
        if (t->wake_ns < WAKE_MIN_NS)
                t->wake_ns = WAKE_MIN_NS;
        if (t->wake_ns > most)
                t->wake_ns = most;
}

void ls_taken_work(struct ls_taken *t, uint64_t now_ns, int at_once)
{
        struct ls_shm *shm = t->memory.shm;

        if (t->finished || !t->process)
                return;
        /* A ring fills; no process can make us do nothing else than look at it. */
        if (atomic_load(&shm->filling) && t->due_ns > t->worked_ns + WAKE_MIN_NS)
                t->due_ns = t->worked_ns + WAKE_MIN_NS;
        if (!at_once && now_ns < t->due_ns)
                return;
        t->worked_ns = now_ns;
        if (atomic_load(&shm->heartbeat_ns) < now_ns)   /* else the recorder is away, and has said
                                                         * how long */
                atomic_store(&shm->heartbeat_ns, now_ns);
        atomic_store(&shm->filling, 0);
        t->translate.now_ns = now_ns;
        ls_drain_run(&t->drain, t->ended, now_ns);
        ls_translate_settle(&t->translate);
        adapt_wake(t);
        publish(t);
        t->due_ns = (now_ns / t->wake_ns + 1) * t->wake_ns;    /* of many idle processes all at
                                                                * once */
}

void ls_taken_clocks(struct ls_taken *t, uint64_t now_ns)
{
        for (unsigned i = 0, n = t->finished ? 0 : ls_memory_rings(&t->memory); i < n; i++)
                put_threadcpu(t, i, now_ns);
}

void ls_taken_settle(struct ls_taken *t, uint64_t now_ns, int native)
{
        if (t->finished)
                return;
        ls_taken_work(t, now_ns, 1);
        ls_counts_look(&t->translate, 1);
        ls_attempts_write(&t->translate.attempts, t->translate.cfg.writer);
        ls_taken_clocks(t, now_ns);
        if (native)
                ls_mappings_name_functions(&t->translate.mappings);
        publish(t);
}

void ls_taken_finish(struct ls_taken *t, uint64_t now_ns)
{
        if (t->finished)
                return;
        ls_taken_work(t, now_ns, 1);
        ls_taken_clocks(t, now_ns);
        ls_translate_finish(&t->translate);
        publish(t);
        t->finished = 1;
}

void ls_taken_exact(struct ls_taken *t, int fd, uint32_t events)
{
        ls_exact_finish(&t->translate, fd, events);
        publish(t);
}
