/* What record prints while it runs and at the end, on stderr: stdout belongs to the program. */
#include "record/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/pause.h"
#include "record/session.h"
#include "record/totals.h"

static const char *const loss_labels[] = {
#define LS_LOSS(NAME, key, unit, counted, part, label) label,
#include "formats/wire/losses.def"
#undef LS_LOSS
};

/* "1.2 MiB" */
static const char *size_text(uint64_t bytes, char buf[32])
{
        static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
        double v = (double)bytes;
        unsigned i = 0;

        for (; v >= 1024 && i < 4; i++)
                v /= 1024;
        snprintf(buf, 32, i ? "%.1f %s" : "%.0f %s", v, units[i]);
        return buf;
}

void ls_status_line(struct ls_session *s, uint64_t now_ns)
{
        uint64_t passed = now_ns - s->status_ns;
        char size[32], line[160];
        struct ls_sums sums;
        int n;

        ls_totals_sums(s, &sums);

        /* In the background the terminal belongs to another job. */
        if (s->terminal && tcgetpgrp(STDERR_FILENO) == getpgrp()) {
                n = snprintf(line, sizeof(line),
                             "\r[ %.0f s  %" PRIu64 " samples  %.0f/s  %" PRIu64
                             " ticks lost  %s%s ]\033[K",
                             (double)(now_ns - s->start_ns) / 1e9, sums.samples,
                             passed ? (double)(sums.samples - s->status_samples) * 1e9 /
                                              (double)passed
                                    : 0.0,
                             ls_totals_lost_ticks(&sums),
                             size_text(ls_out_figures(s->out)->size, size),
                             s->pause.on ? "  paused" : "");
                if (write(STDERR_FILENO, line, (size_t)n) < 0)
                        s->terminal = 0;
                else
                        s->terminal |= 2;       /* there is a line to clear */
        }
        s->status_samples = sums.samples;
        s->status_ns = now_ns;
}

void ls_status_clear(struct ls_session *s)
{
        if ((s->terminal & 2) && write(STDERR_FILENO, "\r\033[K", 4) < 0)
                s->terminal = 0;
        s->terminal &= 1;
}

void ls_status_notice(void *session, const char *text)
{
        struct ls_session *s = session;

        if (s->n_notices < LS_NOTICES && (s->notices[s->n_notices] = strdup(text)))
                s->n_notices++;
}

void ls_status_say(void *session, const char *text)
{
        struct ls_session *s = session;

        ls_out_tell(s->out,
                    &(struct ls_out_message){
                            .op = LS_OUT_NOTICE, .data = text, .len = strlen(text) },
                    NULL);
        ls_status_notice(s, text);
}

static void print_rate(const struct ls_session *s, const struct ls_sums *sums)
{
        double cpu = (double)sums->cpu_ns / 1e9, asked = 1e9 / (double)s->o->interval_ns;

        fprintf(stderr,
                "[ luasample: %" PRIu64 " samples (%" PRIu64 " ticks) in %.2f s of CPU time",
                sums->samples, sums->sample_ticks, cpu);
        if (cpu > 0)
                fprintf(stderr, ": %.0f samples and %.0f ticks a second, %.0f asked, timer %s",
                        (double)sums->samples / cpu,
                        (double)(sums->sample_ticks + ls_totals_lost_ticks(sums)) / cpu, asked,
                        ls_timer_names[s->timer]);
        fprintf(stderr, " ]\n");
}

static void print_wall(const struct ls_session *s, const struct ls_sums *sums)
{
        if (s->o->events & LS_RECORD_WALL)
                fprintf(stderr,
                        "[ luasample: %.2f s of wall time beside it: threads were blocked, or "
                        "waited for a processor ]\n",
                        (double)sums->wall_ticks * (double)s->o->interval_ns / 1e9);
}

static void print_suspended(const struct ls_session *s, const struct ls_sums *sums)
{
        double tick = (double)s->o->interval_ns / 1e9,
               looks = (double)(sums->suspended_looks ? sums->suspended_looks : 1);

        if (!(s->o->events & LS_RECORD_SUSPENDED) || !sums->suspended_looks)
                return;
        fprintf(stderr, "[ luasample: %.2f s in which coroutines were suspended, of all together",
                (double)sums->suspended_ticks * tick);
        if (sums->ready_ticks)
                fprintf(stderr, ", and %.2f s in which they could have run",
                        (double)sums->ready_ticks * tick);
        fprintf(stderr, ": %" PRIu64 " looks, %.3f s apart ]\n", sums->suspended_looks,
                (double)(s->end_ns - s->start_ns) / 1e9 / looks);
}

