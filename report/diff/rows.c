/* Rows of a diff: ticks of each group by recording, what they are on each side, and whether the
 * sides differ by more than chance. Called by diff.c; tree.c has the rows of --tree. */
#include "report/diff/diff.h"
#include "report/diff/stats.h"
#include "report/view/view.h"
#include "formats/export/calltree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_SAMPLES                                                                              \
        5 /* of both sides together: fewer are not tested, nor do they weaken other tests */

/* Value of a row in a run, as --normalize has it. */
static double value_of(const struct ls_diff *d, const struct ls_diff_run *run, uint64_t ticks)
{
        switch (d->o->norm) {
        case LS_NORM_SHARE:
                return ls_share(ticks, run->aggregate->ticks);
        case LS_NORM_TIME:
                return (double)ticks * (double)run->profile->interval_ns / 1e9;
        default:
                return (double)ticks;
        }
}

/* Ticks in a unit of the value. */
static double per_unit(const struct ls_diff *d, const struct ls_diff_run *run)
{
        return d->o->norm == LS_NORM_TIME ? 1e9 / (double)run->profile->interval_ns : 1;
}

/* Variance of a value that comes from sampling alone. */
static double sampling_variance(const struct ls_diff *d, const struct ls_diff_run *run,
                                double value)
{
        if (d->o->norm == LS_NORM_SHARE)
                return value * (1 - value) / run->aggregate->effective;
        return value * run->per_sample / per_unit(d, run);
}

struct side {                           /* a row on one side */
        double *values;                 /* of each run */
        double mean, share, variance;   /* variance: of one value, from sampling alone */
        double samples, all_samples;    /* of equal weight */
        double exposure;                /* samples that a unit of the value would give */
};

static void read_side(const struct ls_diff *d, const uint64_t *ticks, int which, double *values,
                      struct side *s)
{
        unsigned n = 0;

        *s = (struct side){ .values = values };
        for (unsigned k = 0; k < d->n_runs; k++) {
                const struct ls_diff_run *run = &d->runs[k];

                if (run->side != which)
                        continue;
                values[n] = value_of(d, run, ticks[k]);
                s->mean += values[n];
                s->share += ls_share(ticks[k], run->aggregate->ticks);
                s->variance += sampling_variance(d, run, values[n]);
                s->samples += (double)ticks[k] / run->per_sample;
                s->all_samples += run->aggregate->effective;
                s->exposure += per_unit(d, run) / run->per_sample;
                n++;
        }
        s->mean /= n;
        s->share /= n;
        s->variance /= n;
}

static double test(const struct ls_diff *d, const struct side *a, const struct side *b)
{
        if (a->samples + b->samples < LEAST_SAMPLES)
                return 1;
        switch (d->test) {
        case LS_TEST_WELCH:
                return ls_test_welch(a->values, d->n_side[0], a->variance, b->values, d->n_side[1],
                                     b->variance);
        case LS_TEST_RANKS:
                return ls_test_mann_whitney(a->values, d->n_side[0], b->values, d->n_side[1]);
        default:
                if (d->o->norm == LS_NORM_SHARE)
                        return ls_test_shares(a->samples, a->all_samples, b->samples,
                                              b->all_samples);
                return ls_test_rates(a->samples, a->exposure, b->samples, b->exposure);
        }
}

static void weigh_row(const struct ls_diff *d, const uint64_t *ticks, double *room,
                      struct ls_diff_row *row, int *ret_tested)
{
        struct side a, b;

        read_side(d, ticks, LS_BEFORE, room, &a);
        read_side(d, ticks, LS_AFTER, room + d->n_side[0], &b);
        row->before = a.mean;
        row->after = b.mean;
        row->before_share = a.share;
        row->after_share = b.share;
        row->p = row->q = test(d, &a, &b);
        *ret_tested = a.samples + b.samples >= LEAST_SAMPLES;
}

static int adjust(struct ls_diff *d, const uint8_t *tested)
{
        double *p = calloc((size_t)d->n_rows + 1, sizeof(*p)),
               *q = calloc((size_t)d->n_rows + 1, sizeof(*q));
        size_t n = 0;
        int r = -ENOMEM;

        for (uint32_t i = 0; p && q && i < d->n_rows; i++)
                if (tested[i])
                        p[n++] = d->rows[i].p;
        if (p && q)
                r = ls_adjust(p, n, q);
        n = 0;
        for (uint32_t i = 0; !r && i < d->n_rows; i++) {
                struct ls_diff_row *row = &d->rows[i];
                double whole = d->o->norm == LS_NORM_SHARE ? 1 : d->whole.before;

                row->q = tested[i] ? q[n++] : 1;
                row->significant = row->q <= d->o->alpha;
                row->growth = whole > 0 ? 100 * (row->after - row->before) / whole : 0;
        }
        free(p);
        free(q);
        return r;
}

