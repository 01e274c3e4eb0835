/* Exporter "chrome": Trace Event JSON. The same samples twice: as samples with stackFrames, which
 * speedscope and chrome://tracing add up, and as slices, from which chrome://tracing and Perfetto
 * draw a chart. Zones, regions, labels and collectors' phases are asynchronous slices: a slice of
 * a function goes on when a label changes, and so cannot have it. Marks are instants, the program's
 * counters and the VMs' heaps are counter events.
 *
 * A reader takes a sample to last until the next one of its thread. So where a thread did not run,
 * and at its end, there is a sample of stack frame 0, "[idle]".
 *
 * speedscope recurses into its call tree, whether made from samples or from slices, so that it
 * fails on stacks of some thousands of frames. They are whole here, for the other readers. */
#include "formats/escape.h"
#include "formats/json.h"
#include "formats/export/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct open_frames {                    /* of a thread: slices that have not ended */
        uint32_t node, zone, label;
        uint64_t to_ns;                 /* end of the last sample */
        uint64_t *since_ns;             /* by depth */
        uint32_t room;
};

struct chrome {
        struct ls_timeline *t;
        struct ls_js j;
        struct open_frames *open;       /* [n_threads] */
        uint32_t *ending;               /* room for the deepest stack */
        uint32_t thread;                /* whose zones and labels change */
        uint64_t time_ns;               /* when */
};

static void put_time(struct chrome *x, const char *key, uint64_t ns)
{
        ls_js_key(&x->j, key);
        ls_js_thousandths(&x->j, ns);   /* microseconds */
}

static void put_ids(struct chrome *x, uint32_t thread)
{
        ls_js_key_u64(&x->j, "pid", ls_timeline_pid(x->t, thread));
        ls_js_key_u64(&x->j, "tid", x->t->p->threads[thread].tid);
}

static void put_metadata(struct chrome *x, const char *what, uint32_t pid, const uint32_t *tid,
                         const char *name)
{
        ls_js_open(&x->j, '{');
        ls_js_key_string(&x->j, "ph", "M");
        ls_js_key_string(&x->j, "name", what);
        ls_js_key_u64(&x->j, "pid", pid);
        ls_js_key_u64(&x->j, "tid", tid ? *tid : 0);
        ls_js_key_u64(&x->j, "ts", 0);
        ls_js_key_open(&x->j, "args", '{');
        ls_js_key_string(&x->j, "name", name);
        ls_js_close(&x->j, '}');
        ls_js_close(&x->j, '}');
}

/* Names of the processes and of the threads that have samples; of process 0 too, so that the list
 * is never empty. */
static int put_names(struct chrome *x)
{
        const struct ls_profile *p = x->t->p;

        for (uint32_t i = 0; i < p->n_processes; i++) {
                struct ls_str name = p->processes[i].name;

                if (i == 0 && p->n_processes > 1)
                        continue;
                put_metadata(x, "process_name", p->processes[i].pid, NULL,
                             name.len ? name.s : "process");
        }
        for (uint32_t i = 0; i < p->n_threads; i++) {
                char *name;

                if (!x->t->threads[i].rows)
                        continue;
                name = ls_timeline_thread_name(x->t, i);
                if (!name)
                        return -ENOMEM;
                put_metadata(x, "thread_name", ls_timeline_pid(x->t, i), &p->threads[i].tid, name);
                free(name);
        }
        return 0;
}

static void put_slice(struct chrome *x, uint32_t thread, uint32_t node, uint64_t from_ns,
                      uint64_t to_ns)
{
        uint32_t frame = x->t->tree->nodes[node].label;

        ls_js_open(&x->j, '{');
        ls_js_key_string(&x->j, "ph", "X");
        ls_js_key_string(&x->j, "name", x->t->in->frame_text(x->t->in->ctx, frame));
        ls_js_key_string(&x->j, "cat", ls_timeline_kind(x->t, frame));
        put_ids(x, thread);
        put_time(x, "ts", from_ns - x->t->zero_ns);
        put_time(x, "dur", to_ns - from_ns);
        ls_js_close(&x->j, '}');
}

