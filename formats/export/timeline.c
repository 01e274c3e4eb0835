/* The samples that pass the filters, in time order. Used by the exporters speedscope, firefox,
 * chrome and perf-script. */
#include "formats/export/timeline.h"
#include "formats/escape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_NS (1ull << 61)         /* no sum of two overflows */

struct pass {
        struct ls_timeline *t;
        ls_timeline_fn fn;
        void *ctx;
        uint64_t *self;                 /* the first pass: ticks by stack */
};

uint64_t ls_timeline_ns(const struct ls_timeline *t, uint64_t ticks)
{
        unsigned __int128 ns = (unsigned __int128)ticks * t->in->interval_ns;

        return ns < LONGEST_NS ? (uint64_t)ns : LONGEST_NS;
}

/* Where a sample lies on its thread's time line. */
static void place(struct ls_timeline *t, uint64_t time_ns, struct ls_timeline_sample *s)
{
        struct ls_timeline_thread *thread = &t->threads[s->thread];
        uint64_t length = ls_timeline_ns(t, s->ticks);
        uint64_t begin = time_ns < LONGEST_NS ? time_ns : LONGEST_NS;

        begin = begin > length ? begin - length : 0;
        s->first = thread->at_ns == UINT64_MAX;
        s->from_ns = s->first ? begin : thread->at_ns;
        if (!s->first && begin > thread->at_ns && begin - thread->at_ns > t->in->interval_ns) {
                s->gap_ns = begin - thread->at_ns;
                s->from_ns = begin;
        }
        s->to_ns = s->from_ns + length < LONGEST_NS ? s->from_ns + length : LONGEST_NS;
        thread->at_ns = s->to_ns;
}

static int give_rows(void *ctx, const struct ls_sample_block *b, const uint8_t *wanted)
{
        struct pass *pass = ctx;
        struct ls_timeline *t = pass->t;
        int r = 0;

        for (uint32_t i = 0; !r && i < b->n; i++) {
                struct ls_timeline_sample s = { .thread = b->thread[i],
                                                .stack = b->stack[i],
                                                .zone = b->zone[i],
                                                .ticks = b->weight[i],
                                                .vmstate = b->vmstate[i],
                                                .label = b->label[i] };

                if (!wanted[i] || !s.ticks)
                        continue;
                s.node = t->tree ? t->tree->node_of_stack[s.stack] : 0;
                place(t, b->time_ns[i], &s);
                r = pass->fn(pass->ctx, &s);
        }
        return r;
}

int ls_timeline_each(struct ls_timeline *t, ls_timeline_fn fn, void *ctx)
{
        struct pass pass = { .t = t, .fn = fn, .ctx = ctx };

        for (uint32_t i = 0; i < t->p->n_threads; i++)
                t->threads[i].at_ns = UINT64_MAX;
        return t->in->rows(t->in, LS_COL_TIME, give_rows, &pass);
}

static int add_sums(void *ctx, const struct ls_timeline_sample *s)
{
        struct pass *pass = ctx;
        struct ls_timeline_thread *thread = &pass->t->threads[s->thread];

        pass->self[s->stack] += s->ticks;
        pass->t->ticks += s->ticks;
        thread->ticks += s->ticks;
        if (thread->rows++ == 0)
                thread->from_ns = s->from_ns;
        thread->to_ns = s->to_ns;
        return 0;
}

