/* View "gc" (--by gc): the time in each phase of the collector, its cycles with the heap, in which
 * functions it was at work, and for which: where allocations were recorded too. */
#include "report/view/view.h"
#include "formats/json.h"
#include "report/model/collector.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define CYCLES_SHOWN 20u                /* of the text; JSON has all */
#define PAYERS_SHOWN 10u

struct payer { uint32_t group; uint64_t weight; };

/* Functions by a weight: ticks of the collector, or bytes that were allocated. */
struct payers {
        struct ls_grouping *groups;
        struct payer *all;
        uint64_t weight;                /* of all */
        double effective;               /* as in struct ls_aggregate */
        uint32_t n;
};

static int by_weight(const void *a, const void *b)
{
        const struct payer *x = a, *y = b;

        if (x->weight != y->weight)
                return x->weight > y->weight ? -1 : 1;
        return x->group < y->group ? -1 : x->group > y->group;
}

static void free_payers(struct payers *p)
{
        ls_grouping_free(p->groups);
        free(p->all);
}

/* Functions by their cells of an aggregate; vmstate: those of this state alone, 0 = all. */
static int find_payers(const struct ls_report *r, const struct ls_aggregate *a, uint8_t vmstate,
                       struct payers *ret)
{
        int error = ls_grouping_new(&ls_keys[0], r->profile, r->labels, &ret->groups);

        if (error)
                return error;
        ret->effective = a->effective;
        ret->n = ret->groups->n_groups;
        ret->all = calloc((size_t)ret->n + 1, sizeof(*ret->all));
        if (!ret->all)
                return -ENOMEM;
        for (uint32_t i = 0; i < ret->n; i++)
                ret->all[i].group = i;
        for (size_t i = 0; i < a->n_cells; i++) {
                const struct ls_cell *c = &a->cells[i];

                if (vmstate && c->vmstate != vmstate)
                        continue;
                ret->all[ls_group_of_cell(ret->groups, c)].weight += c->ticks;
                ret->weight += c->ticks;
        }
        qsort(ret->all, ret->n, sizeof(*ret->all), by_weight);
        while (ret->n && !ret->all[ret->n - 1].weight)
                ret->n--;
        return 0;
}

/* Functions by what they have of an event, state 0 = in each state; none where it was not
 * recorded. */
static int find_of_event(const struct ls_report *r, unsigned event, unsigned state,
                         struct payers *ret)
{
        struct ls_filter filter = *r->filter;
        struct ls_aggregate *a = NULL;
        int error;

        ls_event_rows(event, filter.events);
        error = ls_aggregate_new(r->profile, &filter, LS_DIM_VMSTATE, &a);
        if (!error)
                error = find_payers(r, a, state, ret);
        ls_aggregate_free(a);
        return error;
}

/* Functions by the time of the collector that fell into them: they allocated, and had to do its
 * work. */
static int find_runners(const struct ls_report *r, struct payers *ret)
{
        return find_of_event(r, LS_EVENT_CPU, LS_VMSTATE_GC, ret);
}

static int find_allocators(const struct ls_report *r, struct payers *ret)
{
        return find_of_event(r, LS_EVENT_ALLOC, 0, ret);
}

/* Each byte costs the collector alike, as far as anybody knows: so its time is shared out. */
static void put_allocators(const struct ls_report *r, const struct payers *p, uint64_t gc_ticks)
{
        double seconds = (double)gc_ticks * (double)r->profile->interval_ns / 1e9;
        char amount[LS_AMOUNT], time[32] = "-";

        if (!p->n)
                return;
        fprintf(r->out,
                "\n%s#  Share  +-95%%  Allocated  Collector  By the function that allocated; the "
                "collector's time by bytes%s\n",
                ls_dim(r), ls_plain(r));
        for (uint32_t i = 0; i < p->n && i < PAYERS_SHOWN; i++) {
                double share = ls_share(p->all[i].weight, p->weight);

                if (gc_ticks)
                        snprintf(time, sizeof(time), "%.3fs", share * seconds);
                fprintf(r->out, "%7.2f%% %s%5.2f%%%s %10s %10s  %s\n", 100 * share, ls_dim(r),
                        100 * ls_margin(share, p->effective), ls_plain(r),
                        ls_amount_text(LS_EVENT_ALLOC, (double)p->all[i].weight, amount),
                        time, ls_group_text(p->groups, p->all[i].group));
        }
}

