/* Which samples the user wants to see. Patterns are matched against dictionaries once, so that a
 * row costs a few look-ups. Called by report/report.c. */
#include "report/model/filter.h"

#include "cli/command.h"
#include "formats/escape.h"
#include "formats/trace/reader.h"
#include "report/model/keys_label.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint8_t *new_map(uint32_t n)
{
        return calloc((size_t)n + 1, 1);
}

/* A zone is wanted when its name, its whole path, or a zone around it matches. */
static int init_zones(struct ls_filter *f, const struct ls_profile *p, const char *pattern)
{
        f->zones = new_map(p->n_zones);
        if (!f->zones)
                return -ENOMEM;
        f->zones[0] = fnmatch(pattern, "(none)", 0) == 0;
        for (uint32_t i = 1; i < p->n_zones; i++) {
                uint32_t parent = p->zones[i].parent;
                char *name, *path;

                if (parent && f->zones[parent]) {
                        f->zones[i] = 1;
                        continue;
                }
                name = ls_visible(p->zones[i].name.s, p->zones[i].name.len);
                path = ls_zone_path(p, i);
                if (name && path)
                        f->zones[i] = fnmatch(pattern, name, 0) == 0 ||
                                      fnmatch(pattern, path, 0) == 0;
                free(name);
                free(path);
                if (!name || !path)
                        return -ENOMEM;
        }
        return 0;
}

/* KEY=PATTERN: samples whose label KEY has a value that matches, and with "(none)" those without
 * it. KEY: those with it. */
static int init_labels(struct ls_filter *f, const struct ls_profile *p, const char *text)
{
        size_t len = strcspn(text, "=");
        const char *pattern = text[len] ? text + len + 1 : NULL;

        f->labels = new_map(p->n_sample_labels);
        if (!f->labels)
                return -ENOMEM;
        for (uint32_t i = 0; i < p->n_sample_labels; i++) {
                const struct ls_str *value = ls_label_value(p, i, text, len);
                char *visible = value ? ls_visible(value->s, value->len) : strdup("(none)");

                if (!visible)
                        return -ENOMEM;
                f->labels[i] = pattern ? fnmatch(pattern, visible, 0) == 0 : value != NULL;
                free(visible);
        }
        return 0;
}

static int init_threads(struct ls_filter *f, const struct ls_profile *p, const char *pattern)
{
        if (!f->threads)
                f->threads = new_map(p->n_threads);
        if (!f->threads)
                return -ENOMEM;
        for (uint32_t i = 1; i < p->n_threads; i++) {
                char tid[16], *name = ls_visible(p->threads[i].name.s, p->threads[i].name.len);

                if (!name)
                        return -ENOMEM;
                snprintf(tid, sizeof(tid), "%u", p->threads[i].tid);
                f->threads[i] =
                        (!f->processes || f->threads[i]) &&
                        (!strcmp(pattern, tid) || (*name && fnmatch(pattern, name, 0) == 0));
                free(name);
        }
        return 0;
}

/* All threads of a process are wanted when its number is the pattern, or its name, or the first
 * word of that, matches. */
static int process_matches(const struct ls_process *p, const char *pattern)
{
        char pid[16], *name = ls_visible(p->name.s, p->name.len);
        int hit;

        if (!name)
                return -ENOMEM;
        snprintf(pid, sizeof(pid), "%u", p->pid);
        hit = !strcmp(pattern, pid) || (*name && fnmatch(pattern, name, 0) == 0);
        name[strcspn(name, " ")] = 0;
        hit = hit || (*name && fnmatch(pattern, name, 0) == 0);
        free(name);
        return hit;
}