int ls_diff_weigh(struct ls_diff *d)
{
        double *room = calloc((size_t)d->n_runs + 1, sizeof(*room));
        uint64_t *whole = calloc((size_t)d->n_runs + 1, sizeof(*whole));
        uint8_t *tested = calloc((size_t)d->n_rows + 1, 1);
        int r = -ENOMEM, any;

        if (room && whole && tested) {
                for (unsigned k = 0; k < d->n_runs; k++)
                        whole[k] = d->runs[k].aggregate->ticks;
                weigh_row(d, whole, room, &d->whole, &any);
                if (d->o->norm == LS_NORM_SHARE)
                        d->whole.p = d->whole.q = 1;
                d->whole.significant = d->whole.q <= d->o->alpha;
                if (d->whole.before > 0)
                        d->whole.growth = 100 * (d->whole.after - d->whole.before) /
                                          d->whole.before;
                for (uint32_t i = 0; i < d->n_rows; i++) {
                        weigh_row(d, d->ticks + (size_t)i * d->n_runs, room, &d->rows[i], &any);
                        tested[i] = (uint8_t)any;
                }
                r = adjust(d, tested);
        }
        free(room);
        free(whole);
        free(tested);
        return r;
}

double ls_diff_size(const struct ls_diff_row *row)
{
        return fabs(row->after - row->before);
}

int ls_diff_shown(const struct ls_diff *d, const struct ls_diff_row *row)
{
        return row->significant || 100 * fmax(row->before_share, row->after_share) >= d->o->o.min;
}

/* Ticks in items and in what they call: --total. */
static int add_totals(struct ls_diff *d, unsigned k)
{
        const struct ls_diff_run *run = &d->runs[k];
        uint32_t n = run->profile->n_locations;
        uint64_t *sums = ls_stack_totals(run->profile, run->aggregate->self);
        uint64_t *totals = calloc((size_t)d->n_items + 1, sizeof(*totals));
        uint32_t *labels = calloc((size_t)n + 1, sizeof(*labels));
        int r = sums && totals && labels ? 0 : -ENOMEM;

        for (uint32_t i = 0; !r && i < n; i++)
                labels[i] = run->item_of[run->grouping->group_of[i]];
        if (!r)
                r = ls_label_totals(run->profile, sums, labels, d->n_items, totals);
        for (uint32_t i = 0; !r && i < d->n_items; i++)
                d->ticks[(size_t)i * d->n_runs + k] = totals[i];
        free(sums);
        free(totals);
        free(labels);
        return r;
}

static void add_selves(struct ls_diff *d, unsigned k)
{
        const struct ls_diff_run *run = &d->runs[k];

        for (size_t i = 0; i < run->aggregate->n_cells; i++) {
                const struct ls_cell *c = &run->aggregate->cells[i];

                d->ticks[(size_t)run->item_of[ls_group_of_cell(run->grouping, c)] * d->n_runs +
                         k] += c->ticks;
        }
}

/* Items that no recording has a tick of are no rows. */
static void drop_empty(struct ls_diff *d)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < d->n_items; i++) {
                const uint64_t *ticks = d->ticks + (size_t)i * d->n_runs;
                int any = 0;

                for (unsigned k = 0; k < d->n_runs; k++)
                        any |= ticks[k] != 0;
                if (!any)
                        continue;
                memmove(d->ticks + (size_t)n * d->n_runs, ticks, d->n_runs * sizeof(*ticks));
                d->rows[n].item = i;
                d->ticks_of[n] = n;
                n++;
        }
        d->n_rows = n;
}

struct sorted { struct ls_diff_row row; uint32_t ticks_of; };

static int by_size(const void *x, const void *y)
{
        const struct sorted *a = x, *b = y;
        double p = ls_diff_size(&a->row), q = ls_diff_size(&b->row);
        double whole_p = a->row.before + a->row.after, whole_q = b->row.before + b->row.after;

        if (p != q)
                return p > q ? -1 : 1;
        if (whole_p != whole_q)
                return whole_p > whole_q ? -1 : 1;
        return a->row.item < b->row.item ? -1 : a->row.item > b->row.item;
}

static int sort_rows(struct ls_diff *d)
{
        struct sorted *s = calloc((size_t)d->n_rows + 1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        for (uint32_t i = 0; i < d->n_rows; i++)
                s[i] = (struct sorted){ d->rows[i], d->ticks_of[i] };
        qsort(s, d->n_rows, sizeof(*s), by_size);
        for (uint32_t i = 0; i < d->n_rows; i++) {
                d->rows[i] = s[i].row;
                d->ticks_of[i] = s[i].ticks_of;
        }
        free(s);
        return 0;
}

int ls_diff_rows(struct ls_diff *d)
{
        int r = 0;

        d->ticks = calloc((size_t)d->n_items * d->n_runs + 1, sizeof(*d->ticks));
        d->ticks_of = calloc((size_t)d->n_items + 1, sizeof(*d->ticks_of));
        d->rows = calloc((size_t)d->n_items + 1, sizeof(*d->rows));
        if (!d->ticks || !d->rows || !d->ticks_of)
                return -ENOMEM;
        for (unsigned k = 0; !r && k < d->n_runs; k++) {
                if (d->o->total)
                        r = add_totals(d, k);
                else
                        add_selves(d, k);
        }
        if (r)
                return r;
        drop_empty(d);
        r = ls_diff_weigh(d);
        return r ? r : sort_rows(d);
}
