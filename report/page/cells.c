/* The samples of a page as ticks by time bucket, stack and context. Called by report/page/page.c.
 *
 * Two passes over the samples: the first finds the times, which give the length of a bucket, the
 * second adds up. A cell is looked for where it was last (a row of a table by its hash), else
 * appended; so some are there twice. They are sorted and merged at the end, and whenever the array
 * is full: it grows only when that made no room. */
#include "formats/trace/reader.h"
#include "report/page/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->failed = 1)
#include <uthash.h>

#define MOST_BUCKETS 1000               /* about a pixel each */
#define FIRST_CAPACITY 65536
#define RECENT 65536                    /* cells that are remembered; a power of two */

struct ls_page_context_entry {
        struct ls_page_context key;     /* zeroed, for its padding is compared */
        uint32_t number;
        int failed;
        UT_hash_handle hh;
};

struct pass {
        struct ls_page_cells *c;
        const struct ls_report *r;
        uint64_t start_ns;              /* of the recording */
        uint64_t *label_ticks;          /* [n_sample_labels] */
        uint64_t first_ns, last_ns;     /* of the rows that pass the filters */
        struct ls_page_context_entry *last;
        uint32_t *recent;               /* [RECENT] 1 + index of a cell; 0 = none */
        uint32_t sample_bucket;         /* of the sample that is being read: its rows follow each
                                         * other */
        uint64_t sample_weight;
        int each_seen;                  /* and each of its ticks was a look of its own, as in
                                         * report/model/aggregate.c */
};

static int by_place(const void *a, const void *b)
{
        const struct ls_page_cell *x = a, *y = b;

        if (x->bucket != y->bucket)
                return x->bucket < y->bucket ? -1 : 1;
        if (x->stack != y->stack)
                return x->stack < y->stack ? -1 : 1;
        return x->context < y->context ? -1 : x->context > y->context;
}

static size_t merge(struct ls_page_cell *cells, size_t n)
{
        size_t kept = 0;

        if (n)
                qsort(cells, n, sizeof(*cells), by_place);
        for (size_t i = 0; i < n; i++) {
                if (kept && by_place(&cells[kept - 1], &cells[i]) == 0)
                        cells[kept - 1].ticks += cells[i].ticks;
                else
                        cells[kept++] = cells[i];
        }
        return kept;
}

static int make_room(struct pass *s)
{
        struct ls_page_cells *c = s->c;
        size_t capacity = c->capacity ? c->capacity * 2 : FIRST_CAPACITY;
        struct ls_page_cell *bigger;

        c->n_cells = merge(c->cells, c->n_cells);
        memset(s->recent, 0, RECENT * sizeof(*s->recent));
        if (c->n_cells < c->capacity / 2)
                return 0;
        bigger = realloc(c->cells, capacity * sizeof(*bigger));
        if (!bigger)
                return -ENOMEM;
        c->cells = bigger;
        c->capacity = capacity;
        return 0;
}

static int find_context(struct pass *s, const struct ls_cell *cell, uint32_t *ret)
{
        struct ls_page_cells *c = s->c;
        struct ls_page_context_entry *e = s->last;
        struct ls_page_context key;

        memset(&key, 0, sizeof(key));
        key.zone = c->zones->key->group(c->zones, cell);
        key.thread = c->threads->key->group(c->threads, cell);
        key.vmstate = cell->vmstate < LS_NVMSTATES ? cell->vmstate : LS_VMSTATE_INTERPRETED;
        key.labels = c->labels.set_of[cell->label];
        if (!e || memcmp(&e->key, &key, sizeof(key)))
                HASH_FIND(hh, c->hash, &key, sizeof(key), e);
        if (!e) {
                e = calloc(1, sizeof(*e));
                if (!e)
                        return -ENOMEM;
                e->key = key;
                e->number = c->n_contexts;
                HASH_ADD(hh, c->hash, key, sizeof(e->key), e);
                if (e->failed) {
                        free(e);
                        return -ENOMEM;
                }
                c->n_contexts++;
        }
        s->last = e;
        *ret = e->number;
        return 0;
}

/* Rows of the event that is shown, in what the filters let through. */
static int is_wanted(const struct pass *s, const struct ls_sample_block *b, uint32_t i)
{
        return s->r->filter->events[b->event[i]] && ls_filter_wants(s->r->filter, b, i);
}

/* Rows of time in which a thread was blocked, or a coroutine suspended, are sent when it ends, or
 * now and then; they are shown where they were. */
#define LASTS (LS_SAMPLE_OFF_CPU | LS_SAMPLE_SUSPENDED)

