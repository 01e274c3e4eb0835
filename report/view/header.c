/* The header of every view: what was recorded, how well, and what is left out. Called by
 * report/report.c. */
#include "cli/command.h"
#include "formats/escape.h"
#include "report/model/collector.h"
#include "report/model/facts.h"
#include "report/model/filter_text.h"
#include "report/view/view.h"
#include "formats/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MARKS_COLUMNS 80                /* of the line of marks: another one begins before that */

/* Bytes of text for one line: up to the last blank that is in columns. */
static size_t line_of(const char *text, size_t columns)
{
        size_t fits = ls_fit(text, columns), n = fits;

        if (!text[fits])
                return fits;
        while (n && text[n] != ' ')
                n--;
        return n ? n : fits;
}

/* Takes text; NULL = no memory. What a line has no room for goes on in the next: a cut loss or
 * filter would mislead. */
static void put_text(const struct ls_report *r, const char *head, char *text)
{
        size_t columns = r->width > 20 ? r->width - 12 : SIZE_MAX;

        for (const char *rest = text; rest && *rest; head = "") {
                size_t n = line_of(rest, columns);

                fprintf(r->out, "# %-9s %.*s\n", head, (int)n, rest);
                rest += n + (rest[n] == ' ');
        }
        free(text);
}

#define put_line(r, head, ...) put_text(r, head, ls_print(__VA_ARGS__))

/* A command line can be long: it is cut. */
static void put_command(const struct ls_report *r)
{
        struct ls_str s = ls_profile_str(r->profile, LS_INFO_COMMAND);
        char *text = s.len ? ls_visible(s.s, s.len) : NULL;

        if (!text)
                return;
        fprintf(r->out, "# %-9s ", "Command:");
        ls_put_fit(r->out, text, r->width > 20 ? r->width - 12 : 0, 0);
        fputc('\n', r->out);
        free(text);
}

static char *info_text(const struct ls_profile *p, enum ls_info_key key, const char *fallback)
{
        struct ls_str s = ls_profile_str(p, key);

        return s.len ? ls_visible(s.s, s.len) : strdup(fallback);
}

static void put_runtime(const struct ls_report *r)
{
        char *runtime = info_text(r->profile, LS_INFO_RUNTIME, ""),
             *engine = info_text(r->profile, LS_INFO_ENGINE, "");
        char *timer = info_text(r->profile, LS_INFO_TIMER, ""),
             *scope = info_text(r->profile, LS_INFO_SCOPE, "");
        char *leaf = info_text(r->profile, LS_INFO_JIT_LEAF, "");
        int walk = engine && !strncmp(engine, "walk", 4),
            hook = engine && (!walk || strcmp(engine, "walk"));

        /* --jit-leaf is of the walk engine, --scope of the hook. */
        if (runtime && engine && timer && scope && leaf && (*runtime || *engine))
                put_line(r, "Runtime:", "%s%s%s%s%s%s%s%s%s%s", *runtime ? runtime : "not known",
                         *engine ? ", engine " : "", engine, *timer ? ", timer " : "", timer,
                         *scope && hook ? ", scope " : "", hook ? scope : "",
                         *leaf && walk ? ", jit-leaf " : "", walk ? leaf : "",
                         ls_profile_u64(r->profile, LS_INFO_NATIVE, 0) ? ", native stacks" : "");
        free(leaf);
        free(runtime);
        free(engine);
        free(timer);
        free(scope);
}

static void put_rates(const struct ls_report *r, const struct ls_facts *f)
{
        char interval[32], cpu[32], elapsed[32];

        int sampled = 0;

        for (uint32_t i = 0; i < r->profile->n_events; i++)
                sampled |= ls_event_is_time(r->profile->events[i].id);
        if (!sampled && r->profile->n_events)
                return;
        if (f->asked_ns)
                put_line(r, "Rate:",
                         "asked %.0f Hz (every %s), achieved %.0f samples (%.0f ticks) a second of "
                         "CPU time",
                         1e9 / (double)f->asked_ns,
                         ls_duration_text(f->asked_ns, interval, sizeof(interval)), f->achieved_hz,
                         f->cpu_ns ? (double)f->ticks * 1e9 / (double)f->cpu_ns : 0);
        put_line(r, "Samples:", "%" PRIu64 " samples, %" PRIu64 " ticks, %s of CPU%s%s",
                 r->profile->recorded_samples, f->sample_ticks,
                 ls_duration_text(f->cpu_ns, cpu, sizeof(cpu)), f->elapsed_ns ? " in " : "",
                 f->elapsed_ns ? ls_duration_text(f->elapsed_ns, elapsed, sizeof(elapsed)) : "");
}