static void find_zero(struct ls_timeline *t)
{
        const struct ls_profile *p = t->p;
        uint64_t start = ls_profile_u64(p, LS_INFO_START_MONOTONIC, UINT64_MAX), first = UINT64_MAX;

        for (uint32_t i = 0; i < p->n_threads; i++) {
                if (!t->threads[i].rows)
                        continue;
                t->n_threads++;
                if (t->threads[i].from_ns < first)
                        first = t->threads[i].from_ns;
                if (t->threads[i].to_ns > t->to_ns)
                        t->to_ns = t->threads[i].to_ns;
        }
        if (first == UINT64_MAX)
                first = start == UINT64_MAX ? 0 : start;
        t->zero_ns = start < first ? start : first;
        if (t->to_ns < t->zero_ns)
                t->to_ns = t->zero_ns;
        /* Modulo 2^64: the zero may be before the instant at which both clocks were read. */
        if (p->n_clocks)
                t->zero_realtime_ns = p->clocks[0].realtime_ns +
                                      (t->zero_ns - p->clocks[0].monotonic_ns);
        else if (start != UINT64_MAX && ls_profile_u64(p, LS_INFO_START_REALTIME, 0))
                t->zero_realtime_ns = ls_profile_u64(p, LS_INFO_START_REALTIME, 0) +
                                      (t->zero_ns - start);
}

/* Samples without a stack are shown as a function too, as in all views: that of location 0. */
static int add_no_stack(struct ls_timeline *t, uint64_t ticks)
{
        struct ls_calltree_node *nodes;

        if (!ticks)
                return 0;
        nodes = realloc(t->tree->nodes, ((size_t)t->tree->n + 1) * sizeof(*nodes));
        if (!nodes)
                return -ENOMEM;
        nodes[t->tree->n] = (struct ls_calltree_node){
                .label = t->in->frame_of_location[0], .depth = 1, .self = ticks, .total = ticks
        };
        t->tree->nodes = nodes;
        t->tree->node_of_stack[0] = t->tree->n++;
        return 0;
}

static int describe_frames(struct ls_timeline *t)
{
        const struct ls_profile *p = t->p;

        t->frames = calloc((size_t)t->in->n_frames + 1, sizeof(*t->frames));
        t->frame_of_number = calloc((size_t)t->in->n_frames + 1, sizeof(*t->frame_of_number));
        if (!t->frames || !t->frame_of_number)
                return -ENOMEM;
        for (uint32_t i = 1; i < t->tree->n; i++) {
                struct ls_timeline_frame *f = &t->frames[t->tree->nodes[i].label];

                if (f->number)
                        continue;
                t->frame_of_number[t->n_frames] = t->tree->nodes[i].label;
                f->number = ++t->n_frames;
        }
        for (uint32_t i = p->n_locations; i-- > 1;) {
                const struct ls_location *l = &p->locations[i];
                uint32_t frame = t->in->frame_of_location[i];
                int is_function = !strcmp(t->in->frame_text(t->in->ctx, frame),
                                          t->in->labels->function[l->function]);

                t->frames[frame].location = i;
                t->frames[frame].line = is_function ? p->functions[l->function].first_line
                                                    : l->line;
                if (is_function && (p->functions[l->function].flags & LS_FUNCF_MAIN))
                        t->frames[frame].line = 1;
        }
        return 0;
}

static int find_zone_levels(struct ls_timeline *t)
{
        const struct ls_profile *p = t->p;

        t->zone_level = calloc((size_t)p->n_zones + 1, 1);
        for (uint32_t i = 1; t->zone_level && i < p->n_zones; i++) {
                uint8_t above = t->zone_level[p->zones[i].parent];

                t->zone_level[i] = above <= LS_TIMELINE_ZONES ? above + 1 : above;
        }
        return t->zone_level ? 0 : -ENOMEM;
}

int ls_timeline_zones(const struct ls_timeline *t, uint32_t from, uint32_t to,
                      ls_timeline_zone_fn fn, void *ctx)
{
        uint32_t begin[LS_TIMELINE_ZONES];
        unsigned n = 0;
        int r = 0;

        while (!r && from != to) {              /* a parent's number is less than its child's */
                uint32_t *higher = from > to ? &from : &to;
                unsigned level = t->zone_level[*higher];

                if (level <= LS_TIMELINE_ZONES && higher == &to)
                        begin[n++] = to;
                else if (level <= LS_TIMELINE_ZONES)
                        r = fn(ctx, from, level - 1, 0);
                *higher = t->p->zones[*higher].parent;
        }
        while (!r && n-- > 0)
                r = fn(ctx, begin[n], t->zone_level[begin[n]] - 1u, 1);
        return r;
}

