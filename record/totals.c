/* Facts and totals of a recording: INFO, CLOCKS and THREADCPU records of the trace. */
#include "record/totals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "formats/info.h"
#include "formats/process_totals.h"
#include "record/pause.h"
#include "record/session.h"
#include "record/worker/worker.h"

static const char *const loss_keys[] = {
#define LS_LOSS(NAME, key, unit, counted, part, label) key,
#include "formats/wire/losses.def"
#undef LS_LOSS
};

static void put_key_u64(struct ls_session *s, const char *key, uint64_t value)
{
        ls_out_tell(s->out,
                    &(struct ls_out_message){ .op = LS_OUT_INFO_U64,
                                              .arg = { value },
                                              .data = key,
                                              .len = strlen(key) },
                    NULL);
}

static void put_u64(struct ls_session *s, enum ls_info_key key, uint64_t value)
{
        put_key_u64(s, ls_info_key(key), value);
}

static void put_str(struct ls_session *s, enum ls_info_key key, const char *value)
{
        const char *name = ls_info_key(key);
        size_t n = strlen(name) + 1, len = n + strlen(value);
        char *both = malloc(len + 1);

        if (both) {
                memcpy(both, name, n);
                memcpy(both + n, value, len - n + 1);
                ls_out_tell(s->out,
                            &(struct ls_out_message){
                                    .op = LS_OUT_INFO_STR, .data = both, .len = len },
                            NULL);
        }
        free(both);
}

/* A word as a shell would need it. Returns the end. */
static char *quote_word(char *p, const char *word)
{
        static const char plain[] =
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%^";

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
        put_str(s, LS_INFO_COMMAND, text);
        free(text);
}

/* Units from sample to sample; 0 = it has no such distance. */
static uint64_t period_of(const struct ls_session *s, const struct ls_event_kind_info *k)
{
        if (k->unit == LS_UNIT_bytes)
                return s->o->alloc_interval;
        return k->sampled && k->unit == LS_UNIT_ns ? s->o->interval_ns : 0;
}

/* A namespace of time has other clocks than the machine: then it says nothing of the times. */
static int has_own_clocks(void)
{
        FILE *f = fopen("/proc/self/timens_offsets", "re");
        long long seconds, ns;
        int own = 0;

        while (f && fscanf(f, "%*s %lld %lld", &seconds, &ns) == 2)
                own |= seconds || ns;
        if (f)
                fclose(f);
        return own;
}

static void put_boot(struct ls_session *s)
{
        FILE *f = has_own_clocks() ? NULL : fopen("/proc/sys/kernel/random/boot_id", "re");
        char id[LS_BOOT_ID + 1];

        if (f && fgets(id, sizeof(id), f) && strlen(id) == LS_BOOT_ID)
                put_str(s, LS_INFO_BOOT, id);
        if (f)
                fclose(f);
}