/* The time of the first of the ticks of a row. */
static uint64_t first_tick(const struct pass *s, const struct ls_sample_block *b, uint32_t i)
{
        uint64_t least = s->r->filter->has_time ? s->r->filter->from_ns : s->start_ns, before;

        if (!(b->flags[i] & LASTS) || b->time_ns[i] <= least || b->weight[i] < 2)
                return b->time_ns[i];
        if (__builtin_mul_overflow(s->r->profile->interval_ns, b->weight[i] - 1, &before) ||
            before >= b->time_ns[i] - least)
                return least + 1;
        return b->time_ns[i] - before;
}

static int find_span(void *ctx, const struct ls_sample_block *b)
{
        struct pass *s = ctx;

        for (uint32_t i = 0; i < b->n; i++) {
                if (!is_wanted(s, b, i))
                        continue;
                if (first_tick(s, b, i) < s->first_ns)
                        s->first_ns = first_tick(s, b, i);
                if (b->time_ns[i] > s->last_ns)
                        s->last_ns = b->time_ns[i];
                s->label_ticks[b->label[i]] += b->weight[i];
        }
        return 0;
}

/* The least of 1, 2, 5, 10, ... us that is not below ns. */
static uint64_t round_length(uint64_t ns)
{
        uint64_t unit = 1000;

        for (; unit < ns && unit < UINT64_MAX / 10; unit *= 10)
                for (unsigned i = 1; i <= 5; i += i == 1 ? 1 : 3)
                        if (unit * i >= ns)
                                return unit * i;
        return unit;
}

/* A tick stands for the time before it: a bucket has the times after its start up to its end, as
 * --time FROM,TO. */
static uint64_t bucket_after_start(const struct pass *s, uint64_t time_ns)
{
        return time_ns > s->start_ns ? (time_ns - s->start_ns - 1) / s->c->bucket_ns : 0;
}

static int make_buckets(struct pass *s, int one_bucket)
{
        struct ls_page_cells *c = s->c;
        uint64_t length, interval = s->r->profile->interval_ns, first;

        c->bucket_ns = round_length(interval);
        if (s->first_ns > s->last_ns)
                return 0;
        length = (s->last_ns - s->first_ns) / MOST_BUCKETS + 1;
        c->bucket_ns = one_bucket ? UINT64_MAX
                                  : round_length(length > interval ? length : interval);
        first = bucket_after_start(s, s->first_ns);
        c->n_buckets = (uint32_t)(bucket_after_start(s, s->last_ns) - first) + 1;
        c->first_ns = first * c->bucket_ns;
        c->samples = calloc(c->n_buckets, sizeof(*c->samples));
        c->squares = calloc(c->n_buckets, sizeof(*c->squares));
        return c->samples && c->squares ? 0 : -ENOMEM;
}

static void end_sample(struct pass *s)
{
        double w = (double)s->sample_weight;

        if (!s->sample_weight)
                return;
        s->c->samples[s->sample_bucket]++;
        s->c->squares[s->sample_bucket] += s->each_seen ? 0 : w * w; /* else spread() adds to it */
        s->sample_weight = 0;
}

static int add(struct pass *s, const struct ls_page_cell *cell)
{
        struct ls_page_cells *c = s->c;
        uint32_t hash = (cell->stack * 0x9e3779b1u ^ cell->context * 0x85ebca6bu ^
                         cell->bucket * 0xc2b2ae35u) >>
                        16;
        uint32_t *slot = &s->recent[hash & (RECENT - 1)];

        if (*slot && by_place(&c->cells[*slot - 1], cell) == 0) {
                c->cells[*slot - 1].ticks += cell->ticks;
                return 0;
        }
        if (c->n_cells == c->capacity && make_room(s))
                return -ENOMEM;
        c->cells[c->n_cells++] = *cell;
        *slot = c->n_cells <= UINT32_MAX ? (uint32_t)c->n_cells : 0;
        return 0;
}

static uint32_t bucket_of(const struct pass *s, uint64_t time_ns)
{
        const struct ls_page_cells *c = s->c;
        uint64_t bucket = bucket_after_start(s, time_ns), first = c->first_ns / c->bucket_ns;

        return bucket < first                  ? 0
               : bucket - first < c->n_buckets ? (uint32_t)(bucket - first)
                                               : c->n_buckets - 1;
}

/* Blocked time: each tick an interval before the next, the last at time_ns. What is before the
 * first bucket is in it. */