static void print_counted(const struct ls_session *s, const struct ls_sums *sums)
{
        if ((s->o->events & LS_RECORD_EXACT) == LS_RECORD_COVERAGE || !sums->counted)
                return;
        fprintf(stderr,
                "[ luasample: %" PRIu64
                " instructions were counted, %.1f %% of them in compiled code ]\n",
                sums->counted, 100 * (double)sums->counted_compiled / (double)sums->counted);
}

static void print_allocs(const struct ls_session *s, const struct ls_sums *sums)
{
        if (s->o->events & LS_RECORD_MEMORY)
                fprintf(stderr,
                        "[ luasample: %" PRIu64 " allocations were sampled, one for each %" PRIu64
                        " bytes ]\n",
                        sums->alloc_samples, s->o->alloc_interval);
}

static void print_cost(const struct ls_sums *sums)
{
        double cpu = (double)sums->process_cpu_ns,
               own = (double)(sums->own_handler_ns + sums->own_hook_ns);

        if (cpu > 0)
                fprintf(stderr,
                        "[ luasample: the agent used %.2f %% of the program's CPU time, and %.1f "
                        "ms to start ]\n",
                        100 * own / cpu, (double)sums->own_start_ns / 1e6);
}

static void print_losses(const struct ls_sums *sums)
{
        uint64_t all = sums->sample_ticks + ls_totals_lost_ticks(sums);

        for (unsigned i = 0; i < LS_NLOSSES; i++) {
                uint64_t n = sums->lost[i];
                int ticks = LS_LOSSES_OF_TICKS >> i & 1;
                char buf[160];
                const char *what = ticks ? loss_labels[i]
                                         : ls_counted_text(n, loss_labels[i], buf, sizeof(buf));

                if (n && ticks)
                        fprintf(stderr, "[ luasample: lost %" PRIu64 " tick%s (%.2f %%): %s ]\n", n,
                                n == 1 ? "" : "s", all ? 100 * (double)n / (double)all : 0.0, what);
                else if (n && (LS_LOSSES_OF_STACKS >> i & 1) && sums->samples)
                        fprintf(stderr, "[ luasample: note: %" PRIu64 " %s (%.2f %%) ]\n", n, what,
                                100 * (double)n /
                                        (double)(LS_LOSSES_IN_TICKS >> i & 1 ? all
                                                                             : sums->samples));
                else if (n)
                        fprintf(stderr, "[ luasample: note: %" PRIu64 " %s ]\n", n, what);
        }
}

/* Why there are no samples, when there are none. */
static void print_nothing(const struct ls_session *s, const struct ls_sums *sums)
{
        const char *command = s->o->command[0];

        if (sums->samples || sums->wall_ticks || sums->suspended_ticks ||
            (s->pause.was_on && !ls_pause_enabled_ns(s)) || !s->with_agent || s->o->bare_tick)
                return;
        switch (atomic_load(&s->targets[0]->memory.shm->agent_state)) {
        case LS_AGENT_NONE:
                ls_warning("the agent did not come up in %s, so nothing was recorded; see: "
                           "luasample doctor",
                           command);
                break;
        case LS_AGENT_LOADED:
                ls_warning("no Lua VM was seen in %s, so nothing was recorded; see: luasample "
                           "doctor %s",
                           command, command);
                break;
        case LS_AGENT_REFUSED:
                break;                  /* a notice says why */
        default:
                if (ls_totals_lost_ticks(sums)) {
                        ls_warning("nothing could be sampled in %s: all ticks were lost, for the "
                                   "reasons above",
                                   command);
                        break;
                }
                ls_warning("the thread of the Lua VM in %s used too little CPU time for a sample "
                           "at this interval; try a shorter "
                           "one with -i",
                           command);
        }
}

/* CPU time of the program that no tick could stand for. A little is always spent before the VM is
 * there. */
#define UNSAMPLED_LEAST_NS UINT64_C(100000000)
#define UNSAMPLED_SHARE    20           /* one part in so many of the program's CPU time */