static void put_losses(const struct ls_report *r, const struct ls_facts *f)
{
        uint64_t whole = f->ticks > f->sample_ticks ? f->ticks : f->sample_ticks;

        for (unsigned i = 0; i < f->n_losses; i++) {
                const struct ls_loss_fact *l = &f->losses[i];
                char one[160];

                if (!l->count)
                        continue;
                if (l->is_ticks)
                        put_line(r, "Lost:", "%" PRIu64 " tick%s (%.1f%%): %s", l->count,
                                 l->count == 1 ? "" : "s", 100 * ls_share(l->count, whole),
                                 l->label);
                else if (l->is_stack)
                        put_line(r, "Note:", "%" PRIu64 " %s (%.2f%%)", l->count,
                                 ls_counted_text(l->count, l->label, one, sizeof(one)),
                                 100 * l->share);
                else
                        put_line(r, "Note:", "%" PRIu64 " %s", l->count,
                                 ls_counted_text(l->count, l->label, one, sizeof(one)));
        }
        if (r->profile->lost_ticks)
                put_line(r, "Lost:",
                         "the stacks of %" PRIu64
                         " ticks (%.1f%%): their definitions were in damaged chunks",
                         r->profile->lost_ticks, 100 * ls_share(r->profile->lost_ticks, whole));
}

/* How well places in compiled code are known. */
static void put_jit(const struct ls_report *r)
{
        const struct ls_profile *p = r->profile;

        if (p->jit_approximate_ticks)
                put_line(r, "Note:", "of the ticks in known traces %.2f%% have approximate lines",
                         100 * ls_share(p->jit_approximate_ticks, p->jit_ticks));
        if (p->jit_unknown_ticks)
                put_line(r, "Note:",
                         "of the ticks in known traces %.2f%% have no map: only the function that "
                         "the root trace "
                         "starts in",
                         100 * ls_share(p->jit_unknown_ticks, p->jit_ticks));
        if (ls_profile_u64(p, LS_INFO_THREADS_UNRECORDED, 0))
                put_line(r,
                         "Note:", "%" PRIu64 " threads were not recorded: too many ran at one time",
                         ls_profile_u64(p, LS_INFO_THREADS_UNRECORDED, 0));
}

static void put_damage(const struct ls_report *r)
{
        const struct ls_profile *p = r->profile;

        for (uint32_t i = 0; i < p->n_damages; i++) {
                if (i == 10) {
                        put_line(r, "Damage:", "%u more chunks (luasample info lists all)",
                                 p->n_damages - i);
                        break;
                }
                put_line(r,
                         "Damage:", "chunk %" PRIu64 " at byte %" PRIu64 " (%" PRIu64 " bytes): %s",
                         p->damages[i].chunk, p->damages[i].offset, p->damages[i].bytes,
                         p->damages[i].why);
        }
        if (!p->complete)
                put_line(r, "Note:",
                         "the trace has no end: it is still being written, or was cut off");
}

static unsigned count_regions(const struct ls_profile *p)
{
        unsigned n = 0;

        for (uint32_t i = 0; i < p->n_regions; i++)
                n += p->regions[i].begin != 0;
        return n;
}

static const char *shown_unit(const struct ls_report *r)
{
        const struct ls_event_kind_info *k = ls_event_kind(r->filter->choice.id[0]);

        return !ls_events_amount(&r->filter->choice) ? " ticks"
               : k->unit == LS_UNIT_bytes            ? " bytes"
                                                     : "";
}

