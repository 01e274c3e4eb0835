/* Rows of the flat and split views. Called by report/view/flat.c.
 *
 * A cell has an id on each level: its group, or, with --depth, a sequence of groups that is
 * numbered when first seen. On one level ids index an array; pairs are sorted. */
#include "report/model/rows.h"
#include "formats/export/calltree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->failed = 1)
#include <uthash.h>

struct ls_sequence {                    /* frames in the order shown, last one first */
        uint32_t before;                /* id of the frames before the last: a group, or a
                                         * sequence */
        uint32_t group;                 /* the last */
};

struct ls_sequence_entry {
        struct ls_sequence key;
        uint32_t id;
        int failed;
        UT_hash_handle hh;
};

struct pair {
        uint32_t id[2];
        uint64_t ticks;
};

struct making {
        struct ls_rows *rows;
        const struct ls_profile *p;
        const struct ls_aggregate *a;
        const struct ls_report_options *o;
        struct pair *pairs;
        size_t n_pairs;
        uint32_t *frames;               /* room for --depth groups */
        int two;                        /* there is a second level */
};

unsigned ls_rows_dims(const struct ls_report_options *o)
{
        return o->by[0]->dims | (o->by[1] ? o->by[1]->dims : 0);
}

/* The grouping by frames, which sequences are made of. */
static const struct ls_grouping *frames_of(const struct ls_rows *r)
{
        return r->grouping[0]->key->is_frame || !r->grouping[1] ? r->grouping[0] : r->grouping[1];
}

/* Number of "before, group". 0 with an error: group 0 is never a sequence. */
static int sequence(struct ls_rows *r, uint32_t before, uint32_t group, uint32_t *ret_id)
{
        struct ls_sequence key = { before, group };
        struct ls_sequence_entry *e;

        HASH_FIND(hh, r->hash, &key, sizeof(key), e);
        if (!e) {
                if (r->n_sequences == r->sequence_capacity) {
                        uint32_t n = r->sequence_capacity ? r->sequence_capacity * 2 : 1024;
                        struct ls_sequence *bigger =
                                n < INT32_MAX ? realloc(r->sequences, n * sizeof(*bigger)) : NULL;

                        if (!bigger)
                                return -ENOMEM;
                        r->sequences = bigger;
                        r->sequence_capacity = n;
                }
                e = calloc(1, sizeof(*e));
                if (!e)
                        return -ENOMEM;
                e->key = key;
                e->id = frames_of(r)->n_groups + r->n_sequences;
                HASH_ADD(hh, r->hash, key, sizeof(e->key), e);
                if (e->failed) {
                        free(e);
                        return -ENOMEM;
                }
                r->sequences[r->n_sequences++] = key;
        }
        *ret_id = e->id;
        return 0;
}

/* The innermost frames of a cell as groups, in the order shown. Returns their number. */
static int take_frames(const struct making *m, const struct ls_cell *c)
{
        const struct ls_grouping *g = frames_of(m->rows);
        int n = 0, reverse = m->o->inverse || (m->o->split && m->o->callees);
        uint32_t leaf = g->paying ? g->paying[c->stack] : c->stack;

        for (uint32_t at = leaf; at && n < m->o->depth; at = m->p->stacks[at].parent)
                m->frames[n++] = at == leaf ? ls_group_of_cell(g, c)
                                            : g->group_of[m->p->stacks[at].location];
        if (n == 0)
                m->frames[n++] = ls_group_of_cell(g, c);
        for (int i = 0; reverse && i < n / 2; i++) {
                uint32_t swap = m->frames[i];

                m->frames[i] = m->frames[n - 1 - i];
                m->frames[n - 1 - i] = swap;
        }
        return n;
}

static int join(struct ls_rows *r, const uint32_t *groups, int n, uint32_t *ret_id)
{
        uint32_t id = groups[0];
        int error = 0;

        for (int i = 1; !error && i < n; i++)
                error = sequence(r, id, groups[i], &id);
        *ret_id = id;
        return error;
}

