/* Member "heap" of a page: the heap of each VM over time and what its collector did, as ticks read
 * them. Called by report/page/page.c. */
#include "report/page/page.h"
#include "formats/json.h"
#include "report/model/collector.h"

#include <errno.h>
#include <stdlib.h>

#define MOST_TRACKS 8u                  /* of the VMs with the largest heaps */

struct track {
        const struct ls_counter_series *heap, *phase;
        double peak;
};

static int by_peak(const void *a, const void *b)
{
        const struct track *x = a, *y = b;

        if (x->peak != y->peak)
                return x->peak > y->peak ? -1 : 1;
        return x->heap->vm < y->heap->vm ? -1 : x->heap->vm > y->heap->vm;
}

/* Returns how many; to has room for as many as there are counters. */
static uint32_t list_tracks(const struct ls_profile *p, struct track *to, struct track *by_vm)
{
        uint32_t n = 0;

        for (uint32_t i = 1; i < p->n_counters; i++) {
                const struct ls_counter_series *s = &p->counters[i];

                if (s->what == LS_COUNTER_PHASE)
                        by_vm[s->vm].phase = s;
                if (s->what == LS_COUNTER_HEAP && s->n)
                        by_vm[s->vm].heap = s;
        }
        for (uint32_t vm = 1; vm < p->n_vms; vm++) {
                struct track *t = &by_vm[vm];

                for (uint32_t k = 0; t->heap && k < t->heap->n; k++)
                        t->peak = t->heap->counts[k].value > t->peak ? t->heap->counts[k].value
                                                                     : t->peak;
                if (t->heap)
                        to[n++] = *t;
        }
        qsort(to, n, sizeof(*to), by_peak);
        return n;
}

/* The first value that is not before that time; *at goes on from call to call. */
static uint32_t skip_to(const struct ls_counter_series *s, uint32_t at, uint64_t ns)
{
        while (at < s->n && s->counts[at].time_ns < ns)
                at++;
        return at;
}

static uint64_t start_of(const struct ls_page_cells *c, uint32_t bucket)
{
        return c->start_ns + c->first_ns + bucket * c->bucket_ns;
}

/* [bucket, least, most] in bytes of each part of the time with values; from one to the next the
 * heap stays. Before the first bucket is in it, behind the last in that. */
static void put_bytes(const struct ls_page_cells *c, const struct ls_counter_series *s,
                      struct ls_js *g)
{
        uint32_t at = 0;

        ls_js_key_open(g, "bytes", '[');
        for (uint32_t bucket = 0; bucket < c->n_buckets; bucket++) {
                int is_last = bucket + 1 == c->n_buckets;
                uint32_t end = is_last ? s->n : skip_to(s, at, start_of(c, bucket + 1));
                double least = at ? s->counts[at - 1].value : s->counts[0].value, most = least;

                if (at == end)
                        continue;
                for (; at < end; at++) {
                        double v = s->counts[at].value;

                        least = v < least ? v : least;
                        most = v > most ? v : most;
                }
                ls_js_open(g, '[');
                ls_js_u64(g, bucket);
                ls_js_fixed(g, least, 0);
                ls_js_fixed(g, most, 0);
                ls_js_close(g, ']');
        }
        ls_js_close(g, ']');
}

/* [bucket, ns in mark, ns in atomic, ...] of each part of the time with a cycle. */
static void put_phases(const struct ls_page_cells *c, const struct ls_counter_series *s,
                       struct ls_js *g)
{
        uint32_t at = 0, phase = LS_GC_PAUSE;

        ls_js_key_open(g, "phases", '[');
        for (uint32_t bucket = 0; s && bucket < c->n_buckets; bucket++) {
                uint64_t from = start_of(c, bucket), end = start_of(c, bucket + 1);
                uint64_t ns[LS_GC_PHASES] = { 0 };

                for (;;) {
                        uint64_t to = at < s->n && s->counts[at].time_ns < end
                                              ? s->counts[at].time_ns : end;

                        if (to > from) {
                                ns[phase] += to - from;
                                from = to;
                        }
                        if (to == end)
                                break;
                        phase = s->counts[at].value > 0 && s->counts[at].value < LS_GC_PHASES
                                        ? (uint32_t)s->counts[at].value : LS_GC_PAUSE;
                        at++;
                }
                if (ns[LS_GC_PAUSE] >= c->bucket_ns)
                        continue;
                ls_js_open(g, '[');
                ls_js_u64(g, bucket);
                for (unsigned i = LS_GC_PAUSE + 1; i < LS_GC_PHASES; i++)
                        ls_js_u64(g, ns[i]);
                ls_js_close(g, ']');
        }
        ls_js_close(g, ']');
}

static void put_track(const struct ls_page_tables *t, const struct track *track, struct ls_js *g)
{
        ls_js_open(g, '{');
        ls_js_key_text(g, "name", track->heap->name);
        ls_js_key(g, "peak");
        ls_js_fixed(g, track->peak, 0);
        put_bytes(t->c, track->heap, g);
        put_phases(t->c, track->phase, g);
        ls_js_close(g, '}');
}

/* [name, what it does, ticks] of each phase, as --by gc has them. */
static int put_times(const struct ls_page_tables *t, struct ls_js *g)
{
        struct ls_gc_times times;
        int error = ls_gc_times_new(t->r->profile, t->r->filter, &times);

        if (error)
                return error;
        ls_js_key_open(g, "times", '[');
        for (unsigned i = 0; i < LS_GC_PHASES; i++) {
                ls_js_open(g, '[');
                ls_js_string(g, ls_gc_phase_name(i));
                ls_js_string(g, ls_gc_phase_meaning(i));
                ls_js_u64(g, times.ticks[i]);
                ls_js_close(g, ']');
        }
        ls_js_close(g, ']');
        ls_gc_times_free(&times);
        return 0;
}

static int put_all(const struct ls_page_tables *t, const struct ls_heap_sum *sum,
                   const struct track *tracks, uint32_t n, struct ls_js *g)
{
        int error;

        ls_js_open(g, '{');
        ls_js_key_u64(g, "vms", sum->vms);
        ls_js_key(g, "peak");
        ls_js_fixed(g, sum->peak, 0);
        ls_js_key(g, "cycles");
        ls_js_fixed(g, sum->cycles, 0);
        error = put_times(t, g);
        ls_js_key_open(g, "tracks", '[');
        for (uint32_t i = 0; i < n && i < MOST_TRACKS; i++)
                put_track(t, &tracks[i], g);
        ls_js_close(g, ']');
        ls_js_close(g, '}');
        return error;
}

int ls_page_heap_json(const struct ls_page_tables *t, struct ls_js *g)
{
        const struct ls_profile *p = t->r->profile;
        struct ls_heap_sum sum;
        struct track *tracks, *by_vm;
        int error = 0;

        ls_heap_sum(p, &sum);
        ls_js_key(g, "heap");
        if (!sum.vms || !t->c->n_buckets) {
                ls_js_null(g);
                return 0;
        }
        tracks = calloc((size_t)p->n_vms + 1, sizeof(*tracks));
        by_vm = calloc((size_t)p->n_vms + 1, sizeof(*by_vm));
        if (tracks && by_vm)
                error = put_all(t, &sum, tracks, list_tracks(p, tracks, by_vm), g);
        else
                error = -ENOMEM;
        free(tracks);
        free(by_vm);
        return error;
}