static int init_processes(struct ls_filter *f, const struct ls_profile *p, const char *pattern)
{
        f->processes = new_map(p->n_processes);
        f->threads = new_map(p->n_threads);
        if (!f->processes || !f->threads)
                return -ENOMEM;
        for (uint32_t i = 1; i < p->n_processes; i++) {
                int hit = process_matches(&p->processes[i], pattern);

                if (hit < 0)
                        return hit;
                f->processes[i] = (uint8_t)hit;
        }
        for (uint32_t i = 1; i < p->n_threads; i++)
                f->threads[i] = f->processes[p->threads[i].process];
        return 0;
}

/* text: checked by the options to be a number. */
static int init_vms(struct ls_filter *f, const struct ls_profile *p, const char *text)
{
        unsigned long number = strtoul(text, NULL, 10);

        f->vms = new_map(p->n_vms);
        if (!f->vms)
                return -ENOMEM;
        for (uint32_t i = 1; i < p->n_vms; i++)
                f->vms[i] = p->vms[i].number == number;
        return 0;
}

static int init_types(struct ls_filter *f, const struct ls_profile *p, const char *pattern)
{
        static const char *const names[] = {
#define LS_OBJTYPE(NAME, name, gct) name,
#include "formats/wire/objtypes.def"
#undef LS_OBJTYPE
        };

        (void)p;
        f->types = new_map(256);
        if (!f->types)
                return -ENOMEM;
        for (unsigned i = 0; i < 256; i++)
                f->types[i] = fnmatch(pattern, names[i < LS_NOBJTYPES ? i : 0], 0) == 0;
        return 0;
}

static int matches_any(const char *const *patterns, unsigned n, const char *label)
{
        for (unsigned i = 0; i < n; i++)
                if (fnmatch(patterns[i], label, 0) == 0)
                        return 1;
        return 0;
}

/* The label, and the bare name when the label has "@file:line" added. */
static int function_matches(const char *const *patterns, unsigned n, const struct ls_labels *labels,
                            const struct ls_profile *p, uint32_t id)
{
        const struct ls_str *name = &p->functions[id].name;
        char *visible;
        int hit;

        if (matches_any(patterns, n, labels->function[id]))
                return 1;
        if (!name->len || (p->functions[id].flags & LS_FUNCF_MAIN))
                return 0;
        visible = ls_visible(name->s, name->len);
        hit = visible && matches_any(patterns, n, visible);
        free(visible);
        return hit;
}

/* Stacks with a wanted function and without an excluded one. Callers come before callees in the
 * table, so one pass will do. */
static int init_stacks(struct ls_filter *f, const struct ls_profile *p,
                       const struct ls_labels *labels, const struct ls_filter_options *want)
{
        uint8_t *functions = new_map(p->n_functions);
        int r = -ENOMEM;

        f->stacks = new_map(p->n_stacks);
        if (!f->stacks || !functions)
                goto out;
        enum { WANTED = 1, EXCLUDED = 2 };
        for (uint32_t i = 0; i < p->n_functions; i++) {
                if (function_matches(want->functions, want->n_functions, labels, p, i))
                        functions[i] |= WANTED;
                if (function_matches(want->excludes, want->n_excludes, labels, p, i))
                        functions[i] |= EXCLUDED;
        }
        for (uint32_t i = 1; i < p->n_stacks; i++) {
                f->stacks[i] = functions[p->locations[p->stacks[i].location].function];
                if (p->stacks[i].parent)
                        f->stacks[i] |= f->stacks[p->stacks[i].parent];
        }
        for (uint32_t i = 0; i < p->n_stacks; i++)
                f->stacks[i] = !(f->stacks[i] & EXCLUDED) &&
                               (!want->n_functions || (f->stacks[i] & WANTED));
        r = 0;
out:
        free(functions);
        return r;
}

static int last_time(void *ctx, const struct ls_sample_block *b)
{
        uint64_t *span = ctx;           /* first, last */

        for (uint32_t i = 0; i < b->n; i++) {
                if (b->time_ns[i] < span[0])
                        span[0] = b->time_ns[i];
                if (b->time_ns[i] > span[1])
                        span[1] = b->time_ns[i];
        }
        return 0;
}