#define NO_CHILD UINT32_MAX             /* second level of a cell that has none: split at a root */

static int ids_of_cell(const struct making *m, const struct ls_cell *c, uint32_t ret_id[2])
{
        struct ls_rows *r = m->rows;
        int n = take_frames(m, c), error;

        ret_id[1] = NO_CHILD;
        if (m->o->split) {
                ret_id[0] = m->frames[0];
                return n > 1 ? join(r, m->frames + 1, n - 1, &ret_id[1]) : 0;
        }
        for (int level = 0; level < 1 + m->two; level++) {
                const struct ls_grouping *g = r->grouping[level];

                if (g == frames_of(r) && m->o->depth > 1) {
                        error = join(r, m->frames, n, &ret_id[level]);
                        if (error)
                                return error;
                } else {
                        ret_id[level] = ls_group_of_cell(g, c);
                }
        }
        return 0;
}

static int by_ids(const void *a, const void *b)
{
        const struct pair *x = a, *y = b;

        for (int i = 0; i < 2; i++)
                if (x->id[i] != y->id[i])
                        return x->id[i] < y->id[i] ? -1 : 1;
        return 0;
}

/* One level of plain groups needs no sorting: ids index an array. */
static int collect_groups(struct making *m)
{
        const struct ls_grouping *g = m->rows->grouping[0];
        uint64_t *ticks = calloc((size_t)g->n_groups + 1, sizeof(*ticks));

        m->pairs = malloc(((size_t)g->n_groups + 1) * sizeof(*m->pairs));
        if (!m->pairs || !ticks) {
                free(ticks);
                return -ENOMEM;
        }
        for (size_t i = 0; i < m->a->n_cells; i++)
                ticks[ls_group_of_cell(g, &m->a->cells[i])] += m->a->cells[i].ticks;
        for (uint32_t i = 0; i < g->n_groups; i++)
                if (ticks[i])
                        m->pairs[m->n_pairs++] = (struct pair){ { i, NO_CHILD }, ticks[i] };
        free(ticks);
        return 0;
}

static int collect_pairs(struct making *m)
{
        size_t n = 0;
        int r = 0;

        m->pairs = malloc((m->a->n_cells + 1) * sizeof(*m->pairs));
        if (!m->pairs)
                return -ENOMEM;
        for (size_t i = 0; !r && i < m->a->n_cells; i++) {
                struct pair *pair = &m->pairs[i];

                r = ids_of_cell(m, &m->a->cells[i], pair->id);
                pair->ticks = m->a->cells[i].ticks;
        }
        if (r)
                return r;
        qsort(m->pairs, m->a->n_cells, sizeof(*m->pairs), by_ids);
        for (size_t i = 0; i < m->a->n_cells; i++) {
                if (n && by_ids(&m->pairs[n - 1], &m->pairs[i]) == 0)
                        m->pairs[n - 1].ticks += m->pairs[i].ticks;
                else
                        m->pairs[n++] = m->pairs[i];
        }
        m->n_pairs = n;
        return 0;
}

static int make_rows(struct making *m)
{
        struct ls_rows *r = m->rows;
        size_t n = 0;

        for (size_t i = 0; i < m->n_pairs; i++)
                n += i == 0 || m->pairs[i].id[0] != m->pairs[i - 1].id[0];
        r->rows = calloc(n + 1, sizeof(*r->rows));
        r->children = calloc(m->n_pairs + 1, sizeof(*r->children));
        if (!r->rows || !r->children)
                return -ENOMEM;
        for (size_t i = 0; i < m->n_pairs; i++) {
                struct ls_row *row;

                if (i == 0 || m->pairs[i].id[0] != m->pairs[i - 1].id[0])
                        r->rows[r->n_rows++] = (struct ls_row){ .id = m->pairs[i].id[0],
                                                                .first_child = r->n_children };
                row = &r->rows[r->n_rows - 1];
                row->self += m->pairs[i].ticks;
                row->total = row->self;
                if (m->pairs[i].id[1] == NO_CHILD)
                        continue;
                r->children[r->n_children++] = (struct ls_row){ .id = m->pairs[i].id[1],
                                                                .self = m->pairs[i].ticks,
                                                                .total = m->pairs[i].ticks };
                row->n_children++;
        }
        return 0;
}

