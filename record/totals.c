/* Facts and totals of a recording: INFO, CLOCKS and THREADCPU records of the trace. */
#include "record/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char *const info_keys[] = {
#define LS_INFO(NAME, key, type, help) key,
#include "formats/info.def"
#undef LS_INFO
};

enum info_key {
#define LS_INFO(NAME, key, type, help) INFO_##NAME,
#include "formats/info.def"
#undef LS_INFO
};

static const struct { const char *key, *unit; } losses[] = {
#define LS_LOSS(NAME, key, unit, label) { key, #unit },
#include "formats/wire/losses.def"
#undef LS_LOSS
};

static void put_u64(struct ls_session *s, enum info_key key, uint64_t value)
{
        ls_trace_info_u64(s->writer, info_keys[key], value);
}

static void put_str(struct ls_session *s, enum info_key key, const char *value)
{
        ls_trace_info_str(s->writer, info_keys[key], value);
}

/* A word as a shell would need it. Returns the end. */
static char *quote_word(char *p, const char *word)
{
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%^";

        if (*word && strspn(word, plain) == strlen(word))
                return stpcpy(p, word);
        *p++ = '\'';
        for (; *word; word++) {
                if (*word == '\'')
                        p = stpcpy(p, "'\\'");
                *p++ = *word;
        }
        *p++ = '\'';
        return p;
}

static void put_command(struct ls_session *s)
{
        size_t size = 1;
        char *text, *p;

        for (const char **a = s->o->command; *a; a++)
                size += 4 * strlen(*a) + 3;
        p = text = malloc(size);
        if (!text)
                return;
        for (const char **a = s->o->command; *a && (a == s->o->command || !s->o->no_args); a++) {
                if (a != s->o->command)
                        *p++ = ' ';
                p = quote_word(p, *a);
        }
        *p = 0;
        put_str(s, INFO_COMMAND, text);
        free(text);
}

