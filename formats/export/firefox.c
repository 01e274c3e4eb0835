/* Exporter "firefox": the processed format of the Firefox Profiler, which Perfetto reads too.
 * Version 61 is the first with all tables shared by the threads, as they are here; later ones
 * change what luasample does not use, and the profiler brings it up to date when it loads the file.
 *
 * A column is an array, so the samples of a thread are written several times over: they wait in a
 * spool. */
#include "formats/export/firefox.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Without padding: they go to a file as they are. */
struct sample { uint64_t to_ns; uint32_t stack, ticks, vmstate, zero; };
struct marker {
        uint64_t from_ns, to_ns;
        uint32_t string, kind, value, zero;
}; /* value: of labels, a string too */

static int end_zone(void *ctx, uint32_t zone, unsigned level, int begins)
{
        struct ls_fx *x = ctx;
        uint64_t *since = x->open[x->thread]->zone_since;
        struct marker m = { .from_ns = since[level],
                            .to_ns = x->time_ns,
                            .kind = LS_FX_MARKER_ZONE };

        if (begins) {
                since[level] = x->time_ns;
                return 0;
        }
        m.string = ls_fx_zone_string(x, zone);
        return ls_spool_add(x->markers, x->thread, &m);
}

/* Of labels each has its place among the open ones of the thread. */
static int end_label(void *ctx, uint32_t label, int begins)
{
        struct ls_fx *x = ctx;
        struct ls_fx_open *open = x->open[x->thread];
        struct marker m = { .to_ns = x->time_ns, .kind = LS_FX_MARKER_LABEL };
        unsigned i = 0;

        while (i < open->n_labels && open->labels[i].label != label)
                i++;
        if (begins) {
                open->labels[open->n_labels].label = label;
                open->labels[open->n_labels++].since_ns = x->time_ns;
                return 0;
        }
        if (!x->used_labels && !(x->used_labels = calloc(x->p->n_sample_labels, 1)))
                return -ENOMEM;
        x->used_labels[label] = 1;
        m.from_ns = open->labels[i].since_ns;
        open->labels[i] = open->labels[--open->n_labels];
        m.string = ls_fx_label_string(x, label);
        m.value = m.string + 1;
        return ls_spool_add(x->markers, x->thread, &m);
}

static int change_zone(struct ls_fx *x, uint32_t thread, uint32_t zone, uint32_t label, uint64_t ns)
{
        struct ls_fx_open *open = x->open[thread];
        uint32_t old_zone = open ? open->zone : 0, old_label = open ? open->label : 0;
        int r = 0;

        if (zone == old_zone && label == old_label)
                return 0;
        if (!open)
                open = x->open[thread] = calloc(1, sizeof(*open));
        if (!open)
                return -ENOMEM;
        open->zone = zone;
        open->label = label;
        x->thread = thread;
        x->time_ns = ns;
        if (zone != old_zone)
                r = ls_timeline_zones(x->t, old_zone, zone, end_zone, x);
        if (!r && label != old_label)
                r = ls_timeline_labels(x->t, old_label, label, end_label, x);
        return r;
}

static int add_sample(void *ctx, const struct ls_timeline_sample *s)
{
        struct ls_fx *x = ctx;
        struct sample sample = { .stack = s->stack, .ticks = s->ticks, .to_ns = s->to_ns,
                                 .vmstate = s->vmstate < LS_NVMSTATES ? s->vmstate : 0u };
        int r = change_zone(x, s->thread, s->zone, s->label, s->from_ns);

        x->stacks.vmstates[s->stack] |= (uint8_t)(1u << sample.vmstate);
        return r ? r : ls_spool_add(x->samples, s->thread, &sample);
}

static int add_region(void *ctx, uint32_t region, uint64_t from_ns, uint64_t to_ns)
{
        struct ls_fx *x = ctx;
        struct marker m = { .from_ns = from_ns, .to_ns = to_ns, .kind = LS_FX_MARKER_REGION };

        m.string = ls_fx_region_string(x, region);
        return ls_spool_add(x->markers, x->p->regions[region].thread, &m);
}

static int add_mark(void *ctx, uint32_t mark)
{
        struct ls_fx *x = ctx;
        const struct ls_mark *from = &x->p->marks[mark];
        struct marker m = { .from_ns = from->time_ns,
                            .to_ns = from->time_ns,
                            .kind = LS_FX_MARKER_MARK };

        m.string = ls_fx_mark_string(x, mark);
        return ls_spool_add(x->markers, from->thread, &m);
}

static int add_phase(void *ctx, uint32_t counter, uint32_t thread, unsigned phase,
                     uint64_t from_ns, uint64_t to_ns)
{
        struct ls_fx *x = ctx;
        struct marker m = { .from_ns = from_ns, .to_ns = to_ns, .kind = LS_FX_MARKER_PHASE };

        (void)counter;
        x->has_phases = 1;
        m.string = ls_fx_phase_string(x, phase);
        return ls_spool_add(x->markers, thread, &m);
}