/* By key, then value, then place in the table. */
static int compare_str(struct ls_str a, struct ls_str b)
{
        int c = memcmp(a.s, b.s, a.len < b.len ? a.len : b.len);

        return c ? c : a.len < b.len ? -1 : a.len > b.len;
}

static int by_key_and_value(const void *a, const void *b, void *ctx)
{
        const struct ls_sample_label *all = ctx;
        uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
        int c = compare_str(all[i].key, all[k].key);

        if (!c)
                c = compare_str(all[i].value, all[k].value);
        return c ? c : i < k ? -1 : i > k;
}

static int find_equal_labels(struct ls_timeline *t)
{
        struct ls_sample_label *all = t->p->sample_labels;
        uint32_t n = t->p->n_sample_labels;
        uint32_t *sorted = calloc((size_t)n + 1, sizeof(*sorted));

        t->labels = calloc((size_t)n + 1, sizeof(*t->labels));
        if (!sorted || !t->labels) {
                free(sorted);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < n; i++)
                sorted[i] = i;
        if (n)
                qsort_r(sorted, n, sizeof(*sorted), by_key_and_value, all);
        for (uint32_t i = 0; i < n; i++) {
                struct ls_timeline_label *own = &t->labels[sorted[i]];
                const struct ls_timeline_label *last = i ? &t->labels[sorted[i - 1]] : NULL;
                int same_key = last && !compare_str(all[last->key].key, all[sorted[i]].key);

                own->key = same_key ? last->key : sorted[i];
                own->same = same_key && !compare_str(all[last->same].value, all[sorted[i]].value)
                                    ? last->same
                                    : sorted[i];
        }
        free(sorted);
        return 0;
}

/* What holds with a label: of each key the innermost. Returns their number. */
static unsigned labels_of(const struct ls_timeline *t, uint32_t label, uint32_t *set)
{
        unsigned n = 0;

        for (unsigned steps = 0; label && steps < LS_TIMELINE_LABELS;
             label = t->p->sample_labels[label].parent, steps++) {
                unsigned i = 0;

                while (i < n && t->labels[set[i]].key != t->labels[label].key)
                        i++;
                if (i == n)
                        set[n++] = t->labels[label].same;
        }
        return n;
}

static int has_label(const uint32_t *set, unsigned n, uint32_t label)
{
        for (unsigned i = 0; i < n; i++)
                if (set[i] == label)
                        return 1;
        return 0;
}

int ls_timeline_labels(const struct ls_timeline *t, uint32_t from, uint32_t to,
                       ls_timeline_label_fn fn, void *ctx)
{
        uint32_t before[LS_TIMELINE_LABELS], after[LS_TIMELINE_LABELS];
        unsigned n_before = labels_of(t, from, before), n_after = labels_of(t, to, after);
        int r = 0;

        for (unsigned i = 0; !r && i < n_before; i++)
                if (!has_label(after, n_after, before[i]))
                        r = fn(ctx, before[i], 0);
        for (unsigned i = 0; !r && i < n_after; i++)
                if (!has_label(before, n_before, after[i]))
                        r = fn(ctx, after[i], 1);
        return r;
}

int ls_timeline_marks(const struct ls_timeline *t, ls_timeline_mark_fn fn, void *ctx)
{
        int r = 0;

        for (uint32_t i = 0; !r && i < t->p->n_marks; i++) {
                const struct ls_mark *mark = &t->p->marks[i];

                if (t->threads[mark->thread].rows &&
                    !(t->in->from_ns && mark->time_ns < t->in->from_ns) &&
                    !(t->in->to_ns && mark->time_ns > t->in->to_ns))
                        r = fn(ctx, i);
        }
        return r;
}