int ls_filter_times(struct ls_profile *p, int need_end, uint64_t *ret_start, uint64_t *ret_elapsed)
{
        uint64_t start = ls_profile_u64(p, LS_INFO_START_MONOTONIC, 0),
                 elapsed = ls_profile_u64(p, LS_INFO_ELAPSED, 0);
        uint64_t span[2] = { UINT64_MAX, 0 };

        if (!start && p->n_clocks)
                start = p->clocks[0].monotonic_ns;
        if (!ls_profile_u64(p, LS_INFO_COMPLETE, 0))
                elapsed = 0;            /* a total of up to a minute ago */
        if (!start || (need_end && !elapsed)) {
                int r = ls_profile_samples(p, LS_COL_TIME, last_time, span);

                if (r)
                        return r;
                if (!start)
                        start = span[0] == UINT64_MAX ? 0 : span[0];
                if (!elapsed && span[1] > start)
                        elapsed = span[1] - start;
        }
        *ret_start = start;
        *ret_elapsed = elapsed;
        return 0;
}

static uint64_t bound_ns(const struct ls_time_bound *b, uint64_t start, uint64_t elapsed,
                         uint64_t open)
{
        uint64_t after = b->kind == LS_BOUND_NS ? b->ns
                                                : (uint64_t)((double)elapsed * b->percent / 100);

        if (b->kind == LS_BOUND_OPEN)
                return open;
        return after > UINT64_MAX - start ? UINT64_MAX : start + after;
}

/* By VM: when its collector was last ready with a cycle before that time. What is live then is
 * hardly garbage. A VM of which no cycle is known: that time. To be freed. */
static uint64_t *ends_of_cycles(const struct ls_profile *p, uint64_t ns)
{
        uint64_t *ends = malloc(((size_t)p->n_vms + 1) * sizeof(*ends));

        for (uint32_t i = 0; ends && i < p->n_vms + 1; i++)
                ends[i] = ns;
        for (uint32_t i = 1; ends && i < p->n_counters; i++) {
                const struct ls_counter_series *s = &p->counters[i];

                for (uint32_t k = 1; s->what == LS_COUNTER_PHASE && s->vm < p->n_vms && k < s->n &&
                                     s->counts[k].time_ns <= ns; k++)
                        if (s->counts[k].value < s->counts[k - 1].value)
                                ends[s->vm] = s->counts[k].time_ns;
        }
        return ends;
}

static int init_time(struct ls_filter *f, struct ls_profile *p,
                     const struct ls_filter_options *want)
{
        uint64_t start = 0, elapsed = 0;
        int percent = want->from.kind == LS_BOUND_PERCENT || want->to.kind == LS_BOUND_PERCENT;
        int r = ls_filter_times(p, percent, &start, &elapsed);

        f->columns |= LS_COL_TIME;
        if (want->moment) {
                uint64_t from = bound_ns(&want->from, start, elapsed, start),
                         to = bound_ns(&want->to, start, elapsed, UINT64_MAX);
                int is_from = want->moment == LS_MOMENT_FROM;

                f->at_ns = ends_of_cycles(p, is_from ? from : to);
                f->but_ns = ends_of_cycles(p, is_from ? to : from);
                ls_event_rows_once(f->choice.id[0], f->events);
                return r ? r : f->at_ns && f->but_ns ? 0 : -ENOMEM;
        }
        f->from_ns = bound_ns(&want->from, start, elapsed, 0);
        f->to_ns = bound_ns(&want->to, start, elapsed, UINT64_MAX);
        f->has_time = 1;
        return r;
}

static int by_thread_and_start(const void *a, const void *b)
{
        const struct ls_span *x = a, *y = b;

        if (x->thread != y->thread)
                return x->thread < y->thread ? -1 : 1;
        return x->from < y->from ? -1 : x->from > y->from;
}