static int collect(struct ls_fx *x)
{
        int r = ls_fx_number_files(x);

        if (!r)
                r = ls_timeline_each(x->t, add_sample, x);
        for (uint32_t i = 0; !r && i < x->p->n_threads; i++)
                r = change_zone(x, i, 0, 0, x->t->threads[i].to_ns);
        if (!r)
                r = ls_fx_number_stacks(x);
        if (!r)
                r = ls_timeline_regions(x->t, add_region, x);
        if (!r)
                r = ls_timeline_marks(x->t, add_mark, x);
        return r ? r : ls_timeline_phases(x->t, add_phase, x);
}

static int put_stack(void *ctx, const void *record)
{
        struct ls_fx *x = ctx;
        const struct sample *s = record;

        ls_js_u64(&x->j, ls_fx_row(&x->stacks, s->stack, (uint8_t)s->vmstate));
        return 0;
}

static int put_sample_time(void *ctx, const void *record)
{
        ls_fx_put_ms(ctx, ((const struct sample *)record)->to_ns);
        return 0;
}

static int put_weight(void *ctx, const void *record)
{
        struct ls_fx *x = ctx;

        ls_js_millionths(&x->j, ls_timeline_ns(x->t, ((const struct sample *)record)->ticks));
        return 0;
}

static int put_cpu(void *ctx, const void *record)
{
        struct ls_fx *x = ctx;

        ls_js_u64(&x->j, ls_timeline_ns(x->t, ((const struct sample *)record)->ticks));
        return 0;
}

static int put_marker_name(void *ctx, const void *record)
{
        ls_js_u64(&((struct ls_fx *)ctx)->j, ((const struct marker *)record)->string);
        return 0;
}

static int put_marker_start(void *ctx, const void *record)
{
        ls_fx_put_ms(ctx, ((const struct marker *)record)->from_ns);
        return 0;
}

static int put_marker_end(void *ctx, const void *record)
{
        if (((const struct marker *)record)->kind == LS_FX_MARKER_MARK)
                ls_js_null(&((struct ls_fx *)ctx)->j);
        else
                ls_fx_put_ms(ctx, ((const struct marker *)record)->to_ns);
        return 0;
}

static int put_marker_phase(void *ctx, const void *record)
{
        /* 0 an instant, 1 an interval */
        ls_js_u64(&((struct ls_fx *)ctx)->j,
                  ((const struct marker *)record)->kind != LS_FX_MARKER_MARK);
        return 0;
}

static int put_marker_category(void *ctx, const void *record)
{
        (void)record;
        ls_js_u64(&((struct ls_fx *)ctx)->j, LS_FX_OTHER);
        return 0;
}

static int put_marker_data(void *ctx, const void *record)
{
        struct ls_fx *x = ctx;
        const struct marker *m = record;

        ls_js_open(&x->j, '{');
        ls_js_key_string(&x->j, "type", ls_fx_marker_name(m->kind));
        if (m->kind == LS_FX_MARKER_LABEL)
                ls_js_key_u64(&x->j, "value", m->value);
        ls_js_close(&x->j, '}');
        return 0;
}

static const struct spool_column { const char *name; ls_spool_fn put; } sample_columns[] = {
        { "stack", put_stack },
        { "time", put_sample_time },
        { "weight", put_weight },
        { "threadCPUDelta", put_cpu },          /* the last: of CPU time only */
}, marker_columns[] = {
        { "name", put_marker_name },
        { "startTime", put_marker_start },
        { "endTime", put_marker_end },
        { "phase", put_marker_phase },
        { "category", put_marker_category },
        { "data", put_marker_data },
};

static void put_columns(struct ls_fx *x, struct ls_spool *spool, uint32_t thread,
                        const struct spool_column *columns, size_t n)
{
        ls_js_key_u64(&x->j, "length", ls_spool_count(spool, thread));
        for (size_t i = 0; i < n; i++) {
                ls_js_key_open(&x->j, columns[i].name, '[');
                if (!x->error && ferror(x->j.out))
                        x->error = -EIO;
                if (!x->error)
                        x->error = ls_spool_each(spool, thread, columns[i].put, x);
                ls_js_close(&x->j, ']');
        }
}

/* Threads are known by their tid: one that was used again gets a number behind it. */
static void put_tid(struct ls_fx *x, uint32_t tid, uint32_t nth)
{
        char text[32];

        ls_js_key(&x->j, "tid");
        if (nth == 0) {
                ls_js_u64(&x->j, tid);
                return;
        }
        snprintf(text, sizeof(text), "%u.%u", tid, nth);
        ls_js_string(&x->j, text);
}