/* Functions that called but never ran themselves have a total and no self: they are rows too. */
static int add_totals(struct making *m)
{
        struct ls_rows *r = m->rows;
        const struct ls_grouping *g = r->grouping[0];
        uint64_t *sums = ls_stack_totals(m->p, m->a->self);
        uint64_t *total = calloc((size_t)g->n_groups + 1, sizeof(*total));
        struct ls_row *rows = NULL;
        size_t n = r->n_rows;
        int error = sums && total ? ls_label_totals(m->p, sums, g->group_of, g->n_groups, total)
                                  : -ENOMEM;

        free(sums);
        if (error)
                goto out;
        for (size_t i = 0; i < r->n_rows; i++) {
                if (total[r->rows[i].id] > r->rows[i].total)
                        r->rows[i].total = total[r->rows[i].id];
                total[r->rows[i].id] = 0;
        }
        for (uint32_t i = 0; i < g->n_groups; i++)
                if (m->o->split || !ls_group_pays(g, i))
                        total[i] = 0;   /* a row stands for its second level, or is no line: those
                                         * that called it pay */
        for (uint32_t i = 0; i < g->n_groups; i++)
                n += total[i] != 0;
        rows = realloc(r->rows, (n + 1) * sizeof(*rows));
        if (!rows) {
                error = -ENOMEM;
                goto out;
        }
        r->rows = rows;
        for (uint32_t i = 0; i < g->n_groups; i++)
                if (total[i])
                        r->rows[r->n_rows++] = (struct ls_row){ .id = i, .total = total[i] };
        /* What is counted has no callers but where it is timed: its total is not known. */
        r->has_total = !m->a->could || ls_events_have(m->p, LS_EVENT_CALLTIME);
out:
        free(total);
        return error;
}

static int by_self(const void *a, const void *b)
{
        const struct ls_row *x = a, *y = b;

        if (x->self != y->self)
                return x->self > y->self ? -1 : 1;
        if (x->total != y->total)
                return x->total > y->total ? -1 : 1;
        return x->id < y->id ? -1 : x->id > y->id;
}

static int by_total(const void *a, const void *b)
{
        const struct ls_row *x = a, *y = b;

        if (x->total != y->total)
                return x->total > y->total ? -1 : 1;
        return by_self(a, b);
}

struct named_row {
        char *text;
        struct ls_row row;
};

static int by_name(const void *a, const void *b)
{
        const struct named_row *x = a, *y = b;
        int c = strcmp(x->text, y->text);

        return c ? c : by_self(&x->row, &y->row);
}

static int sort_by_name(struct ls_rows *r)
{
        struct named_row *named = calloc(r->n_rows + 1, sizeof(*named));
        int error = named ? 0 : -ENOMEM;

        for (size_t i = 0; !error && i < r->n_rows; i++) {
                named[i].row = r->rows[i];
                named[i].text = ls_rows_text(r, 0, r->rows[i].id);
                if (!named[i].text)
                        error = -ENOMEM;
        }
        if (!error) {
                qsort(named, r->n_rows, sizeof(*named), by_name);
                for (size_t i = 0; i < r->n_rows; i++)
                        r->rows[i] = named[i].row;
        }
        for (size_t i = 0; named && i < r->n_rows; i++)
                free(named[i].text);
        free(named);
        return error;
}