void ls_totals_start(struct ls_session *s)
{
        char kernel[512];
        struct utsname u;

        put_str(s, INFO_VERSION, LS_VERSION);
        put_command(s);
        if (uname(&u) == 0) {
                put_str(s, INFO_HOST, u.nodename);
                snprintf(kernel, sizeof(kernel), "%s %s %s", u.sysname, u.release, u.machine);
                put_str(s, INFO_KERNEL, kernel);
        }
        put_u64(s, INFO_CPUS, (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
        put_str(s, INFO_CWD, s->cwd);
        put_str(s, INFO_ENGINE, ls_engine_names[s->o->engine]);
        put_str(s, INFO_JIT_LEAF, ls_jit_leaf_names[s->o->jit_leaf]);
        put_u64(s, INFO_NATIVE, s->o->native_bytes);
        put_str(s, INFO_TIMER, ls_timer_names[s->timer]);
        put_str(s, INFO_CLOCK, "thread-cpu");
        put_str(s, INFO_SCOPE, ls_scope_names[s->o->scope]);
        put_u64(s, INFO_PID, (uint64_t)s->pid);
        put_u64(s, INFO_ASKED_INTERVAL, s->o->interval_ns);
        put_u64(s, INFO_START_REALTIME, ls_session_clock(CLOCK_REALTIME));
        put_u64(s, INFO_START_MONOTONIC, s->start_ns);
        put_u64(s, INFO_DEPTH, s->o->depth);
        put_u64(s, INFO_PRIVATE_ARGS, !s->o->no_args);
        if (s->o->events & LS_RECORD_CPU)
                ls_trace_event(s->writer, LS_EVENT_CPU, s->o->interval_ns);
        if (s->o->events & LS_RECORD_WALL)
                ls_trace_event(s->writer, LS_EVENT_WALL, s->o->interval_ns);
        ls_totals_clocks(s);
}

void ls_totals_clocks(struct ls_session *s)
{
        ls_trace_clocks(s->writer, ls_session_clock(CLOCK_MONOTONIC), ls_session_clock(CLOCK_REALTIME),
                        ls_session_clock(CLOCK_BOOTTIME));
}

/* A string of the control page, which the program could have filled to the brim. */
static void put_shared(struct ls_session *s, enum info_key key, const char *text, size_t size)
{
        char copy[256];

        if (size > sizeof(copy))
                size = sizeof(copy);
        memcpy(copy, text, size);
        copy[size - 1] = 0;
        if (*copy)
                put_str(s, key, copy);
}

/* How the VMs so far were read: not what was asked for. */
static const char *engine_name(const struct ls_session *s)
{
        const struct ls_shm *shm = s->memory.shm;
        uint32_t vms = atomic_load(&shm->nvms), walk = atomic_load(&shm->nvms_walk);

        return !walk ? "hook" : walk < vms ? "walk and hook" : "walk";
}

static void put_runtime(struct ls_session *s)
{
        const struct ls_shm *shm = s->memory.shm;

        if (shm->agent_state >= LS_AGENT_SAMPLING)
                put_str(s, INFO_ENGINE, engine_name(s));

        put_shared(s, INFO_RUNTIME, shm->runtime, sizeof(shm->runtime));
        put_shared(s, INFO_RUNTIME_PATH, shm->runtime_path, sizeof(shm->runtime_path));
}

static void put_loss(struct ls_session *s, unsigned loss, uint64_t n)
{
        char key[64];

        snprintf(key, sizeof(key), "lost.%s", losses[loss].key);
        ls_trace_info_u64(s->writer, key, n);
        s->lost_written[loss] = n;
}

/* A trace that has no end, or not yet, must not look as if nothing was lost. Notes wait for ls_totals_write: some
 * change all the time. */
static void put_lost_ticks(struct ls_session *s)
{
        for (unsigned i = 0; i < LS_NLOSSES; i++) {
                uint64_t n = strcmp(losses[i].unit, "ticks") ? 0 : ls_totals_lost(s, (enum ls_loss)i);

                if (n > s->lost_written[i])
                        put_loss(s, i, n);
        }
}

static void put_threadcpu(struct ls_session *s, unsigned i, uint64_t now_ns)
{
        uint64_t cpu = atomic_load_explicit(&ls_memory_ring(&s->memory, i)->last_cpu_ns, memory_order_relaxed);

        /* Of a thread without samples it says nothing that anybody asks for. */
        if (cpu && s->translate.rings[i].thread)
                ls_trace_threadcpu(s->writer, s->translate.rings[i].thread, now_ns, cpu);
}

void ls_totals_second(struct ls_session *s, uint64_t now_ns)
{
        uint64_t cpu = ls_session_clock(s->process_clock);
        clockid_t watcher;

        if (cpu > s->process_cpu_ns)
                s->process_cpu_ns = cpu;
        if (s->watcher > 0 && clock_getcpuclockid(s->watcher, &watcher) == 0)
                s->watcher_cpu_ns = ls_session_clock(watcher);
        if (!s->runtime_written && s->memory.shm->agent_state == LS_AGENT_SAMPLING) {
                s->runtime_written = 1;         /* so that a trace without an end has it too */
                put_runtime(s);
        }
        put_lost_ticks(s);
        for (unsigned i = 0; i < s->memory.agent_rings; i++)
                put_threadcpu(s, i, now_ns);
}

uint64_t ls_totals_lost(const struct ls_session *s, enum ls_loss loss)
{
        uint64_t n = atomic_load_explicit(&s->memory.shm->lost[loss], memory_order_relaxed);

        switch (loss) {                 /* what the recorder itself has counted */
        case LS_LOSS_ABANDONED: return n + s->drain.abandoned;
        case LS_LOSS_BAD_RECORD: return n + s->drain.bad_records + s->translate.bad_records;
        case LS_LOSS_TEXT_CUT: return n + s->translate.sources.text_cut;
        case LS_LOSS_DEFINITION_LOST: return n + s->translate.definition_missing;
        case LS_LOSS_NATIVE_CUT: return n + s->translate.native_cut;
        case LS_LOSS_MAP_MISSING: return n + s->translate.jit.missing;
        case LS_LOSS_SIGNAL_FAILED: return n + (s->ticker ? ls_ticker_totals(s->ticker)->failed : 0);
        default: return n;
        }
}

uint64_t ls_totals_lost_ticks(const struct ls_session *s)
{
        uint64_t sum = 0;

        for (unsigned i = 0; i < LS_NLOSSES; i++)
                if (!strcmp(losses[i].unit, "ticks"))
                        sum += ls_totals_lost(s, (enum ls_loss)i);
        return sum;
}

/* CPU time of the threads that have had a ring, while they were sampled. The agent adds it up when sampling ends. */
static uint64_t ring_cpu(const struct ls_session *s, unsigned i)
{
        const struct ls_ring *ring = ls_memory_ring(&s->memory, i);
        uint64_t sum = atomic_load_explicit(&ring->armed_cpu_ns, memory_order_relaxed);
        uint64_t before = s->rings[i].cpu_before_ns, own = sum > before ? sum - before : 0, last;

        if (!atomic_load_explicit(&ring->armed, memory_order_relaxed))
                return sum;
        /* Of the thread that has it now, the clock at its last tick is the next best. */
        last = atomic_load_explicit(&ring->last_cpu_ns, memory_order_relaxed);
        return last > own ? sum + last - own : sum;
}

uint64_t ls_totals_cpu(const struct ls_session *s)
{
        uint64_t cpu = 0;

        for (unsigned i = 0; i < s->memory.agent_rings; i++)
                cpu += ring_cpu(s, i);
        return cpu;
}

void ls_totals_thread_ended(void *ctx, unsigned ring)
{
        struct ls_session *s = ctx;

        put_threadcpu(s, ring, s->translate.now_ns);
        s->rings[ring].cpu_before_ns = atomic_load_explicit(&ls_memory_ring(&s->memory, ring)->armed_cpu_ns,
                                                            memory_order_relaxed);
        atomic_store_explicit(&ls_memory_ring(&s->memory, ring)->last_cpu_ns, 0, memory_order_relaxed);
}

static void put_ticks(struct ls_session *s)
{
        uint64_t ticks = 0, signals = 0;

        for (unsigned i = 0; i < s->memory.agent_rings; i++) {
                ticks += atomic_load_explicit(&ls_memory_ring(&s->memory, i)->ticks, memory_order_relaxed);
                signals += atomic_load_explicit(&ls_memory_ring(&s->memory, i)->signals, memory_order_relaxed);
        }
        put_u64(s, INFO_TICKS, ticks);
        put_u64(s, INFO_SIGNALS, signals);
}

void ls_totals_write(struct ls_session *s)
{
        const struct ls_shm *shm = s->memory.shm;

        put_runtime(s);
        if (s->ticker && ls_ticker_timer(s->ticker) != s->timer) {
                s->timer = ls_ticker_timer(s->ticker);
                put_str(s, INFO_TIMER, ls_timer_names[s->timer]);
        }
        put_u64(s, INFO_ELAPSED, (s->end_ns ? s->end_ns : ls_session_clock(CLOCK_MONOTONIC)) - s->start_ns);
        put_u64(s, INFO_CPU, ls_totals_cpu(s));
        put_u64(s, INFO_PROCESS_CPU, s->process_cpu_ns);
        put_ticks(s);
        put_u64(s, INFO_THREADS, atomic_load(&shm->nthreads_seen));
        put_u64(s, INFO_THREADS_UNRECORDED, atomic_load(&shm->nthreads_unrecorded));
        put_u64(s, INFO_VMS, atomic_load(&shm->nvms));
        put_u64(s, INFO_VMS_WALK, atomic_load(&shm->nvms_walk));
        put_u64(s, INFO_SAMPLES, s->translate.samples);
        put_u64(s, INFO_SAMPLE_TICKS, s->translate.sample_ticks);
        put_u64(s, INFO_OFF_CPU_TICKS, s->translate.wall_ticks);
        put_u64(s, INFO_WATCHER_CPU, s->watcher_cpu_ns);
        put_u64(s, INFO_OWN_HANDLER, shm->own_handler_ns);
        put_u64(s, INFO_OWN_HOOK, shm->own_hook_ns);
        put_u64(s, INFO_OWN_START, shm->own_start_ns);
        put_u64(s, INFO_RECORDER_CPU, ls_session_clock(CLOCK_PROCESS_CPUTIME_ID));
        put_u64(s, INFO_APP_PROFILER, shm->app_profiler_ns);
        put_u64(s, INFO_PRIVATE_SOURCE, s->translate.sources.written_bytes);
        if (s->exited)
                put_u64(s, INFO_EXIT_STATUS, (uint64_t)s->exit_status);
        for (unsigned i = 0; i < LS_NLOSSES; i++)
                put_loss(s, i, ls_totals_lost(s, (enum ls_loss)i));
        put_u64(s, INFO_COMPLETE, s->end_ns != 0);
}