static double mib(double bytes)
{
        return bytes / (1 << 20);
}

static uint64_t ticks_of(const struct ls_gc_cycle *c)
{
        uint64_t sum = 0;

        for (unsigned i = 0; i < LS_GC_PHASES; i++)
                sum += c->ticks[i];
        return sum;
}

static uint64_t end_of(const struct ls_profile *p, const struct ls_gc_cycle *c)
{
        uint64_t end = ls_profile_u64(p, LS_INFO_START_MONOTONIC, 0) +
                       ls_profile_u64(p, LS_INFO_ELAPSED, 0);

        return c->to_ns != UINT64_MAX ? c->to_ns : end > c->from_ns ? end : c->from_ns;
}

static void put_phases(const struct ls_report *r, const struct ls_gc_times *g)
{
        fprintf(r->out, "%s#%*s %7s  Phase%s\n", ls_dim(r), (int)ls_number_width(r) - 1,
                ls_number_title(r, "Share"), "+-95%", ls_plain(r));
        for (unsigned i = 0; i < LS_GC_PHASES; i++) {
                if (!g->ticks[i])
                        continue;
                ls_put_number(r, g->ticks[i], r->aggregate->ticks);
                fputc(' ', r->out);
                ls_put_margin(r, ls_share(g->ticks[i], r->aggregate->ticks),
                              r->aggregate->effective, r->aggregate->ticks);
                fprintf(r->out, "  %s\n", ls_gc_phase_name(i));
        }
}

static void put_cycles(const struct ls_report *r, const struct ls_gc_times *g)
{
        uint64_t start = ls_profile_u64(r->profile, LS_INFO_START_MONOTONIC, 0);
        double ms = (double)r->profile->interval_ns / 1e6;
        int vms = r->profile->n_vms > 2;

        if (g->n)
                fprintf(r->out,
                        "\n%s#%9s %9s %9s %9s %9s %9s %9s%s  MiB before, at most, after; CPU time "
                        "in ms%s\n",
                        ls_dim(r), "Start s", "Length ms", "Before", "Peak", "After", "CPU ms",
                        "Atomic", vms ? "  VM" : "", ls_plain(r));
        for (size_t i = 0; i < g->n && i < CYCLES_SHOWN; i++) {
                const struct ls_gc_cycle *c = &g->cycles[i];

                fprintf(r->out, "%10.3f %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f",
                        c->from_ns > start ? (double)(c->from_ns - start) / 1e9 : 0,
                        (double)(end_of(r->profile, c) - c->from_ns) / 1e6, mib(c->before),
                        mib(c->peak), mib(c->after), (double)ticks_of(c) * ms,
                        (double)c->ticks[LS_GC_ATOMIC] * ms);
                if (vms)
                        fprintf(r->out, "  %u", r->profile->vms[c->vm].number);
                fputs(c->cut ? "  not whole\n" : "\n", r->out);
        }
        if (g->n > CYCLES_SHOWN)
                fprintf(r->out, "# %zu more cycles (--json lists all)\n", g->n - CYCLES_SHOWN);
}