static void put_scope(const struct ls_report *r)
{
        char *filters = ls_filter_text(&r->o->want);

        if (r->filter->need_region_flag && !r->o->want.region)
                put_line(r, "Regions:",
                         "only samples in regions that the program marked, %u in all (--no-regions "
                         "shows all)",
                         count_regions(r->profile));
        if (filters)
                put_line(r, "Filters:", "%s", filters);
        if (filters || r->filter->need_region_flag)
                put_line(r, "Shown:", "%" PRIu64 " of %" PRIu64 "%s (%.1f%%), shares are of these",
                         r->aggregate->ticks, r->aggregate->all_ticks, shown_unit(r),
                         100 * ls_share(r->aggregate->ticks, r->aggregate->all_ticks));
        free(filters);
}

static int is_shown(const struct ls_event_choice *c, uint32_t event)
{
        return event < 256 && memchr(c->id, (int)event, c->n) != NULL;
}

/* "alloc 334.3 MB (2551 samples, one for 131.1 kB)". */
static void put_amount(const struct ls_report *r, unsigned i, FILE *f)
{
        uint8_t id = r->filter->choice.id[i];
        char amount[LS_AMOUNT], period[LS_AMOUNT];
        uint64_t n = r->events[i]->samples;

        fprintf(f, "%s%s %s (%" PRIu64 " sample%s", i ? ", " : "", ls_event_name(id),
                ls_amount_text(id, (double)r->events[i]->ticks, amount), n, n == 1 ? "" : "s");
        for (uint32_t k = 0; k < r->profile->n_events; k++)
                if (r->profile->events[k].id == id && r->profile->events[k].period_ns)
                        fprintf(f, ", one for %s",
                                ls_amount_text(id, (double)r->profile->events[k].period_ns,
                                               period));
        fputc(')', f);
}

/* Which time is shown, when there is more than that on a CPU. */
static void put_event(const struct ls_report *r)
{
        const struct ls_event_choice *c = &r->filter->choice;
        const struct ls_profile *p = r->profile;
        const char *too = "; recorded too: ";
        char *text = NULL, time[32];
        size_t size = 0;
        FILE *f = ls_events_besides_cpu(p) ? open_memstream(&text, &size) : NULL;

        if (!f)
                return;
        for (unsigned i = 0; i < c->n; i++)
                if (ls_event_is_amount(c->id[i]))
                        put_amount(r, i, f);
                else if (ls_event_is_exact(c->id[i]))
                        fprintf(f, "%s%s %" PRIu64, i ? ", " : "", ls_event_name(c->id[i]),
                                r->events[i]->ticks);
                else
                        fprintf(f, "%s%s %" PRIu64 " ticks (%s)", i ? ", " : "",
                                ls_event_name(c->id[i]), r->events[i]->ticks,
                                ls_duration_text(r->events[i]->ticks * p->interval_ns, time,
                                                 sizeof(time)));
        for (uint32_t i = 0; i < p->n_events; i++) {
                const struct ls_event *e = &p->events[i];

                /* What comes with another event may have no rows. */
                if (is_shown(c, e->id) || !ls_event_is_shown(e->id) ||
                    (ls_event_kind(e->id)->asked != e->id && !e->rows))
                        continue;
                fprintf(f, "%s%s", too, ls_event_name((uint8_t)e->id));
                too = ", ";
        }
        fputs(strcmp(too, ", ") ? "" : " (see --event)", f);
        fclose(f);
        put_text(r, "Event:", text);
}

/* What no view knows: a reader of reserved or later records only sums them up. */
static void put_unknown_events(const struct ls_report *r)
{
        const struct ls_profile *p = r->profile;

        for (uint32_t i = 0; i < p->n_events; i++) {
                const struct ls_event *e = &p->events[i];
                char *name = ls_visible(e->name.s, e->name.len);

                if (name && e->rows && !ls_event_is_shown(e->id) && e->id != LS_EVENT_MARK)
                        put_line(r, "Note:",
                                 "event %u%s%s is in no view: %" PRIu64 " row%s, sum %" PRIu64,
                                 e->id, *name ? ", " : "", name, e->rows, e->rows == 1 ? "" : "s",
                                 e->sum);
                free(name);
        }
}