/* Makes the spans of each thread disjoint, so that a binary search finds the one that holds an
 * instant. */
static void merge_spans(struct ls_filter *f)
{
        size_t n = 0;

        if (f->n_spans)
                qsort(f->spans, f->n_spans, sizeof(*f->spans), by_thread_and_start);
        for (size_t i = 0; i < f->n_spans; i++) {
                struct ls_span *last = n ? &f->spans[n - 1] : NULL;

                if (last && last->thread == f->spans[i].thread && f->spans[i].from <= last->to) {
                        if (f->spans[i].to > last->to)
                                last->to = f->spans[i].to;
                } else {
                        f->spans[n++] = f->spans[i];
                }
        }
        f->n_spans = n;
}

/* Each begin lasts to the next end in its thread; a region that was never ended lasts to the end of
 * the trace. */
static int init_region(struct ls_filter *f, const struct ls_profile *p, const char *pattern)
{
        uint64_t *end_of = malloc(((size_t)p->n_threads + 1) * sizeof(*end_of));
        int r = 0;

        f->spans = calloc((size_t)p->n_regions + 1, sizeof(*f->spans));
        f->by_region = 1;
        f->columns |= LS_COL_TIME;
        if (!f->spans || !end_of)
                r = -ENOMEM;
        for (uint32_t i = 0; !r && i < p->n_threads; i++)
                end_of[i] = UINT64_MAX;
        for (uint32_t i = p->n_regions; !r && i-- > 0;) {
                const struct ls_region *g = &p->regions[i];
                char *name;

                if (!g->begin) {
                        end_of[g->thread] = g->time_ns;
                        continue;
                }
                name = ls_visible(g->name.s, g->name.len);
                if (!name)
                        r = -ENOMEM;
                else if (fnmatch(pattern, name, 0) == 0)
                        f->spans[f->n_spans++] =
                                (struct ls_span){ g->time_ns, end_of[g->thread], g->thread };
                free(name);
        }
        free(end_of);
        merge_spans(f);
        return r;
}

int ls_filter_in_spans(const struct ls_filter *f, uint32_t thread, uint64_t time_ns)
{
        size_t low = 0, high = f->n_spans;

        while (low < high) {            /* the first span that starts later */
                size_t mid = low + (high - low) / 2;
                const struct ls_span *s = &f->spans[mid];

                if (s->thread < thread || (s->thread == thread && s->from <= time_ns))
                        low = mid + 1;
                else
                        high = mid;
        }
        return low > 0 && f->spans[low - 1].thread == thread && time_ns <= f->spans[low - 1].to;
}

/* Whether the block of row i was allocated by then, and not freed yet. */
static int was_live(const struct ls_sample_block *b, uint32_t i, uint64_t at_ns)
{
        return b->time_ns[i] <= at_ns &&
               (!b->lived[i] || at_ns - b->time_ns[i] < (uint64_t)b->lived[i] * LS_LIVED_NS);
}

int ls_filter_wants(const struct ls_filter *f, const struct ls_sample_block *b, uint32_t i)
{
        if (f->need_region_flag && !(b->flags[i] & LS_SAMPLE_IN_REGION))
                return 0;
        if (f->vmstates && (b->vmstate[i] >= LS_NVMSTATES || !(f->vmstates >> b->vmstate[i] & 1)))
                return 0;
        if (f->stacks && !f->stacks[b->stack[i]])
                return 0;
        if (f->zones && !f->zones[b->zone[i]])
                return 0;
        if (f->labels && !f->labels[b->label[i]])
                return 0;
        if (f->threads && !f->threads[b->thread[i]])
                return 0;
        if (f->vms && !f->vms[b->vm[i]])
                return 0;
        if (f->has_time && (b->time_ns[i] <= f->from_ns || b->time_ns[i] > f->to_ns))
                return 0;               /* a tick stands for the time before it */
        if (f->types && !f->types[b->type[i]])
                return 0;
        if (f->at_ns && (!was_live(b, i, f->at_ns[b->vm[i]]) ||
                         was_live(b, i, f->but_ns[b->vm[i]])))
                return 0;
        return !f->by_region || ls_filter_in_spans(f, b->thread[i], b->time_ns[i]);
}