/* The beginning of an event beside the stacks, which the caller closes. */
static void open_event(struct chrome *x, const char *phase, const char *category, uint32_t thread,
                       struct ls_str name, uint64_t ns)
{
        ls_js_open(&x->j, '{');
        ls_js_key_string(&x->j, "ph", phase);
        ls_js_key(&x->j, "name");
        ls_js_text(&x->j, name);
        ls_js_key_string(&x->j, "cat", category);
        put_ids(x, thread);
        put_time(x, "ts", ns > x->t->zero_ns ? ns - x->t->zero_ns : 0);
}

#define MOST_SHOWN                                                                                 \
        4096u /* bytes of a name that each of its slices repeats; the agent sends no more */

static struct ls_str shown(struct ls_str s)
{
        return (struct ls_str){ s.s, s.len < MOST_SHOWN ? s.len : MOST_SHOWN };
}

/* One end of a slice beside the stacks: of a zone or a region. */
static void put_end(struct chrome *x, const char *category, uint32_t thread, struct ls_str name,
                    int begins, uint64_t ns)
{
        char id[32];

        snprintf(id, sizeof(id), "%s-%u", category, thread);
        open_event(x, begins ? "b" : "e", category, thread, name, ns);
        ls_js_key_string(&x->j, "id", id);
        ls_js_close(&x->j, '}');
}

static int put_zone(void *ctx, uint32_t zone, unsigned level, int begins)
{
        struct chrome *x = ctx;

        (void)level;
        put_end(x, "zone", x->thread, shown(x->t->p->zones[zone].name), begins, x->time_ns);
        return 0;
}

/* Each key has a line of its own on the thread: its slices follow each other. */
static int put_label(void *ctx, uint32_t label, int begins)
{
        struct chrome *x = ctx;
        struct ls_str k = shown(x->t->p->sample_labels[label].key),
                      v = shown(x->t->p->sample_labels[label].value);
        char id[48], *key = ls_visible(k.s, k.len), *value = ls_visible(v.s, v.len);
        char *name = key && value ? ls_print("%s=%s", key, value) : NULL;

        free(key);
        free(value);
        if (!name)
                return -ENOMEM;
        snprintf(id, sizeof(id), "label-%u-%u", x->thread, x->t->labels[label].key);
        open_event(x, begins ? "b" : "e", "label", x->thread,
                   (struct ls_str){ name, (uint32_t)strlen(name) }, x->time_ns);
        ls_js_key_string(&x->j, "id", id);
        ls_js_key_open(&x->j, "args", '{');
        ls_js_key(&x->j, "key");
        ls_js_text(&x->j, k);
        ls_js_key(&x->j, "value");
        ls_js_text(&x->j, v);
        ls_js_close(&x->j, '}');
        ls_js_close(&x->j, '}');
        free(name);
        return 0;
}

static int put_mark(void *ctx, uint32_t mark)
{
        struct chrome *x = ctx;
        const struct ls_mark *m = &x->t->p->marks[mark];

        open_event(x, "i", "mark", m->thread, m->name, m->time_ns);
        ls_js_key_string(&x->j, "s", "t");      /* of its thread */
        ls_js_close(&x->j, '}');
        return 0;
}

static int put_region(void *ctx, uint32_t region, uint64_t from_ns, uint64_t to_ns)
{
        static const struct ls_str unnamed = { "region", 6 };
        struct chrome *x = ctx;
        const struct ls_region *g = &x->t->p->regions[region];

        put_end(x, "region", g->thread, g->name.len ? g->name : unnamed, 1, from_ns);
        put_end(x, "region", g->thread, g->name.len ? g->name : unnamed, 0, to_ns);
        return 0;
}

static int change_zone(struct chrome *x, uint32_t thread, uint32_t zone, uint32_t label,
                       uint64_t ns)
{
        struct open_frames *o = &x->open[thread];
        uint32_t old_zone = o->zone, old_label = o->label;
        int r = 0;

        x->thread = thread;
        x->time_ns = ns;
        o->zone = zone;
        o->label = label;
        if (zone != old_zone)
                r = ls_timeline_zones(x->t, old_zone, zone, put_zone, x);
        if (!r && label != old_label)
                r = ls_timeline_labels(x->t, old_label, label, put_label, x);
        return r;
}

/* Ends the slices of a thread that are not in the path of node, at ns. The outer ones are written
 * first: of two with the same times readers take the first to be the outer one. */
