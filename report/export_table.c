/* The flat and split tables as lines of named columns: what report --json has in "rows", told for
 * the exporters that write tables (formats/export/csv.c). Called through report/export.c.
 *
 * A second level has lines of its own, below that of their parent, whose name they repeat. */
#include "report/export_table.h"

#include "formats/escape.h"
#include "report/export_job.h"
#include "report/model/rows.h"
#include "report/view/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
        LEVEL,
        PARENT,
        NAME,
        FIELD_A,
        FIELD_B,
        SOURCE,
        PATH,
        LINE_DEFINED,
        SELF,
        SELF_TICKS,
        MARGIN,
        TOTAL,
        TOTAL_TICKS,
        N_COLUMNS
};

struct table {
        const struct ls_report *r;
        struct ls_rows *rows;
        const char *names[N_COLUMNS];   /* NULL = the table does not have this column */
        char *values[N_COLUMNS];
        int failed;
        ls_export_line_fn fn;
        void *ctx;
};

static const struct ls_grouping *grouping_of(const struct table *t, int level)
{
        return level && t->rows->grouping[1] ? t->rows->grouping[1] : t->rows->grouping[0];
}

static void name_columns(struct table *t)
{
        static const char *const names[N_COLUMNS] = {
                [LEVEL] = "level",
                [PARENT] = "parent",
                [NAME] = "name",
                [SOURCE] = "source",
                [PATH] = "path",
                [LINE_DEFINED] = "line_defined",
                [SELF] = "self",
                [SELF_TICKS] = "self_ticks",
                [MARGIN] = "margin",
                [TOTAL] = "total",
                [TOTAL_TICKS] = "total_ticks",
        };
        const struct ls_key *a = grouping_of(t, 0)->key, *b = grouping_of(t, 1)->key;

        memcpy(t->names, names, sizeof(names));
        t->names[FIELD_A] = a->field;
        t->names[FIELD_B] = strcmp(a->field, b->field) ? b->field : NULL;
        if (!t->r->o->by[1] && !t->r->o->split)
                t->names[LEVEL] = t->names[PARENT] = NULL;
        if (!a->source && !b->source)
                t->names[SOURCE] = t->names[PATH] = NULL;
        if (!a->function && !b->function)
                t->names[LINE_DEFINED] = NULL;
        if (!t->rows->has_total)
                t->names[TOTAL] = t->names[TOTAL_TICKS] = NULL;
}

static void set(struct table *t, unsigned column, char *text)
{
        free(t->values[column]);
        t->values[column] = text;
        t->failed |= !text;
}

static void set_str(struct table *t, unsigned column, struct ls_str text)
{
        set(t, column, ls_visible(text.s, text.len));
}

static void set_u64(struct table *t, unsigned column, uint64_t value)
{
        char *text;

        set(t, column, asprintf(&text, "%" PRIu64, value) < 0 ? NULL : text);
}

static void set_share(struct table *t, unsigned column, double value)
{
        char *text;

        set(t, column, asprintf(&text, "%.6f", value) < 0 ? NULL : text);
}

/* The columns that ls_js_group has as members. */
static void set_group(struct table *t, int level, uint32_t id)
{
        const struct ls_grouping *g = grouping_of(t, level);
        const struct ls_key *key = g->key;
        uint32_t group = ls_rows_group(t->rows, level, id),
                 source = key->source ? key->source(g, group) : 0;
        unsigned field = level && t->names[FIELD_B] && t->rows->grouping[1] ? FIELD_B : FIELD_A;

        set(t, NAME, ls_rows_text(t->rows, level, id));
        if (key->line || key->number)
                set_u64(t, field, key->line ? key->line(g, group) : key->number(g, group));
        else
                set(t, field, strdup(ls_group_text(g, group)));
        if (key->source)
                set_str(t, SOURCE, ls_group_source(t->r, g, group));
        if (source)
                set_str(t, PATH, t->r->profile->sources[source].path);
        if (key->function)
                set_u64(t, LINE_DEFINED,
                        t->r->profile->functions[key->function(g, group)].first_line);
}

static void set_shares(struct table *t, uint64_t self, uint64_t whole, double n)
{
        double share = ls_share(self, whole);

        set_share(t, SELF, share);
        set_u64(t, SELF_TICKS, self);
        set_share(t, MARGIN, ls_margin(share, n));
}

/* Hands over the columns that the table has, and empties them; as the head of the table without
 * values. */
static int put_line(struct table *t, int head)
{
        const char *names[N_COLUMNS], *values[N_COLUMNS];
        unsigned n = 0;
        int r;

        for (unsigned i = 0; i < N_COLUMNS; i++) {
                if (!t->names[i])
                        continue;
                names[n] = t->names[i];
                values[n++] = t->values[i];
        }
        r = t->failed ? -ENOMEM : t->fn(t->ctx, names, head ? NULL : values, n);
        for (unsigned i = 0; i < N_COLUMNS; i++) {
                free(t->values[i]);
                t->values[i] = NULL;
        }
        return r;
}

static int put_row(struct table *t, const struct ls_row *row)
{
        const struct ls_aggregate *a = t->r->aggregate;
        double n = a->effective * ls_share(row->self, a->ticks);
        int r;

        set_group(t, 0, row->id);
        set_u64(t, LEVEL, 0);
        set_shares(t, row->self, a->ticks, a->effective);
        set_share(t, TOTAL, ls_share(row->total, a->ticks));
        set_u64(t, TOTAL_TICKS, row->total);
        r = put_line(t, 0);
        for (size_t i = 0; !r && i < row->n_children; i++) {
                const struct ls_row *child = &t->rows->children[row->first_child + i];

                if (ls_below_min(t->r, child->self, row->self))
                        continue;
                set(t, PARENT, ls_rows_text(t->rows, 0, row->id));
                set_group(t, 1, child->id);
                set_u64(t, LEVEL, 1);
                set_shares(t, child->self, row->self, n);
                r = put_line(t, 0);
        }
        return r;
}

int ls_export_table(const struct ls_export *in, ls_export_line_fn fn, void *ctx)
{
        const struct ls_export_job *job = in->caller_ctx;
        const struct ls_report *r = job->r;
        struct table t = { .r = r, .fn = fn, .ctx = ctx };
        int error = ls_rows_new(r->profile, r->labels, r->aggregate, r->o, &t.rows);

        if (error)
                return error;
        name_columns(&t);
        error = put_line(&t, 1);
        for (size_t i = 0; !error && i < t.rows->n_rows; i++) {
                const struct ls_row *row = &t.rows->rows[i];

                if (!ls_below_min(r, r->o->sort == LS_SORT_TOTAL ? row->total : row->self,
                                  r->aggregate->ticks))
                        error = put_row(&t, row);
        }
        ls_rows_free(t.rows);
        return error;
}