int ls_filter_any(const struct ls_filter *f)
{
        return f->need_region_flag || f->vmstates || f->stacks || f->zones || f->labels ||
               f->threads || f->vms || f->types || f->has_time || f->at_ns ||
               f->by_region;
}

/* A filter that can match nothing is a mistake, or of another trace. */
static void warn(const char *option, const char *pattern, const uint8_t *map, uint32_t n)
{
        if (pattern && !memchr(map, 1, n))
                ls_warning("--%s '%s': no such %s in this trace", option, pattern,
                           strcmp(option, "vm") ? option : "VM");
}

static void warn_of_all(const struct ls_filter *f, const struct ls_profile *p,
                        const struct ls_filter_options *want)
{
        warn("zone", want->zone, f->zones, p->n_zones);
        warn("label", want->label, f->labels, p->n_sample_labels);
        warn("process", want->process, f->processes, p->n_processes);
        warn("thread", want->thread, f->threads, p->n_threads);
        warn("vm", want->vm, f->vms, p->n_vms);
        warn("type", want->type, f->types, 256);
        if (want->region && !f->n_spans)
                ls_warning("--region '%s': no such region in this trace", want->region);
}

static int init_all(struct ls_filter *f, struct ls_profile *p, const struct ls_labels *labels,
                    const struct ls_filter_options *want)
{
        const struct {
                const char *pattern;
                int (*init)(struct ls_filter *f, const struct ls_profile *p, const char *pattern);
        } maps[] = {
                /* --thread narrows what --process has chosen */
                { want->zone, init_zones },
                { want->label, init_labels },
                { want->process, init_processes },
                { want->thread, init_threads },
                { want->vm, init_vms },
                { want->type, init_types },
                { want->region, init_region },
        };
        int r = 0;

        for (size_t i = 0; !r && i < sizeof(maps) / sizeof(maps[0]); i++) {
                if (maps[i].pattern) {
                        f->active = 1;
                        r = maps[i].init(f, p, maps[i].pattern);
                }
        }
        if (!r && (want->n_functions || want->n_excludes))
                r = init_stacks(f, p, labels, want);
        if (!r && want->time)
                r = init_time(f, p, want);
        f->active |= want->vmstate || want->time || want->n_functions || want->n_excludes;
        return r;
}

int ls_filter_init(struct ls_filter *f, struct ls_profile *p, const struct ls_labels *labels,
                   const struct ls_filter_options *want)
{
        const struct ls_event_kind_info *missing;
        int r;

        memset(f, 0, sizeof(*f));
        f->choice = want->events;
        missing = ls_events_settle(p, &f->choice);
        if (missing) {
                ls_error("--event %s: this trace has no such event; record it with -e %s",
                         missing->name, ls_event_name((uint8_t)missing->asked));
                return -EINVAL;
        }
        ls_event_rows(f->choice.id[0], f->events);
        f->vmstates = want->vmstates;
        r = init_all(f, p, labels, want);
        /* A tick may be seen late: the agent's flag says on which side of the mark it fell. */
        f->need_region_flag = want->region || (p->n_regions && !want->no_regions);
        if (!r)
                warn_of_all(f, p, want);
        return r;
}

void ls_filter_done(struct ls_filter *f)
{
        free(f->stacks);
        free(f->zones);
        free(f->labels);
        free(f->processes);
        free(f->threads);
        free(f->vms);
        free(f->types);
        free(f->spans);
        free(f->at_ns);
        free(f->but_ns);
        memset(f, 0, sizeof(*f));
}
