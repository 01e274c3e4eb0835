/* Counters of a trace: their values, by counter and in the order of time. Called by resolve.c. */
#include "formats/trace/reader_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define COL(KIND, NAME) row[LS_C_##KIND##_##NAME]

/* The value of row i of the file, if it is one: its counter has an entry, and it is a number. */
static int take(const struct ls_reader *r, uint32_t i, uint64_t *ret_counter, struct ls_count *ret)
{
        const uint64_t *row = ls_dict_has(&r->dict[LS_REC_COUNT], i)
                                      ? ls_dict_row(&r->dict[LS_REC_COUNT], i)
                                      : NULL;

        if (!row || !COL(COUNT, COUNTER) || COL(COUNT, COUNTER) >= r->p->n_counters)
                return 0;
        *ret_counter = COL(COUNT, COUNTER);
        ret->time_ns = COL(COUNT, TIME);
        ret->row = i;
        memcpy(&ret->value, &COL(COUNT, VALUE), sizeof(ret->value));
        return isfinite(ret->value) != 0;
}

static int by_time(const void *a, const void *b)
{
        const struct ls_count *x = a, *y = b;

        if (x->time_ns != y->time_ns)
                return x->time_ns < y->time_ns ? -1 : 1;
        return x->row < y->row ? -1 : x->row > y->row;
}

/* Each counter gets a part of counts[], as large as it has values; then these are put there. */
static void fill(struct ls_reader *r, struct ls_count *counts)
{
        struct ls_profile *p = r->p;
        uint32_t rows = r->dict[LS_REC_COUNT].n, at = 0;
        struct ls_count c;
        uint64_t counter;

        for (uint32_t i = 1; i <= rows; i++)
                if (take(r, i, &counter, &c))
                        p->counters[counter].n++;
        for (uint32_t k = 1; k < p->n_counters; k++) {
                p->counters[k].counts = counts + at;
                at += p->counters[k].n;
                p->counters[k].n = 0;
        }
        for (uint32_t i = 1; i <= rows; i++)
                if (take(r, i, &counter, &c)) {
                        struct ls_counter_series *s = &p->counters[counter];

                        counts[(s->counts - counts) + s->n++] = c;
                }
        for (uint32_t k = 1; k < p->n_counters; k++)
                if (p->counters[k].n > 1)
                        qsort(counts + (p->counters[k].counts - counts), p->counters[k].n,
                              sizeof(*counts), by_time);
}

int ls_resolve_counters(struct ls_reader *r)
{
        const struct ls_dict *d = &r->dict[LS_REC_COUNTER];
        struct ls_profile *p = r->p;

        p->n_counters = d->n + 1;
        p->counters = calloc(p->n_counters, sizeof(*p->counters));
        p->counts = calloc((size_t)r->dict[LS_REC_COUNT].n + 1, sizeof(*p->counts));
        if (!p->counters || !p->counts)
                return -ENOMEM;
        for (uint32_t i = 0; i < p->n_counters; i++) {
                const uint64_t *row = i && ls_dict_has(d, i) ? ls_dict_row(d, i) : NULL;

                p->counters[i].counts = p->counts;
                p->counters[i].name =
                        row ? ls_reader_str(r, COL(COUNTER, NAME))
                            : (struct ls_str){ LS_LOST_NAME, sizeof(LS_LOST_NAME) - 1 };
                p->counters[i].process = row && COL(COUNTER, PROCESS) < p->n_processes
                                                 ? (uint32_t)COL(COUNTER, PROCESS)
                                                 : 0;
                if (row && COL(COUNTER, WHAT) < LS_COUNTER_WHATS)
                        p->counters[i].what = (uint32_t)COL(COUNTER, WHAT);
                if (row && COL(COUNTER, VM) < p->n_vms)
                        p->counters[i].vm = (uint32_t)COL(COUNTER, VM);
        }
        fill(r, p->counts);
        return 0;
}