void ls_totals_start(struct ls_session *s)
{
        char kernel[512];
        struct utsname u;

        put_str(s, LS_INFO_VERSION, LS_VERSION);
        put_command(s);
        if (uname(&u) == 0) {
                put_str(s, LS_INFO_HOST, u.nodename);
                snprintf(kernel, sizeof(kernel), "%s %s %s", u.sysname, u.release, u.machine);
                put_str(s, LS_INFO_KERNEL, kernel);
        }
        put_boot(s);
        put_u64(s, LS_INFO_CPUS, (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
        put_str(s, LS_INFO_CWD, s->cwd);
        put_str(s, LS_INFO_ENGINE, ls_engine_names[s->o->engine]);
        put_str(s, LS_INFO_JIT_LEAF, ls_jit_leaf_names[s->o->jit_leaf]);
        put_u64(s, LS_INFO_NATIVE, s->o->native_bytes);
        put_str(s, LS_INFO_TIMER, ls_timer_names[s->timer]);
        put_str(s, LS_INFO_CLOCK, "thread-cpu");
        put_str(s, LS_INFO_SCOPE, ls_scope_names[s->o->scope]);
        put_u64(s, LS_INFO_PID, (uint64_t)s->pid);
        put_u64(s, LS_INFO_ASKED_INTERVAL, s->o->interval_ns);
        put_u64(s, LS_INFO_START_REALTIME,
                ls_session_clock(CLOCK_REALTIME) -
                        (ls_session_clock(CLOCK_MONOTONIC) - s->rotate.begin_ns));
        put_u64(s, LS_INFO_START_MONOTONIC, s->rotate.begin_ns);
        put_u64(s, LS_INFO_DEPTH, s->o->depth);
        put_u64(s, LS_INFO_PRIVATE_ARGS, !s->o->no_args);
        for (unsigned event = 1; event < LS_EVENT_NEXT; event++) {
                const struct ls_event_kind_info *k = ls_event_kind(event);

                if (k && (s->o->events & (1u << k->asked)))
                        ls_session_tell(s, LS_OUT_EVENT, event, period_of(s, k), 0);
        }
        ls_totals_clocks(s);
}

void ls_totals_clocks(struct ls_session *s)
{
        ls_session_tell(s, LS_OUT_CLOCKS, ls_session_clock(CLOCK_MONOTONIC),
                        ls_session_clock(CLOCK_REALTIME), ls_session_clock(CLOCK_BOOTTIME));
}

/* A string of the control page, which the program could have filled to the brim. */
static void put_shared(struct ls_session *s, enum ls_info_key key, const char *text, size_t size)
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
static const char *engine_name(const struct ls_sums *sums)
{
        return !sums->vms_walk ? "hook" : sums->vms_walk < sums->vms ? "walk and hook" : "walk";
}

/* Of the first process with a VM: those of one program are mostly alike. It may end before the
 * recording does. */
static void keep_runtime(struct ls_session *s, const struct ls_shm *shm)
{
        if (s->has_runtime || atomic_load(&shm->agent_state) < LS_AGENT_SAMPLING)
                return;
        s->has_runtime = 1;
        memcpy(s->runtime, shm->runtime, sizeof(s->runtime));
        memcpy(s->runtime_path, shm->runtime_path, sizeof(s->runtime_path));
}

static void put_runtime(struct ls_session *s, const struct ls_sums *sums)
{
        for (unsigned i = 0; i < s->n_targets; i++)
                keep_runtime(s, s->targets[i]->memory.shm);
        if (!s->has_runtime)
                return;
        put_str(s, LS_INFO_ENGINE, engine_name(sums));
        put_shared(s, LS_INFO_RUNTIME, s->runtime, sizeof(s->runtime));
        put_shared(s, LS_INFO_RUNTIME_PATH, s->runtime_path, sizeof(s->runtime_path));
}

/* The compiler's parameters, of the process that has said them last. */
static void put_parameters(struct ls_session *s)
{
        for (unsigned i = 0; i < s->n_targets; i++) {
                const struct ls_shm *shm = s->targets[i]->memory.shm;
                uint32_t maxtrace = atomic_load_explicit(&shm->jit_maxtrace, memory_order_relaxed);

                if (!maxtrace)
                        continue;
                put_u64(s, LS_INFO_JIT_MAXTRACE, maxtrace);
                put_u64(s, LS_INFO_JIT_MAXMCODE,
                        atomic_load_explicit(&shm->jit_maxmcode, memory_order_relaxed));
                put_u64(s, LS_INFO_JIT_HOTLOOP,
                        atomic_load_explicit(&shm->jit_hotloop, memory_order_relaxed));
                put_u64(s, LS_INFO_JIT_HOTEXIT,
                        atomic_load_explicit(&shm->jit_hotexit, memory_order_relaxed));
        }
}

static void put_loss(struct ls_session *s, unsigned loss, uint64_t n)
{
        char key[64];

        snprintf(key, sizeof(key), "lost.%s", loss_keys[loss]);
        put_key_u64(s, key, n);
        s->lost_written[loss] = n;
}

/* A trace that has no end, or not yet, must not look as if nothing was lost. Notes wait for
 * ls_totals_write: some change all the time. */
static void put_lost_ticks(struct ls_session *s, const struct ls_sums *sums)
{
        for (unsigned i = 0; i < LS_NLOSSES; i++)
                if (LS_LOSSES_OF_TICKS >> i & 1 && sums->lost[i] > s->lost_written[i])
                        put_loss(s, i, sums->lost[i]);
}

static uint64_t since(uint64_t now, uint64_t before)
{
        return now > before ? now - before : 0;
}

void ls_totals_since(struct ls_sums *sums, const struct ls_sums *before)
{
        enum { COUNTS, HOLDS };

#define LS_FIGURE(field, INFO, switched, value) \
        if (switched == COUNTS) \
                sums->field = since(sums->field, before->field);
#include "record/figures.def"
#undef LS_FIGURE
        for (unsigned i = 0; i < LS_NLOSSES; i++)
                sums->lost[i] = since(sums->lost[i], before->lost[i]);
}

uint64_t ls_totals_own_cpu(const struct ls_session *s)
{
        return ls_session_clock(CLOCK_PROCESS_CPUTIME_ID) + ls_workers_cpu_ns(s->workers) +
               ls_out_cpu_ns(s->out);
}

void ls_totals_second(struct ls_session *s)
{
        struct ls_sums sums;

        for (unsigned i = 0; i < s->n_targets; i++)
                ls_target_second(s->targets[i]);
        ls_session_tell(s, LS_OUT_SECOND, 0, 0, 0);
        ls_totals_sums(s, &sums);
        ls_totals_since(&sums, &s->rotate.before);
        if (!s->runtime_written) {              /* so that a trace without an end has it too */
                put_runtime(s, &sums);
                s->runtime_written = s->has_runtime;
        }
        put_lost_ticks(s, &sums);
}

void ls_totals_sums(const struct ls_session *s, struct ls_sums *ret)
{
        *ret = s->ended;
        for (unsigned i = 0; i < s->n_targets; i++)
                ls_target_sums(s->targets[i], ret);
}

uint64_t ls_totals_lost_ticks(const struct ls_sums *sums)
{
        uint64_t sum = 0;

        for (unsigned i = 0; i < LS_NLOSSES; i++)
                if (LS_LOSSES_OF_TICKS >> i & 1)
                        sum += sums->lost[i];
        return sum;
}

/* The timer that the program's ticker has fallen back to, if it has. */
static void put_timer(struct ls_session *s)
{
        const struct ls_ticker *ticker = s->targets[0]->ticker;

        if (!ticker || ls_ticker_timer(ticker) == s->timer)
                return;
        s->timer = ls_ticker_timer(ticker);
        put_str(s, LS_INFO_TIMER, ls_timer_names[s->timer]);
}

void ls_totals_process(struct ls_session *s, const struct ls_target *t)
{
        struct ls_process_totals totals = { .from_ns = t->begin_ns,
                                            .to_ns = t->end_ns ? t->end_ns : s->end_ns };
        struct ls_sums sums = { 0 };

        if (s->flight.joined || (t->end_ns && t->end_ns <= s->rotate.begin_ns))
                return;                 /* it is in a file before this one */
        if (totals.from_ns < s->rotate.begin_ns)
                totals.from_ns = s->rotate.begin_ns;
        ls_target_sums(t, &sums);
        ls_totals_since(&sums, &t->before);
        totals.ticks = sums.ticks;
        totals.samples = sums.samples;
        totals.lost_ticks = ls_totals_lost_ticks(&sums);
        totals.cpu_ns = sums.cpu_ns;
        totals.own_ns = sums.own_handler_ns + sums.own_hook_ns;
        ls_out_tell(t->out,
                    &(struct ls_out_message){ .op = LS_OUT_TOTALS,
                                              .target = t->number,
                                              .data = &totals,
                                              .len = sizeof(totals) },
                    NULL);
        keep_runtime(s, t->memory.shm);
}

void ls_totals_write(struct ls_session *s)
{
        struct ls_sums sums;

        if (s->flight.joined)
                sums = s->flight.sums;
        else
                ls_totals_sums(s, &sums);
        ls_totals_since(&sums, &s->rotate.before);
        for (unsigned i = 0; i < s->n_targets; i++)
                ls_totals_process(s, s->targets[i]);
        put_runtime(s, &sums);
        put_parameters(s);
        put_timer(s);
        put_u64(s, LS_INFO_ELAPSED,
                (s->end_ns ? s->end_ns : ls_session_clock(CLOCK_MONOTONIC)) - s->rotate.begin_ns);
        if (s->pause.was_on)
                put_u64(s, LS_INFO_ENABLED, ls_pause_enabled_ns(s) - s->rotate.enabled_before_ns);
#define LS_FIGURE(field, INFO, switched, value) put_u64(s, LS_INFO_##INFO, sums.field);
#include "record/figures.def"
#undef LS_FIGURE
        put_u64(s, LS_INFO_RECORDER_CPU,
                (s->flight.joined ? s->flight.recorder_ns : ls_totals_own_cpu(s)) -
                        s->rotate.recorder_before_ns);
        if (s->exited)
                put_u64(s, LS_INFO_EXIT_STATUS, (uint64_t)s->exit_status);
        for (unsigned i = 0; i < LS_NLOSSES; i++)
                put_loss(s, i, sums.lost[i]);
        put_u64(s, LS_INFO_COMPLETE, s->end_ns != 0);
}