static void end_slices(struct chrome *x, uint32_t thread, uint32_t node, uint64_t ns)
{
        const struct ls_calltree_node *nodes = x->t->tree->nodes;
        struct open_frames *o = &x->open[thread];
        uint32_t other = node, n = 0;

        while (nodes[other].depth > nodes[o->node].depth)
                other = nodes[other].parent;
        while (o->node != other) {
                x->ending[n++] = o->node;
                o->node = nodes[o->node].parent;
                if (nodes[other].depth > nodes[o->node].depth)
                        other = nodes[other].parent;
        }
        while (n-- > 0)
                put_slice(x, thread, x->ending[n], o->since_ns[nodes[x->ending[n]].depth], ns);
}

static int begin_slices(struct chrome *x, uint32_t thread, uint32_t node, uint64_t ns)
{
        struct open_frames *o = &x->open[thread];
        uint32_t depth = x->t->tree->nodes[node].depth;

        if (depth >= o->room) {
                uint32_t room = depth < 32 ? 64 : depth * 2;
                uint64_t *bigger = realloc(o->since_ns, room * sizeof(*bigger));

                if (!bigger)
                        return -ENOMEM;
                o->since_ns = bigger;
                o->room = room;
        }
        for (uint32_t i = x->t->tree->nodes[o->node].depth + 1; i <= depth; i++)
                o->since_ns[i] = ns;
        o->node = node;
        return 0;
}

static int add_slices(void *ctx, const struct ls_timeline_sample *s)
{
        struct chrome *x = ctx;
        struct open_frames *o = &x->open[s->thread];
        int r;

        if (s->gap_ns)
                end_slices(x, s->thread, 0, o->to_ns);
        end_slices(x, s->thread, s->node, s->from_ns);
        r = begin_slices(x, s->thread, s->node, s->from_ns);
        if (!r)
                r = change_zone(x, s->thread, s->zone, s->label, s->from_ns);
        o->to_ns = s->to_ns;
        return r ? r : ferror(x->j.out) ? -EIO : 0;
}

/* Each VM's have a line of their own. */
static int put_phase(void *ctx, uint32_t counter, uint32_t thread, unsigned phase, uint64_t from_ns,
                     uint64_t to_ns)
{
        struct chrome *x = ctx;
        const char *text = ls_timeline_phase_name(phase);
        struct ls_str name = { text, (uint32_t)strlen(text) };
        char id[32];

        snprintf(id, sizeof(id), "collector-%u", counter);
        for (int begins = 1; begins >= 0; begins--) {
                open_event(x, begins ? "b" : "e", "collector", thread, name,
                           begins ? from_ns : to_ns);
                ls_js_key_string(&x->j, "id", id);
                ls_js_close(&x->j, '}');
        }
        return ferror(x->j.out) ? -EIO : 0;
}

/* Those of processes that are shown. */
static void put_counters(struct chrome *x)
{
        const struct ls_profile *p = x->t->p;

        for (uint32_t i = 1; i < p->n_counters; i++) {
                const struct ls_counter_series *s = &p->counters[i];
                int shown = ls_timeline_thread_of(x->t, s->process) >= 0;
                uint64_t ns;

                for (uint32_t k = 0; shown && k < s->n; k++) {
                        if (!ls_export_has_count(x->t->in, s, k, &ns))
                                continue;
                        ls_js_open(&x->j, '{');
                        ls_js_key_string(&x->j, "ph", "C");
                        ls_js_key(&x->j, "name");
                        ls_js_text(&x->j, s->name);
                        ls_js_key_u64(&x->j, "pid", p->processes[s->process].pid);
                        ls_js_key_u64(&x->j, "tid", p->processes[s->process].pid);
                        put_time(x, "ts", ns > x->t->zero_ns ? ns - x->t->zero_ns : 0);
                        ls_js_key_open(&x->j, "args", '{');
                        ls_js_key(&x->j, "value");
                        ls_js_real(&x->j, s->counts[k].value);
                        ls_js_close(&x->j, '}');
                        ls_js_close(&x->j, '}');
                }
        }
}

static int put_events(struct chrome *x)
{
        int r;

        ls_js_key_open(&x->j, "traceEvents", '[');
        r = put_names(x);
        if (!r)
                r = ls_timeline_each(x->t, add_slices, x);
        for (uint32_t i = 0; !r && i < x->t->p->n_threads; i++) {
                end_slices(x, i, 0, x->open[i].to_ns);
                r = change_zone(x, i, 0, 0, x->open[i].to_ns);
        }
        if (!r)
                r = ls_timeline_regions(x->t, put_region, x);
        if (!r)
                r = ls_timeline_marks(x->t, put_mark, x);
        if (!r)
                r = ls_timeline_phases(x->t, put_phase, x);
        put_counters(x);
        ls_js_close(&x->j, ']');
        return r;
}