static void put_notices(const struct ls_report *r)
{
        const struct ls_profile *p = r->profile;

        for (uint32_t i = 0; i < p->n_notices && i < 10; i++)
                put_text(r, "Note:", ls_visible(p->notices[i].s, p->notices[i].len));
        if (p->n_notices > 10)
                put_line(r, "Note:", "%u more notices (luasample info lists all)",
                         p->n_notices - 10);
        put_unknown_events(r);
}

/* What the program marked: when, and as what. */
static void put_marks(const struct ls_report *r)
{
        const struct ls_profile *p = r->profile;
        uint64_t start = ls_profile_u64(p, LS_INFO_START_MONOTONIC, 0);
        char *text = NULL;
        size_t size = 0;
        uint32_t i = 0;
        FILE *f = p->n_marks ? open_memstream(&text, &size) : NULL;

        if (!f)
                return;
        for (; i < p->n_marks && ftell(f) < MARKS_COLUMNS; i++) {
                const struct ls_mark *mark = &p->marks[i];
                char *name = ls_visible(mark->name.s, mark->name.len);

                fputs(i ? ", " : "", f);
                ls_put_fit(f, name && *name ? name : "(no name)", MARKS_COLUMNS / 2, 0);
                fprintf(f, " at %.3f s",
                        mark->time_ns > start ? (double)(mark->time_ns - start) / 1e9 : 0);
                free(name);
        }
        fclose(f);
        if (text && i < p->n_marks)
                put_line(r, "Marks:", "%u (luasample dump lists all): %s, ...", p->n_marks, text);
        else if (text)
                put_line(r, "Marks:", "%s", text);
        free(text);
}

/* Of luasample stack: nothing was recorded, a process was looked at. */
static void put_stopped(const struct ls_report *r)
{
        char *name = info_text(r->profile, LS_INFO_COMMAND, "?"),
             *runtime = info_text(r->profile, LS_INFO_RUNTIME, "LuaJIT");
        char took[32], *core = ls_profile_str(r->profile, LS_INFO_CORE_FILE).len
                                       ? info_text(r->profile, LS_INFO_CORE_FILE, "?")
                                       : NULL;
        uint64_t pid = ls_profile_u64(r->profile, LS_INFO_PID, 0);

        fputs(ls_dim(r), r->out);
        if (core)
                put_line(r, "Process:", "%" PRIu64 " (%s), %s, from %s", pid, name ? name : "?",
                         runtime ? runtime : "", core);
        else
                put_line(r, "Process:", "%" PRIu64 " (%s), %s, stopped for %s", pid,
                         name ? name : "?", runtime ? runtime : "",
                         ls_duration_text(ls_profile_u64(r->profile, LS_INFO_STOPPED, 0), took,
                                          sizeof(took)));
        put_damage(r);
        put_notices(r);
        fprintf(r->out, "#%s\n", ls_plain(r));
        free(name);
        free(runtime);
        free(core);
}

/* What ticks read of the VMs' heaps. */
static void put_heap(const struct ls_report *r)
{
        struct ls_heap_sum sum;
        char vms[48] = "", share[48] = "";

        ls_heap_sum(r->profile, &sum);
        if (!sum.vms)
                return;
        if (sum.vms > 1)
                snprintf(vms, sizeof(vms), " of one of %u VMs", sum.vms);
        if (ls_events_time(&r->filter->choice))
                snprintf(share, sizeof(share), ", %.1f%% of the ticks in the collector",
                         100 * ls_share(r->aggregate->gc_ticks, r->aggregate->ticks));
        put_line(r, "Heap:", "peak %.1f MiB%s, %.0f collector cycle%s seen%s", sum.peak / (1 << 20),
                 vms, sum.cycles, sum.cycles == 1 ? "" : "s", share);
}