const char *ls_timeline_phase_name(unsigned phase)
{
        static const char *const names[LS_GC_PHASES] = {
#define LS_GC_PHASE(NAME, name, meaning) "collector: " name,
#include "formats/wire/gcphases.def"
#undef LS_GC_PHASE
        };

        return names[phase];
}

/* The phases of one series; the last goes on to end_ns. */
static int give_phases(const struct ls_timeline *t, uint32_t counter, uint32_t thread,
                       uint64_t end_ns, ls_timeline_phase_fn fn, void *ctx)
{
        const struct ls_counter_series *s = &t->p->counters[counter];
        int r = 0;

        for (uint32_t k = 0; !r && k < s->n; k++) {
                uint64_t from = s->counts[k].time_ns;
                uint64_t to = k + 1 < s->n ? s->counts[k + 1].time_ns : end_ns;
                double phase = s->counts[k].value;

                from = from > t->in->from_ns ? from : t->in->from_ns;
                to = t->in->to_ns && to > t->in->to_ns ? t->in->to_ns : to;
                if (phase >= LS_GC_MARK && phase < LS_GC_PHASES && from < to)
                        r = fn(ctx, counter, thread, (unsigned)phase, from, to);
        }
        return r;
}

int ls_timeline_phases(const struct ls_timeline *t, ls_timeline_phase_fn fn, void *ctx)
{
        int r = 0;

        for (uint32_t i = 1; !r && i < t->p->n_counters; i++) {
                const struct ls_counter_series *s = &t->p->counters[i];
                uint32_t thread = t->p->n_threads;
                uint64_t end_ns = 0;

                for (uint32_t k = t->p->n_threads; s->what == LS_COUNTER_PHASE && k-- > 0;) {
                        if (!t->threads[k].rows || t->p->threads[k].process != s->process)
                                continue;
                        thread = k;
                        end_ns = t->threads[k].to_ns > end_ns ? t->threads[k].to_ns : end_ns;
                }
                if (thread < t->p->n_threads)
                        r = give_phases(t, i, thread, end_ns, fn, ctx);
        }
        return r;
}

static int give_region(const struct ls_timeline *t, uint32_t region, uint64_t to_ns,
                       ls_timeline_region_fn fn, void *ctx)
{
        const struct ls_region *begin = &t->p->regions[region];
        const struct ls_timeline_thread *thread = &t->threads[begin->thread];
        uint64_t from_ns = begin->time_ns > thread->from_ns ? begin->time_ns : thread->from_ns;

        if (to_ns > thread->to_ns)
                to_ns = thread->to_ns;
        return thread->rows && from_ns < to_ns ? fn(ctx, region, from_ns, to_ns) : 0;
}

int ls_timeline_regions(const struct ls_timeline *t, ls_timeline_region_fn fn, void *ctx)
{
        const struct ls_profile *p = t->p;
        /* Open regions of each thread, the last one first; numbers from 1. */
        uint32_t *open = calloc((size_t)p->n_threads + 1, sizeof(*open));
        uint32_t *before = calloc((size_t)p->n_regions + 1, sizeof(*before));
        int r = open && before ? 0 : -ENOMEM;

        for (uint32_t i = 0; !r && i < p->n_regions; i++) {
                uint32_t *last = &open[p->regions[i].thread];

                if (p->regions[i].begin) {
                        before[i + 1] = *last;
                        *last = i + 1;
                } else if (*last) {
                        r = give_region(t, *last - 1, p->regions[i].time_ns, fn, ctx);
                        *last = before[*last];
                }
        }
        for (uint32_t i = 0; !r && i < p->n_threads; i++)
                for (; !r && open[i]; open[i] = before[open[i]])
                        r = give_region(t, open[i] - 1, UINT64_MAX, fn, ctx);
        free(open);
        free(before);
        return r;
}

