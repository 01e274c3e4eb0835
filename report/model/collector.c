/* See collector.h. A tick that reads a VM's heap has the time of its sample: so the phase that
 * holds then is that of the sample's time in the collector. */
#include "report/model/collector.h"

#include "formats/trace/reader.h"

#include <errno.h>
#include <stdlib.h>

struct series { const struct ls_counter_series *what[LS_COUNTER_WHATS]; };

struct pass {
        const struct ls_profile *p;
        const struct ls_filter *f;
        const struct series *of;        /* by VM */
        struct ls_gc_times *g;
        size_t *first;                  /* by VM: its first cycle; [n_vms] = all */
};

static const char *const phase_texts[LS_GC_PHASES][2] = {
#define LS_GC_PHASE(NAME, name, meaning) { name, meaning },
#include "formats/wire/gcphases.def"
#undef LS_GC_PHASE
};

const char *ls_gc_phase_name(unsigned phase)
{
        return phase_texts[phase][0];
}

const char *ls_gc_phase_meaning(unsigned phase)
{
        return phase_texts[phase][1];
}

void ls_heap_sum(const struct ls_profile *p, struct ls_heap_sum *ret)
{
        *ret = (struct ls_heap_sum){ 0 };
        for (uint32_t i = 1; i < p->n_counters; i++) {
                const struct ls_counter_series *s = &p->counters[i];

                ret->vms += s->what == LS_COUNTER_HEAP && s->n;
                for (uint32_t k = 0; s->what == LS_COUNTER_HEAP && k < s->n; k++)
                        ret->peak = s->counts[k].value > ret->peak ? s->counts[k].value : ret->peak;
                if (s->what == LS_COUNTER_CYCLES && s->n)
                        ret->cycles += s->counts[s->n - 1].value - s->counts[0].value;
        }
}

/* The last value at that time, NULL = none yet. */
static const struct ls_count *value_at(const struct ls_counter_series *s, uint64_t ns)
{
        uint32_t low = 0, high = s ? s->n : 0;

        while (low < high) {
                uint32_t mid = low + (high - low) / 2;

                if (s->counts[mid].time_ns <= ns)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low ? &s->counts[low - 1] : NULL;
}

static double heap_at(const struct series *s, uint64_t ns)
{
        const struct ls_count *c = value_at(s->what[LS_COUNTER_HEAP], ns);

        return c ? c->value : 0;
}

static int add_cycle(struct ls_gc_times *g, const struct series *s, uint32_t vm, uint64_t from,
                     uint64_t to, int cut)
{
        const struct ls_counter_series *heap = s->what[LS_COUNTER_HEAP];
        struct ls_gc_cycle *c;

        if (!(g->n & (g->n - 1))) {
                c = realloc(g->cycles, (g->n ? 2 * g->n : 1) * sizeof(*c));
                if (!c)
                        return -ENOMEM;
                g->cycles = c;
        }
        c = &g->cycles[g->n++];
        *c = (struct ls_gc_cycle){ .vm = vm,
                                   .from_ns = from,
                                   .to_ns = to,
                                   .before = heap_at(s, from),
                                   .after = heap_at(s, to),
                                   .cut = (uint8_t)cut };
        c->peak = c->before > c->after ? c->before : c->after;
        for (const struct ls_count *at = value_at(heap, from);
             at && at < heap->counts + heap->n && at->time_ns <= to; at++)
                c->peak = at->value > c->peak ? at->value : c->peak;
        return 0;
}

/* A cycle goes on while its phase rises: at pause it has ended, and at a lower phase it has, too,
 * and the next has begun. */
static int find_cycles(struct ls_gc_times *g, const struct series *s, uint32_t vm)
{
        const struct ls_counter_series *phases = s->what[LS_COUNTER_PHASE];
        uint64_t from = 0;
        double before = 0;
        int r = 0, cut = 0;

        for (uint32_t i = 0; phases && !r && i < phases->n; i++) {
                const struct ls_count *c = &phases->counts[i];

                if (before != 0 && c->value < before) {
                        r = add_cycle(g, s, vm, from, c->time_ns, cut);
                        before = 0;
                }
                if (before == 0 && c->value != 0) {
                        from = c->time_ns;
                        cut = i == 0;
                }
                before = c->value;
        }
        if (!r && before != 0)
                r = add_cycle(g, s, vm, from, UINT64_MAX, 1);
        return r;
}

static struct ls_gc_cycle *cycle_at(const struct pass *s, uint32_t vm, uint64_t ns)
{
        size_t low = s->first[vm], high = s->first[vm + 1];

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (s->g->cycles[mid].from_ns <= ns)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low > s->first[vm] && ns < s->g->cycles[low - 1].to_ns ? &s->g->cycles[low - 1]
                                                                      : NULL;
}

static int take_block(void *ctx, const struct ls_sample_block *b)
{
        struct pass *s = ctx;
        int filtered = ls_filter_any(s->f);

        for (uint32_t i = 0; i < b->n; i++) {
                const struct ls_count *c;
                struct ls_gc_cycle *cycle;
                unsigned phase;
                uint64_t ns;

                if (b->vmstate[i] != LS_VMSTATE_GC || b->event[i] != LS_EVENT_CPU ||
                    (filtered && !ls_filter_wants(s->f, b, i)))
                        continue;
                ns = b->time_ns[i] + s->p->interval_ns / 16;    /* as coarse as a sample's time
                                                                 * is */
                c = value_at(s->of[b->vm[i]].what[LS_COUNTER_PHASE], ns);
                phase = c && c->value > 0 && c->value < LS_GC_PHASES ? (unsigned)c->value
                                                                     : LS_GC_PAUSE;
                cycle = phase ? cycle_at(s, b->vm[i], ns) : NULL;
                if (cycle)
                        cycle->ticks[phase] += b->weight[i];
                s->g->ticks[phase] += b->weight[i];
        }
        return 0;
}

static int find(struct pass *s, struct series *of)
{
        int r = 0;

        for (uint32_t i = 1; i < s->p->n_counters; i++)
                of[s->p->counters[i].vm].what[s->p->counters[i].what] = &s->p->counters[i];
        for (uint32_t vm = 0; !r && vm < s->p->n_vms; vm++) {
                s->first[vm] = s->g->n;
                r = vm ? find_cycles(s->g, &of[vm], vm) : 0;
        }
        s->first[s->p->n_vms] = s->g->n;
        return r;
}

int ls_gc_times_new(struct ls_profile *p, const struct ls_filter *f, struct ls_gc_times *ret)
{
        struct series *of = calloc((size_t)p->n_vms + 1, sizeof(*of));
        struct pass s = { .p = p,
                          .f = f,
                          .of = of,
                          .g = ret,
                          .first = calloc((size_t)p->n_vms + 2, sizeof(*s.first)) };
        int r = of && s.first ? 0 : -ENOMEM;

        *ret = (struct ls_gc_times){ 0 };
        if (!r)
                r = find(&s, of);
        if (!r)
                r = ls_profile_samples(p, f->columns | LS_COL_TIME, take_block, &s);
        free(of);
        free(s.first);
        if (r)
                ls_gc_times_free(ret);
        return r;
}

void ls_gc_times_free(struct ls_gc_times *g)
{
        free(g->cycles);
        *g = (struct ls_gc_times){ 0 };
}
