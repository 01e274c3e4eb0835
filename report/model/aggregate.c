/* One pass over the samples into what a view needs. Called by report/report.c.
 *
 * Without dims a row costs one addition into an array indexed by stack. With dims the rows of a
 * stack are told apart in a hash; the cell that a stack had last is remembered, since runs of equal
 * rows are the rule. */
#include "report/model/aggregate.h"

#include "formats/trace/reader.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->failed = 1)
#include <uthash.h>

#define ALL_OF_THEM 1e30                /* samples: what is counted has no margin */

struct entry {                          /* a cell in the hash */
        struct ls_cell cell;
        struct key {                    /* without padding: it is compared as bytes */
                uint32_t stack, trace;
#define LS_DIM(NAME, name, bits, KIND, key) uint32_t name;
#include "formats/dims.def"
#undef LS_DIM
        } key;
        int failed;
        struct entry *before;           /* made before this one */
        UT_hash_handle hh;
};

struct pass {
        const struct ls_profile *p;
        const struct ls_filter *f;
        unsigned dims;
        struct ls_aggregate *a;
        struct entry *hash, *newest;
        struct entry **last;            /* [n_stacks] the entry that the stack had last */
        size_t n_entries;
        double sum, sum_squares;        /* of the weights of whole samples */
        uint64_t sample_weight;         /* of the sample that is being read: its rows follow each
                                         * other */
        int each_seen;                  /* and each of its ticks was a look of its own: blocked time
                                         * is sent in one row */
};

double ls_margin(double share, double n)
{
        const double z = 1.959964;      /* 95 % of a normal distribution lie within +-z */

        if (n < 1)
                return 1;
        return z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n));
}

static struct entry *find_entry(struct pass *s, const struct key *key)
{
        struct entry *e = s->last[key->stack];

        if (e && !memcmp(&e->key, key, sizeof(*key)))
                return e;
        HASH_FIND(hh, s->hash, key, sizeof(*key), e);
        if (!e) {
                e = calloc(1, sizeof(*e));
                if (!e)
                        return NULL;
                e->key = *key;
                e->cell = (struct ls_cell){ .stack = key->stack, .trace = key->trace };
#define LS_DIM(NAME, name, bits, KIND, key_) e->cell.name = (LS_DIM_TYPE_##bits)key->name;
#include "formats/dims.def"
#undef LS_DIM
                HASH_ADD(hh, s->hash, key, sizeof(e->key), e);
                if (e->failed) {
                        free(e);
                        return NULL;
                }
                e->before = s->newest;
                s->newest = e;
                s->n_entries++;
        }
        s->last[key->stack] = e;
        return e;
}

static void end_sample(struct pass *s)
{
        double w = (double)s->sample_weight;

        if (!s->sample_weight)
                return;
        s->a->samples++;
        s->sum += w;
        s->sum_squares += s->each_seen ? w : w * w;
        s->sample_weight = 0;
}

/* The columns that are asked for; the others stay 0. */
static void fill_key(unsigned dims, const struct ls_sample_block *b, uint32_t i, struct key *key)
{
#define LS_DIM(NAME, name, bits, KIND, key_) if (dims & LS_DIM_##NAME) key->name = b->name[i];
#include "formats/dims.def"
#undef LS_DIM
        if ((dims & LS_DIM_TRACE) && b->trace)
                key->trace = b->trace[i];
}

static int take_row(struct pass *s, const struct ls_sample_block *b, uint32_t i)
{
        struct key key = { .stack = b->stack[i] };
        struct entry *e;

        s->a->ticks += b->weight[i];
        s->a->gc_ticks += b->vmstate[i] == LS_VMSTATE_GC ? b->weight[i] : 0;
        s->sample_weight += b->weight[i];
        if (s->a->could && ls_event_is_exact(b->event[i]))
                s->a->could[b->stack[i]] = 1;
        if (!s->dims) {
                s->a->self[b->stack[i]] += b->weight[i];
                return 0;
        }
        fill_key(s->dims, b, i, &key);
        e = find_entry(s, &key);
        if (!e)
                return -ENOMEM;
        e->cell.ticks += b->weight[i];
        return 0;
}

/* The same as take_row for rows that are all of one event, unfiltered, without dims to tell them
 * apart, and a sample each. Returns how many it took: not the last, whose sample may go on in the
 * next block. */