int ls_timeline_new(const struct ls_export *in, struct ls_timeline **ret)
{
        struct ls_timeline *t = calloc(1, sizeof(*t));
        struct pass sums = { .t = t };
        int r = -ENOMEM;

        if (!t)
                return r;
        t->in = in;
        t->p = in->profile;
        t->threads = calloc((size_t)t->p->n_threads + 1, sizeof(*t->threads));
        sums.self = calloc((size_t)t->p->n_stacks + 1, sizeof(*sums.self));
        if (t->threads && sums.self)
                r = ls_timeline_each(t, add_sums, &sums);
        if (!r)
                r = ls_calltree_new(
                        &(struct ls_calltree_request){
                                .profile = t->p,
                                .self = sums.self,
                                .label_of_location = in->frame_of_location,
                                .want_nodes_of_stacks = 1,
                        },
                        &t->tree);
        if (!r)
                r = add_no_stack(t, sums.self[0]);
        if (!r)
                r = describe_frames(t);
        if (!r)
                r = find_zone_levels(t);
        if (!r)
                r = find_equal_labels(t);
        free(sums.self);
        if (r) {
                ls_timeline_free(t);
                return r;
        }
        find_zero(t);
        *ret = t;
        return 0;
}

void ls_timeline_free(struct ls_timeline *t)
{
        if (!t)
                return;
        ls_calltree_free(t->tree);
        free(t->threads);
        free(t->frames);
        free(t->frame_of_number);
        free(t->zone_level);
        free(t->labels);
        free(t);
}

uint32_t ls_timeline_depth(const struct ls_timeline *t)
{
        uint32_t depth = 0;

        for (uint32_t i = 0; i < t->tree->n; i++)
                if (t->tree->nodes[i].depth > depth)
                        depth = t->tree->nodes[i].depth;
        return depth;
}

uint32_t ls_timeline_path(const struct ls_timeline *t, uint32_t node, uint32_t *path)
{
        uint32_t n = t->tree->nodes[node].depth;

        for (uint32_t i = n; i > 0; node = t->tree->nodes[node].parent)
                path[--i] = node;
        return n;
}

static const struct ls_function *function_of(const struct ls_timeline *t, uint32_t frame)
{
        return &t->p->functions[t->p->locations[t->frames[frame].location].function];
}

struct ls_str ls_timeline_file(const struct ls_timeline *t, uint32_t frame)
{
        const struct ls_function *f = function_of(t, frame);

        if (f->kind == LS_FUNC_LUA)
                return ls_source_path(&t->p->sources[f->source]);
        if (f->kind == LS_FUNC_C || f->kind == LS_FUNC_NATIVE)
                return t->p->mappings[f->mapping].path;
        return (struct ls_str){ "", 0 };
}

const char *ls_timeline_kind(const struct ls_timeline *t, uint32_t frame)
{
        static const char *const kinds[] = { [LS_FUNC_LUA] = "lua",
                                             [LS_FUNC_C] = "c",
                                             [LS_FUNC_BUILTIN] = "builtin",
                                             [LS_FUNC_NATIVE] = "native" };
        uint8_t kind = function_of(t, frame)->kind;

        return kind < sizeof(kinds) / sizeof(kinds[0]) && kinds[kind] ? kinds[kind] : "other";
}

char *ls_timeline_thread_name(const struct ls_timeline *t, uint32_t thread)
{
        const struct ls_thread *own = &t->p->threads[thread];
        const struct ls_str *name = own->name.len ? &own->name
                                                  : &t->p->processes[own->process].name;

        return name->len ? ls_visible(name->s, name->len) : strdup("thread");
}

uint32_t ls_timeline_pid(const struct ls_timeline *t, uint32_t thread)
{
        return t->p->processes[t->p->threads[thread].process].pid;
}

int64_t ls_timeline_thread_of(const struct ls_timeline *t, uint32_t process)
{
        int64_t nth = 0;

        for (uint32_t i = 0; i < t->p->n_threads; i++) {
                if (t->threads[i].rows && t->p->threads[i].process == process)
                        return nth;
                nth += t->threads[i].rows != 0;
        }
        return -1;
}