static int gc_text(const struct ls_report *r)
{
        struct payers payers = { 0 }, allocators = { 0 };
        struct ls_gc_times g;
        struct ls_heap_sum sum;
        int error;

        ls_heap_sum(r->profile, &sum);
        if (!sum.vms) {
                fputs("[No heap was recorded: by an older luasample, or of a LuaJIT whose "
                      "collector could not be verified]\n",
                      r->out);
                return 0;
        }
        error = ls_gc_times_new(r->profile, r->filter, &g);
        if (error)
                return error;
        error = find_runners(r, &payers);
        if (!error)
                error = find_allocators(r, &allocators);
        if (!error) {
                put_phases(r, &g);
                put_cycles(r, &g);
                if (payers.n)
                        fprintf(r->out,
                                "\n%s#%*s  Of the time in the collector, by the function that it "
                                "ran in%s\n",
                                ls_dim(r), (int)ls_number_width(r) - 1, ls_number_title(r, "Share"),
                                ls_plain(r));
                for (uint32_t i = 0; i < payers.n && i < PAYERS_SHOWN; i++) {
                        ls_put_number(r, payers.all[i].weight, payers.weight);
                        fprintf(r->out, "  %s\n",
                                ls_group_text(payers.groups, payers.all[i].group));
                }
                put_allocators(r, &allocators, payers.weight);
        }
        free_payers(&allocators);
        free_payers(&payers);
        ls_gc_times_free(&g);
        return error;
}

static void json_phases(struct ls_js *j, const uint64_t *ticks)
{
        ls_js_key_open(j, "phases", '{');
        for (unsigned i = 0; i < LS_GC_PHASES; i++)
                ls_js_key_u64(j, ls_gc_phase_name(i), ticks[i]);
        ls_js_close(j, '}');
}

static void json_cycle(const struct ls_report *r, struct ls_js *j, const struct ls_gc_cycle *c)
{
        uint64_t start = ls_profile_u64(r->profile, LS_INFO_START_MONOTONIC, 0);

        ls_js_open(j, '{');
        ls_js_key_u64(j, "vm", r->profile->vms[c->vm].number);
        ls_js_key_u64(j, "start_ns", c->from_ns > start ? c->from_ns - start : 0);
        ls_js_key_u64(j, "length_ns", end_of(r->profile, c) - c->from_ns);
        ls_js_key_u64(j, "before_bytes", (uint64_t)c->before);
        ls_js_key_u64(j, "peak_bytes", (uint64_t)c->peak);
        ls_js_key_u64(j, "after_bytes", (uint64_t)c->after);
        ls_js_key_bool(j, "whole", !c->cut);
        json_phases(j, c->ticks);
        ls_js_close(j, '}');
}

static void json_payers(const struct ls_report *r, struct ls_js *j, const char *key,
                        const char *weight, const struct payers *p)
{
        ls_js_key_open(j, key, '[');
        for (uint32_t i = 0; i < p->n; i++) {
                ls_js_open(j, '{');
                ls_js_group(r, j, p->groups, p->all[i].group);
                ls_js_key_u64(j, weight, p->all[i].weight);
                ls_js_close(j, '}');
        }
        ls_js_close(j, ']');
}

static int gc_json(const struct ls_report *r, struct ls_js *j)
{
        struct payers payers = { 0 }, allocators = { 0 };
        struct ls_gc_times g;
        int error = ls_gc_times_new(r->profile, r->filter, &g);

        if (error)
                return error;
        error = find_runners(r, &payers);
        if (!error)
                error = find_allocators(r, &allocators);
        if (!error) {
                json_phases(j, g.ticks);
                ls_js_key_open(j, "cycles", '[');
                for (size_t i = 0; i < g.n; i++)
                        json_cycle(r, j, &g.cycles[i]);
                ls_js_close(j, ']');
                json_payers(r, j, "functions", "ticks", &payers);
                if (allocators.n)
                        json_payers(r, j, "allocated", "bytes", &allocators);
        }
        free_payers(&allocators);
        free_payers(&payers);
        ls_gc_times_free(&g);
        return error;
}

static int gc_chosen(const struct ls_report_options *o)
{
        return o->gc;
}

static unsigned gc_dims(const struct ls_report_options *o)
{
        (void)o;
        return LS_DIM_VMSTATE;
}

const struct ls_view ls_view_gc = {
        .name = "gc", .chosen = gc_chosen, .dims = gc_dims, .text = gc_text, .json = gc_json
};