static int sort_rows(struct ls_rows *r, enum ls_sort sort)
{
        for (size_t i = 0; i < r->n_rows; i++)
                qsort(r->children + r->rows[i].first_child, r->rows[i].n_children,
                      sizeof(*r->children), by_self);
        if (sort == LS_SORT_NAME)
                return sort_by_name(r);
        qsort(r->rows, r->n_rows, sizeof(*r->rows), sort == LS_SORT_TOTAL ? by_total : by_self);
        return 0;
}

static const char *find_separator(const struct ls_report_options *o)
{
        if (o->split)
                return o->callees ? "->" : "<-";
        if (o->by[1] && o->by[0]->is_frame && !o->by[1]->is_frame)
                return "<-";            /* as -jp=fv and fz */
        return "--";
}

int ls_rows_new(struct ls_profile *p, const struct ls_labels *labels, const struct ls_aggregate *a,
                const struct ls_report_options *o, struct ls_rows **ret)
{
        struct making m = { .p = p, .a = a, .o = o, .two = o->by[1] != NULL };
        int r = -ENOMEM;

        m.rows = calloc(1, sizeof(*m.rows));
        m.frames = calloc((size_t)o->depth + 1, sizeof(*m.frames));
        if (!m.rows || !m.frames)
                goto out;
        m.rows->joint = o->inverse || (o->split && o->callees) ? " > " : " < ";
        m.rows->separator = find_separator(o);
        r = ls_grouping_new(o->by[0], p, labels, &m.rows->grouping[0]);
        if (!r && m.two)
                r = ls_grouping_new(o->by[1], p, labels, &m.rows->grouping[1]);
        if (!r)
                r = m.two || o->split || o->depth > 1 ? collect_pairs(&m) : collect_groups(&m);
        if (!r)
                r = make_rows(&m);
        if (!r && o->by[0]->is_frame && (o->depth == 1 || o->split))
                r = add_totals(&m);
        if (!r)
                r = sort_rows(m.rows, o->sort);
out:
        free(m.frames);
        free(m.pairs);
        if (r) {
                ls_rows_free(m.rows);
                return r;
        }
        *ret = m.rows;
        return 0;
}

void ls_rows_free(struct ls_rows *r)
{
        struct ls_sequence_entry *e, *next;

        if (!r)
                return;
        HASH_ITER(hh, r->hash, e, next) {
                HASH_DEL(r->hash, e);
                free(e);
        }
        ls_grouping_free(r->grouping[0]);
        ls_grouping_free(r->grouping[1]);
        free(r->sequences);
        free(r->rows);
        free(r->children);
        free(r);
}

/* The grouping that gives names to the ids of a level. */
static const struct ls_grouping *level_grouping(const struct ls_rows *r, int level)
{
        return level && r->grouping[1] ? r->grouping[1] : r->grouping[0];
}

uint32_t ls_rows_group(const struct ls_rows *r, int level, uint32_t id)
{
        uint32_t n_groups = level_grouping(r, level)->n_groups;

        while (id >= n_groups)
                id = r->sequences[id - n_groups].before;
        return id;
}

char *ls_rows_text(const struct ls_rows *r, int level, uint32_t id)
{
        const struct ls_grouping *g = level_grouping(r, level);
        char *text = NULL;
        size_t size = 0, n = 0;
        uint32_t *groups;
        FILE *f;

        for (uint32_t at = id; at >= g->n_groups; at = r->sequences[at - g->n_groups].before)
                n++;
        groups = malloc((n + 1) * sizeof(*groups));
        f = groups ? open_memstream(&text, &size) : NULL;
        if (f) {
                for (size_t i = n; i > 0; i--) {
                        groups[i] = r->sequences[id - g->n_groups].group;
                        id = r->sequences[id - g->n_groups].before;
                }
                groups[0] = id;
                for (size_t i = 0; i <= n; i++)
                        fprintf(f, "%s%s", i ? r->joint : "", ls_group_text(g, groups[i]));
                fclose(f);
        }
        free(groups);
        return text;
}