static void print_unsampled(const struct ls_session *s, const struct ls_sums *sums)
{
        uint64_t cpu = sums->cpu_ns, all = sums->process_cpu_ns;
        uint32_t state = atomic_load(&s->targets[0]->memory.shm->agent_state);

        if (s->o->bare_tick || s->pause.was_on || state < LS_AGENT_SAMPLING || all <= cpu ||
            all - cpu < UNSAMPLED_LEAST_NS || all - cpu < all / UNSAMPLED_SHARE)
                return;
        fprintf(stderr, "[ luasample: note: %.2f s of CPU time were not sampled: %s ]\n",
                (double)(all - cpu) / 1e9,
                state == LS_AGENT_REFUSED ? "a Lua VM that cannot be sampled, as said below"
                                          : "other threads, or before and after the Lua VM");
}

static void print_pause(const struct ls_session *s)
{
        if (s->pause.was_on)
                fprintf(stderr,
                        "[ luasample: samples were wanted for %.2f s of %.2f s; the rest is not in "
                        "the trace ]\n",
                        (double)ls_pause_enabled_ns(s) / 1e9,
                        (double)(s->end_ns - s->start_ns) / 1e9);
}

static void print_traced(const struct ls_sums *sums)
{
        if (sums->traced_ns)
                fprintf(stderr,
                        "[ luasample: note: no ticks came for %.2f s, in which a debugger held the "
                        "program ]\n",
                        (double)sums->traced_ns / 1e9);
}

/* More threads at one time than there are rings. */
static void print_threads(const struct ls_session *s, const struct ls_sums *sums)
{
        uint64_t n = sums->threads_unrecorded;

        if (n)
                fprintf(stderr,
                        "[ luasample: note: %" PRIu64
                        " thread%s not recorded: %u are at one time ]\n",
                        n, n == 1 ? " was" : "s were", s->targets[0]->memory.of[LS_ROLE_AGENT].n);
}

static void print_files(const struct ls_session *s)
{
        const struct ls_rotate *r = &s->rotate;
        char kept[48] = "";

        if (!r->files)
                return;
        if (s->o->keep && r->n_kept < r->files)
                snprintf(kept, sizeof(kept), ", the last %u of which %s kept", r->n_kept,
                         r->n_kept == 1 ? "is" : "are");
        fprintf(stderr, "[ luasample: wrote %u file%s before ", r->files, r->files == 1 ? "" : "s");
        ls_put_visible(stderr, s->o->output);
        fprintf(stderr, "%s ]\n", kept);
}

void ls_status_summary(struct ls_session *s)
{
        struct ls_sums sums;
        char size[32];

        ls_totals_sums(s, &sums);
        ls_status_clear(s);
        if (!s->o->quiet) {
                if (sums.samples) {
                        print_rate(s, &sums);
                        print_wall(s, &sums);
                }
                print_suspended(s, &sums);
                print_counted(s, &sums);
                print_allocs(s, &sums);
                if (sums.samples || sums.alloc_samples)
                        print_cost(&sums);
                print_pause(s);
                print_losses(&sums);
                print_unsampled(s, &sums);
                print_traced(&sums);
                print_threads(s, &sums);
                if (sums.app_profiler_ns)
                        fprintf(stderr,
                                "[ luasample: the program's own profiler ran for %.2f s of CPU "
                                "time ]\n",
                                (double)sums.app_profiler_ns / 1e9);
                for (unsigned i = 0; i < s->n_notices; i++)
                        ls_warning("%s", s->notices[i]);
                print_nothing(s, &sums);
                print_files(s);
                fputs("[ luasample: wrote ", stderr);
                ls_put_visible(stderr, ls_trace_file_name(s->o->output));
                fprintf(stderr, ", %s", size_text(s->final_size, size));
                if (sums.samples >= 100 && !s->rotate.files)
                        fprintf(stderr, ", %.1f bytes a sample",
                                (double)s->final_size / (double)sums.samples);
                fprintf(stderr, " ]\n");
        }
        /* Not silenced: the trace is not what was asked for. */
        if (s->write_error == -EOWNERDEAD)
                ls_error("%s: the process that writes it has died; what was written before can be "
                         "reported",
                         ls_trace_file_name(s->o->output));
        else if (s->write_error)
                ls_error("%s: %s; %" PRIu64
                         " chunks after that were lost, what was written before can be reported",
                         ls_trace_file_name(s->o->output), strerror(-s->write_error),
                         s->dropped_chunks);
}