static uint32_t take_plain_rows(struct pass *s, const struct ls_sample_block *b)
{
        uint64_t *self = s->a->self, ticks = 0, samples = 0;
        int each_seen = b->n && (b->flags[0] & LS_SAMPLE_OFF_CPU);
        double squares = 0;

        if (s->dims || s->a->could || b->n < 2 || !b->same_event || !b->same_flags ||
            (b->flags[0] & LS_SAMPLE_CONT))
                return 0;
        end_sample(s);
        for (uint32_t i = 0; i < b->n - 1; i++) {
                uint32_t w = b->weight[i];

                self[b->stack[i]] += w;
                ticks += w;
                samples += w != 0;
                squares += (double)w * (double)w;
        }
        for (uint32_t i = 0; i < b->n - 1 && !(b->same_vmstate && b->vmstate[0] != LS_VMSTATE_GC);
             i++)
                s->a->gc_ticks += b->vmstate[i] == LS_VMSTATE_GC ? b->weight[i] : 0;
        s->a->ticks += ticks;
        s->a->all_ticks += ticks;
        s->a->samples += samples;
        s->a->all_samples += b->n - 1;
        s->sum += (double)ticks;
        s->sum_squares += each_seen ? (double)ticks : squares;
        return b->n - 1;
}

static int take_block(void *ctx, const struct ls_sample_block *b)
{
        struct pass *s = ctx;
        int filtered = ls_filter_any(s->f);

        if (b->same_event && b->n && !s->f->events[b->event[0]])
                return 0;
        for (uint32_t i = filtered ? 0 : take_plain_rows(s, b); i < b->n; i++) {
                if (!s->f->events[b->event[i]])
                        continue;
                if (!(b->flags[i] & LS_SAMPLE_CONT)) {
                        end_sample(s);
                        s->a->all_samples++;
                        s->each_seen = (b->flags[i] & LS_SAMPLE_OFF_CPU) != 0;
                }
                s->a->all_ticks += b->weight[i];
                if (filtered && !ls_filter_wants(s->f, b, i))
                        continue;
                if (take_row(s, b, i))
                        return -ENOMEM;
        }
        return 0;
}

/* cells[] out of self[], where it was used, and of the hash; then self[] is of both. */
static int make_cells(struct pass *s)
{
        struct ls_aggregate *a = s->a;
        size_t n = s->n_entries;

        for (uint32_t i = 0; i < s->p->n_stacks; i++)
                n += a->self[i] != 0;
        a->cells = malloc((n + 1) * sizeof(*a->cells));
        if (!a->cells)
                return -ENOMEM;
        for (uint32_t i = 0; i < s->p->n_stacks; i++)
                if (a->self[i])
                        a->cells[a->n_cells++] =
                                (struct ls_cell){ .ticks = a->self[i], .stack = i };
        for (struct entry *e = s->newest; e; e = e->before) {
                if (!e->cell.ticks)
                        continue;
                a->cells[a->n_cells++] = e->cell;
                a->self[e->cell.stack] += e->cell.ticks;
        }
        return 0;
}

static int are_counted(const struct ls_filter *f)
{
        for (unsigned event = 1; event < LS_EVENT_NEXT; event++)
                if (f->events[event] && ls_event_is_exact(event))
                        return 1;
        return 0;
}

int ls_aggregate_new(struct ls_profile *p, const struct ls_filter *f, unsigned dims,
                     struct ls_aggregate **ret)
{
        struct pass s = { .p = p, .f = f, .dims = dims };
        int r = -ENOMEM;

        s.a = calloc(1, sizeof(*s.a));
        if (s.a)
                s.a->self = calloc((size_t)p->n_stacks + 1, sizeof(*s.a->self));
        if (s.a && s.a->self && are_counted(f) &&
            !(s.a->could = calloc((size_t)p->n_stacks + 1, 1))) {
                ls_aggregate_free(s.a);
                return -ENOMEM;
        }
        if (dims)
                s.last = calloc((size_t)p->n_stacks + 1, sizeof(*s.last));
        if (s.a && s.a->self && (s.last || !dims))
                r = ls_profile_samples(p, f->columns | (dims & LS_DIM_TRACE ? LS_COL_TRACE : 0),
                                       take_block, &s);
        if (!r) {
                end_sample(&s);
                s.a->effective = s.a->could          ? ALL_OF_THEM
                                 : s.sum_squares > 0 ? s.sum * s.sum / s.sum_squares
                                                     : 0;
                r = make_cells(&s);
        }
        HASH_CLEAR(hh, s.hash);
        while (s.newest) {
                struct entry *e = s.newest;

                s.newest = e->before;
                free(e);
        }
        free(s.last);
        if (r) {
                ls_aggregate_free(s.a);
                return r;
        }
        *ret = s.a;
        return 0;
}

void ls_aggregate_free(struct ls_aggregate *a)
{
        if (!a)
                return;
        free(a->self);
        free(a->could);
        free(a->cells);
        free(a);
}