static void put_stack_frames(struct chrome *x)
{
        const struct ls_calltree *tree = x->t->tree;
        char number[16];

        ls_js_key_open(&x->j, "stackFrames", '{');
        for (uint32_t i = 0; i < tree->n; i++) {
                const struct ls_calltree_node *n = &tree->nodes[i];

                snprintf(number, sizeof(number), "%u", i);
                ls_js_key_open(&x->j, number, '{');
                ls_js_key_string(&x->j, "name",
                                 i ? x->t->in->frame_text(x->t->in->ctx, n->label) : "[idle]");
                ls_js_key_string(&x->j, "category", i ? ls_timeline_kind(x->t, n->label) : "idle");
                if (n->parent)
                        ls_js_key_u64(&x->j, "parent", n->parent);
                ls_js_close(&x->j, '}');
        }
        ls_js_close(&x->j, '}');
}

static void put_sample(struct chrome *x, uint32_t thread, uint32_t node, uint64_t ns,
                       uint32_t ticks)
{
        ls_js_open(&x->j, '{');
        ls_js_key_string(&x->j, "name", x->t->in->event);
        ls_js_key_u64(&x->j, "cpu", 0);
        put_ids(x, thread);
        put_time(x, "ts", ns - x->t->zero_ns);
        ls_js_key_u64(&x->j, "sf", node);
        ls_js_key_u64(&x->j, "weight", ticks);
        ls_js_close(&x->j, '}');
}

static int add_sample(void *ctx, const struct ls_timeline_sample *s)
{
        struct chrome *x = ctx;

        if (s->gap_ns)
                put_sample(x, s->thread, 0, s->from_ns - s->gap_ns, 0);
        put_sample(x, s->thread, s->node, s->from_ns, s->ticks);
        return ferror(x->j.out) ? -EIO : 0;
}

static int put_samples(struct chrome *x)
{
        int r;

        ls_js_key_open(&x->j, "samples", '[');
        r = ls_timeline_each(x->t, add_sample, x);
        for (uint32_t i = 0; !r && i < x->t->p->n_threads; i++)
                if (x->t->threads[i].rows)
                        put_sample(x, i, 0, x->t->threads[i].to_ns, 0);
        ls_js_close(&x->j, ']');
        return r;
}

static int put_file(struct chrome *x)
{
        struct ls_str command = ls_profile_str(x->t->p, LS_INFO_COMMAND);
        int r;

        ls_js_open(&x->j, '{');
        ls_js_key_string(&x->j, "displayTimeUnit", "ms");
        ls_js_key_open(&x->j, "otherData", '{');
        ls_js_key_string(&x->j, "creator", "luasample " LS_VERSION);
        ls_js_key(&x->j, "command");
        ls_js_text(&x->j, command);
        ls_js_close(&x->j, '}');
        r = put_events(x);
        put_stack_frames(x);
        if (!r)
                r = put_samples(x);
        ls_js_close(&x->j, '}');
        putc_unlocked('\n', x->j.out);
        return r;
}

static int chrome_write(FILE *out, const struct ls_export *in)
{
        struct chrome x = { .j.out = out };
        int r = ls_timeline_new(in, &x.t);

        if (!r) {
                x.open = calloc((size_t)in->profile->n_threads + 1, sizeof(*x.open));
                x.ending = malloc(((size_t)ls_timeline_depth(x.t) + 1) * sizeof(*x.ending));
                r = x.open && x.ending ? put_file(&x) : -ENOMEM;
        }
        for (uint32_t i = 0; x.open && i < in->profile->n_threads; i++)
                free(x.open[i].since_ns);
        free(x.open);
        free(x.ending);
        ls_timeline_free(x.t);
        return ls_js_result(&x.j, r);
}

const struct ls_exporter ls_export_chrome = {
        .name = "chrome",
        .suffix = ".trace.json",
        .help = "Chrome trace events, for chrome://tracing, Perfetto and speedscope",
        .flags = LS_EXPORT_ROWS | LS_EXPORT_TIMELINE,
        .write = chrome_write,
};