static int spread(struct pass *s, uint64_t time_ns, uint64_t ticks, uint32_t stack,
                  uint32_t context)
{
        struct ls_page_cells *c = s->c;
        uint64_t interval = s->r->profile->interval_ns ? s->r->profile->interval_ns : 1;

        while (ticks) {
                uint32_t bucket = bucket_of(s, time_ns);
                uint64_t start = s->start_ns + c->first_ns + bucket * c->bucket_ns, n = ticks;

                if (bucket && (time_ns - start - 1) / interval + 1 < ticks)
                        n = (time_ns - start - 1) / interval + 1;
                if (add(s, &(struct ls_page_cell){ bucket, stack, context, n }))
                        return -ENOMEM;
                c->squares[bucket] += (double)n;
                ticks -= n;
                time_ns -= ticks ? n * interval : 0;
        }
        return 0;
}

static int take_row(struct pass *s, const struct ls_sample_block *b, uint32_t i)
{
        uint32_t bucket = bucket_of(s, b->time_ns[i]), context;
        int error = find_context(s,
                                 &(struct ls_cell){ .zone = b->zone[i],
                                                    .thread = b->thread[i],
                                                    .vmstate = b->vmstate[i],
                                                    .label = b->label[i] },
                                 &context);

        if (error)
                return error;
        s->sample_bucket = bucket;
        s->sample_weight += b->weight[i];
        if (b->flags[i] & LASTS)
                return spread(s, b->time_ns[i], b->weight[i], b->stack[i], context);
        return b->weight[i] ? add(s, &(struct ls_page_cell){ bucket, b->stack[i], context,
                                                             b->weight[i] })
                            : 0;
}

static int take_block(void *ctx, const struct ls_sample_block *b)
{
        struct pass *s = ctx;

        for (uint32_t i = 0; i < b->n; i++) {
                if (!(b->flags[i] & LS_SAMPLE_CONT)) {
                        end_sample(s);
                        s->each_seen = (b->flags[i] & LS_SAMPLE_OFF_CPU) != 0;
                }
                if (is_wanted(s, b, i) && take_row(s, b, i))
                        return -ENOMEM;
        }
        return 0;
}

static int list_contexts(struct ls_page_cells *c)
{
        struct ls_page_context_entry *e, *next;

        c->contexts = calloc((size_t)c->n_contexts + 1, sizeof(*c->contexts));
        if (!c->contexts)
                return -ENOMEM;
        HASH_ITER(hh, c->hash, e, next)
                c->contexts[e->number] = e->key;
        return 0;
}

int ls_page_cells_init(struct ls_page_cells *c, const struct ls_report *r, int one_bucket)
{
        struct pass s = { .c = c, .r = r, .first_ns = UINT64_MAX };
        unsigned columns = LS_COL_TIME | r->filter->columns;
        uint64_t elapsed;
        int error;

        memset(c, 0, sizeof(*c));
        s.recent = calloc(RECENT, sizeof(*s.recent));
        s.label_ticks = calloc((size_t)r->profile->n_sample_labels + 1, sizeof(*s.label_ticks));
        error = s.recent && s.label_ticks ? 0 : -ENOMEM;
        if (!error)
                error = ls_grouping_new(ls_key_find("zone-path", 9), r->profile, r->labels,
                                        &c->zones);
        if (!error)
                error = ls_grouping_new(ls_key_find("thread", 6), r->profile, r->labels,
                                        &c->threads);
        if (!error)
                error = ls_filter_times(r->profile, 0, &s.start_ns, &elapsed);
        c->start_ns = s.start_ns;
        if (!error)
                error = ls_profile_samples(r->profile, columns, find_span, &s);
        if (!error)
                error = ls_page_labels_init(&c->labels, r, s.label_ticks);
        if (!error)
                error = make_buckets(&s, one_bucket);
        if (!error && c->n_buckets)
                error = ls_profile_samples(r->profile, columns, take_block, &s);
        if (!error)
                end_sample(&s);
        free(s.recent);
        free(s.label_ticks);
        c->n_cells = merge(c->cells, c->n_cells);
        return error ? error : list_contexts(c);
}

void ls_page_cells_done(struct ls_page_cells *c)
{
        struct ls_page_context_entry *e, *next;

        HASH_ITER(hh, c->hash, e, next) {
                HASH_DEL(c->hash, e);
                free(e);
        }
        ls_grouping_free(c->zones);
        ls_grouping_free(c->threads);
        ls_page_labels_done(&c->labels);
        free(c->cells);
        free(c->contexts);
        free(c->samples);
        free(c->squares);
}