static void put_thread(struct ls_fx *x, uint32_t thread, uint32_t nth)
{
        const struct ls_thread *th = &x->p->threads[thread];
        const struct ls_process *process = &x->p->processes[th->process];
        char *name = ls_timeline_thread_name(x->t, thread), pid[16];

        snprintf(pid, sizeof(pid), "%u", process->pid);
        ls_js_open(&x->j, '{');
        ls_js_key_string(&x->j, "name", name ? name : "");
        ls_js_key_bool(&x->j, "isMainThread", process->pid == th->tid);
        ls_js_key(&x->j, "processName");
        ls_js_text(&x->j, process->name);
        ls_js_key_string(&x->j, "processType", "default");
        ls_js_key_string(&x->j, "pid", pid);
        put_tid(x, th->tid, nth);
        ls_js_key_u64(&x->j, "processStartupTime", 0);
        ls_js_key(&x->j, "processShutdownTime");
        ls_js_null(&x->j);
        ls_js_key(&x->j, "registerTime");
        ls_fx_put_ms(x, x->t->threads[thread].from_ns);
        ls_js_key(&x->j, "unregisterTime");
        ls_js_null(&x->j);
        ls_js_key_open(&x->j, "pausedRanges", '[');
        ls_js_close(&x->j, ']');
        ls_js_key_bool(&x->j, "showMarkersInTimeline", 1);
        ls_js_key_open(&x->j, "samples", '{');
        ls_js_key_string(&x->j, "weightType", "tracing-ms");
        put_columns(x, x->samples, thread, sample_columns,
                    sizeof(sample_columns) / sizeof(sample_columns[0]) -
                            (strcmp(x->t->in->event, "cpu") != 0));
        ls_js_close(&x->j, '}');
        ls_js_key_open(&x->j, "markers", '{');
        put_columns(x, x->markers, thread, marker_columns,
                    sizeof(marker_columns) / sizeof(marker_columns[0]));
        ls_js_close(&x->j, '}');
        ls_js_close(&x->j, '}');
        free(name);
}

struct numbered { uint32_t tid, thread; };

static int by_tid(const void *a, const void *b)
{
        const struct numbered *x = a, *y = b;

        if (x->tid != y->tid)
                return x->tid < y->tid ? -1 : 1;
        return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static int put_threads(struct ls_fx *x)
{
        struct numbered *sorted = calloc((size_t)x->p->n_threads + 1, sizeof(*sorted));
        uint32_t *nth = calloc((size_t)x->p->n_threads + 1, sizeof(*nth));
        uint32_t n = 0;

        ls_js_key_open(&x->j, "threads", '[');
        for (uint32_t i = 0; sorted && nth && i < x->p->n_threads; i++)
                if (x->t->threads[i].rows)
                        sorted[n++] = (struct numbered){ x->p->threads[i].tid, i };
        if (n)
                qsort(sorted, n, sizeof(*sorted), by_tid);
        for (uint32_t i = 1; i < n; i++)
                if (sorted[i].tid == sorted[i - 1].tid)
                        nth[sorted[i].thread] = nth[sorted[i - 1].thread] + 1;
        for (uint32_t i = 0; n && i < x->p->n_threads; i++)
                if (x->t->threads[i].rows)
                        put_thread(x, i, nth[i]);
        if (sorted && nth && !n)        /* a profile has a thread */
                put_thread(x, 0, 0);
        ls_js_close(&x->j, ']');
        if (!sorted || !nth)
                x->error = -ENOMEM;
        free(sorted);
        free(nth);
        return x->error;
}

static int put_file(struct ls_fx *x)
{
        int r;

        ls_js_open(&x->j, '{');
        ls_fx_put_meta(x);                    /* first: by it readers know the format */
        ls_fx_put_libs(x);
        ls_fx_put_shared(x);
        r = put_threads(x);
        ls_fx_put_counters(x);
        ls_js_close(&x->j, '}');
        putc_unlocked('\n', x->j.out);
        return r;
}

static void done(struct ls_fx *x)
{
        for (uint32_t i = 0; x->open && i < x->p->n_threads; i++)
                free(x->open[i]);
        free(x->open);
        free(x->used_labels);
        ls_fx_free_numbers(x);
        ls_spool_free(x->samples);
        ls_spool_free(x->markers);
        ls_timeline_free(x->t);
}

static int firefox_write(FILE *out, const struct ls_export *in)
{
        struct ls_fx x = { .p = in->profile, .j.out = out };
        size_t n = in->profile->n_threads;
        int r = ls_timeline_new(in, &x.t);

        if (!r)
                r = ls_spool_new((uint32_t)n, sizeof(struct sample), &x.samples);
        if (!r)
                r = ls_spool_new((uint32_t)n, sizeof(struct marker), &x.markers);
        if (!r) {
                x.open = calloc(n + 1, sizeof(*x.open));
                x.stacks.vmstates = calloc((size_t)x.p->n_stacks + 1, 1);
                r = x.open && x.stacks.vmstates ? collect(&x) : -ENOMEM;
        }
        if (!r)
                r = put_file(&x);
        done(&x);
        return ls_js_result(&x.j, r);
}

const struct ls_exporter ls_export_firefox = {
        .name = "firefox",
        .suffix = ".firefox.json",
        .help = "threads, VM states, zones, labels and marks, for the Firefox Profiler and "
                "Perfetto",
        .flags = LS_EXPORT_ROWS | LS_EXPORT_TIMELINE,
        .write = firefox_write,
};