void ls_header_text(const struct ls_report *r)
{
        struct ls_facts f;

        if (ls_profile_u64(r->profile, LS_INFO_STOPPED, 0) ||
            ls_profile_str(r->profile, LS_INFO_CORE_FILE).len) {
                put_stopped(r);
                return;
        }
        ls_facts_init(&f, r->profile);
        fputs(ls_dim(r), r->out);
        put_command(r);
        put_runtime(r);
        put_rates(r, &f);
        put_heap(r);
        put_losses(r, &f);
        put_jit(r);
        put_damage(r);
        put_notices(r);
        put_event(r);
        put_marks(r);
        put_scope(r);
        fprintf(r->out, "#%s\n", ls_plain(r));
}

void ls_header_json(const struct ls_report *r, struct ls_js *g)
{
        struct ls_heap_sum heap;
        struct ls_facts f;
        char *filters = ls_filter_text(&r->o->want);

        ls_facts_init(&f, r->profile);
        ls_js_key_text(g, "command", ls_profile_str(r->profile, LS_INFO_COMMAND));
        ls_js_key_text(g, "runtime", ls_profile_str(r->profile, LS_INFO_RUNTIME));
        ls_js_key_u64(g, "asked_interval_ns", f.asked_ns);
        ls_js_key_share(g, "achieved_rate_hz", f.achieved_hz);
        ls_js_key_u64(g, "cpu_ns", f.cpu_ns);
        if (r->filter->choice.id[0] != LS_EVENT_CPU)
                ls_js_key_string(g, "event", ls_event_name(r->filter->choice.id[0]));
        ls_js_key_u64(g, "ticks", r->aggregate->ticks);
        ls_js_key_u64(g, "samples", r->aggregate->samples);
        ls_js_key_share(g, "effective_samples", r->aggregate->effective);
        ls_js_key_u64(g, "recorded_ticks", r->aggregate->all_ticks);
        ls_js_key_u64(g, "lost_ticks", f.lost_ticks);
        ls_js_key_open(g, "lost", '{');
        for (unsigned i = 0; i < f.n_losses; i++)
                ls_js_key_u64(g, f.losses[i].key, f.losses[i].count);
        ls_js_close(g, '}');
        ls_js_key_share(g, "incomplete", f.incomplete_share);
        ls_heap_sum(r->profile, &heap);
        if (heap.vms) {
                ls_js_key_u64(g, "heap_peak_bytes", (uint64_t)heap.peak);
                ls_js_key_u64(g, "gc_cycles", (uint64_t)heap.cycles);
                ls_js_key_u64(g, "gc_ticks", r->aggregate->gc_ticks);
        }
        ls_js_key_u64(g, "jit_ticks", r->profile->jit_ticks);
        ls_js_key_u64(g, "jit_approximate_ticks", r->profile->jit_approximate_ticks);
        ls_js_key_u64(g, "jit_unknown_ticks", r->profile->jit_unknown_ticks);
        ls_js_key_u64(g, "damaged_chunks", r->profile->n_damages);
        ls_js_key_bool(g, "complete", r->profile->complete);
        ls_js_key_bool(g, "only_regions", r->filter->need_region_flag);
        ls_js_key_string(g, "filters", filters ? filters : "");
        free(filters);
}

void ls_say_no_samples(const struct ls_report *r)
{
        char *filters = ls_filter_text(&r->o->want);

        if (!r->aggregate->all_ticks && ls_events_besides_cpu(r->profile))
                fprintf(r->out,
                        ls_events_count(&r->filter->choice)    ? "[No %s were counted]\n"
                        : ls_events_amount(&r->filter->choice) ? "[No %s was recorded]\n"
                                                               : "[No %s time was recorded]\n",
                        ls_event_name(r->filter->choice.id[0]));
        else if (!r->aggregate->all_ticks)
                fprintf(r->out, "[No samples collected]\n");
        else if (filters)
                fprintf(r->out, "[No samples left: none of %" PRIu64 " ticks matches %s]\n",
                        r->aggregate->all_ticks, filters);
        else
                fprintf(r->out,
                        "[No samples left: none of %" PRIu64
                        " ticks is in a region that the program marked; "
                        "--no-regions shows all]\n",
                        r->aggregate->all_ticks);
        free(filters);
}
