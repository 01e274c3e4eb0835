/* View "flat": functions (or lines, states, ...) by their share, with a second level for --split
 * and --by A,B. */
#include "report/view/view.h"
#include "formats/escape.h"
#include "report/model/facts.h"
#include "formats/json.h"
#include "report/model/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct shown {                          /* a row with its texts */
        const struct ls_row *row;
        char *name, *place;
};

struct table {
        const struct ls_report *r;
        struct ls_rows *rows;
        struct shown *shown;
        size_t n_shown;
        size_t least;                   /* rows that are shown, whatever their share */
        size_t hidden;                  /* rows below --min */
        uint64_t hidden_ticks;
        size_t name_width, place_width;
        int has_place;
};

static uint64_t rank_of(const struct ls_report *r, const struct ls_row *row)
{
        return r->o->sort == LS_SORT_TOTAL ? row->total : row->self;
}

static int has_place_column(const struct ls_report *r)
{
        return r->o->by[0]->function && (r->o->depth == 1 || r->o->split);
}

#define LEAST_ROWS 20   /* of a profile without large rows, where nobody gave --min */

/* Rows that are shown though they are below --min: where it would hide more than half of the time,
 * and nobody asked for that. */
static size_t least_rows(const struct table *t)
{
        const struct ls_report *r = t->r;
        uint64_t ticks = r->aggregate->ticks, hidden = 0;

        if (!r->o->min_default || r->o->sort == LS_SORT_NAME)
                return 0;
        for (size_t i = 0; i < t->rows->n_rows; i++)
                if (ls_below_min(r, rank_of(r, &t->rows->rows[i]), ticks))
                        hidden += t->rows->rows[i].self;
        return hidden > ticks / 2 ? LEAST_ROWS : 0;
}

/* Picks the rows to show and gives them their texts. */
static int fill(struct table *t)
{
        const struct ls_report *r = t->r;

        t->least = least_rows(t);

        t->has_place = has_place_column(r);
        t->shown = calloc(t->rows->n_rows + 1, sizeof(*t->shown));
        if (!t->shown)
                return -ENOMEM;
        for (size_t i = 0; i < t->rows->n_rows; i++) {
                const struct ls_row *row = &t->rows->rows[i];
                struct shown *s = &t->shown[t->n_shown];
                size_t width;

                if ((t->n_shown >= t->least || !rank_of(r, row)) &&
                    ls_below_min(r, rank_of(r, row), r->aggregate->ticks)) {
                        if (row->self) {
                                t->hidden++;
                                t->hidden_ticks += row->self;
                        }
                        continue;
                }
                s->row = row;
                s->name = ls_rows_text(t->rows, 0, row->id);
                if (!s->name)
                        return -ENOMEM;
                t->n_shown++;
                if (t->has_place)
                        s->place = ls_place_text(r, r->o->by[0]->function(t->rows->grouping[0],
                                                                          row->id));
                width = ls_text_columns(s->name);
                t->name_width = width > t->name_width ? width : t->name_width;
                width = s->place ? ls_text_columns(s->place) : 0;
                t->place_width = width > t->place_width ? width : t->place_width;
        }
        return 0;
}

static void empty(struct table *t)
{
        for (size_t i = 0; i < t->n_shown; i++) {
                free(t->shown[i].name);
                free(t->shown[i].place);
        }
        free(t->shown);
        ls_rows_free(t->rows);
}

#define LEAST_NAME 12
#define LEAST_PLACE 12
#define UNLIMITED_NAME 44               /* longer names are not padded to, where nothing is cut */

/* Widths of the name and place columns. Without a terminal nothing is cut. */
static void fit(struct table *t)
{
        size_t room, left, title = strlen(t->r->o->by[0]->title);

        if (t->name_width < title)
                t->name_width = title;
        if (!t->r->width) {
                if (t->name_width > UNLIMITED_NAME)
                        t->name_width = UNLIMITED_NAME;
                return;
        }
        left = ls_margin_width(t->r) + 3 + (t->rows->has_total ? 2 : 1) * ls_number_width(t->r) -
               !t->rows->has_total;
        room = t->r->width > left + LEAST_NAME ? t->r->width - left : LEAST_NAME;
        if (t->name_width + 2 + t->place_width <= room)
                return;
        if (t->place_width > room / 3)
                t->place_width = room / 3;
        if (t->place_width < LEAST_PLACE)
                t->has_place = 0;
        else
                room -= t->place_width + 2;
        if (t->name_width > room)
                t->name_width = room;
}

static void put_number(const struct ls_report *r, uint64_t part, uint64_t whole)
{
        fputs(ls_heat(r, ls_share(part, whole)), r->out);
        ls_put_number(r, part, whole);
        fputs(ls_plain(r), r->out);
}

static void put_name(const struct table *t, const char *text, size_t width, int last)
{
        if (t->r->width)
                ls_put_fit(t->r->out, text, width, !last);
        else
                fprintf(t->r->out, "%s%*s", text,
                        last || ls_text_columns(text) >= width
                                ? 0
                                : (int)(width - ls_text_columns(text)),
                        "");
}

static void put_title(const struct table *t)
{
        const struct ls_report *r = t->r;
        int width = (int)ls_number_width(r);

        fprintf(r->out, "%s#%*s %s", ls_dim(r), width - 1,
                ls_number_title(r, t->rows->has_total && t->rows->separator[1] != '>' ? "Self"
                                                                                      : "Share"),
                ls_margin_title(r));
        if (t->rows->has_total)
                fprintf(r->out, " %*s", width, ls_number_title(r, "Total"));
        fputs("  ", r->out);
        put_name(t, r->o->by[0]->title, t->name_width, !t->has_place);
        fprintf(r->out, "%s%s\n", t->has_place ? "  Source" : "", ls_plain(r));
}

static int put_children(const struct table *t, const struct ls_row *row)
{
        const struct ls_report *r = t->r;
        size_t left = 9 + ls_margin_width(r) + ls_number_width(r),
               room = r->width > left + 7 ? r->width - left : 0;
        double n = r->aggregate->effective * ls_share(row->self, r->aggregate->ticks);

        for (size_t i = 0; i < row->n_children; i++) {
                const struct ls_row *child = &t->rows->children[row->first_child + i];
                char *name;

                if (ls_below_min(r, child->self, row->self))
                        continue;
                name = ls_rows_text(t->rows, 1, child->id);
                if (!name)
                        return -ENOMEM;
                fprintf(r->out, "    %s ", t->rows->separator);
                put_number(r, child->self, row->self);
                ls_put_margin(r, ls_share(child->self, row->self), n, row->self);
                fputs("  ", r->out);
                ls_put_fit(r->out, name, room, 0);
                fputc('\n', r->out);
                free(name);
        }
        return 0;
}

static int put_row(const struct table *t, const struct shown *s)
{
        const struct ls_report *r = t->r;
        double share = ls_share(s->row->self, r->aggregate->ticks);

        put_number(r, s->row->self, r->aggregate->ticks);
        ls_put_margin(r, share, r->aggregate->effective, r->aggregate->ticks);
        if (t->rows->has_total) {
                fputc(' ', r->out);
                put_number(r, s->row->total, r->aggregate->ticks);
        }
        fputs("  ", r->out);
        put_name(t, s->name, t->name_width, !s->place || !t->has_place);
        if (s->place && t->has_place) {
                fprintf(r->out, "  %s", ls_dim(r));
                ls_put_fit(r->out, s->place, r->width ? t->place_width : 0, 0);
                fputs(ls_plain(r), r->out);
        }
        fputc('\n', r->out);
        return put_children(t, s->row);
}

static void put_hidden(const struct table *t)
{
        const struct ls_report *r = t->r;

        fprintf(r->out, "%s# %zu more row%s", ls_dim(r), t->hidden, t->hidden == 1 ? "" : "s");
        if (!t->least)
                fprintf(r->out, " below %g%%", r->o->min);
        fputs(" with ", r->out);
        if (r->o->raw)
                fprintf(r->out, "%" PRIu64 "%s", t->hidden_ticks,
                        ls_events_time(&r->filter->choice) ? " ticks" : "");
        else
                fprintf(r->out, "%.2f%%", 100 * ls_share(t->hidden_ticks, r->aggregate->ticks));
        fprintf(r->out, " in all (--min 0 shows all)%s\n", ls_plain(r));
}

static int flat_text(const struct ls_report *r)
{
        struct table t = { .r = r };
        int error = ls_rows_new(r->profile, r->labels, r->aggregate, r->o, &t.rows);

        if (error)
                return error;
        error = fill(&t);
        if (!error) {
                fit(&t);
                put_title(&t);
        }
        for (size_t i = 0; !error && i < t.n_shown; i++)
                error = put_row(&t, &t.shown[i]);
        if (!error && t.hidden)
                put_hidden(&t);
        empty(&t);
        return error;
}

struct ls_str ls_group_source(const struct ls_report *r, const struct ls_grouping *grouping,
                              uint32_t group)
{
        const struct ls_key *key = grouping->key;
        uint32_t function = key->function ? key->function(grouping, group) : 0;
        uint32_t source = key->source ? key->source(grouping, group) : 0;
        struct ls_str name = r->profile->sources[source].name;

        if (!source && (!key->function || r->profile->functions[function].kind == LS_FUNC_PSEUDO))
                return (struct ls_str){ "", 0 };
        if (!source)
                return (struct ls_str){ "[C]", 3 };
        if (name.len && (name.s[0] == '@' || name.s[0] == '='))
                return (struct ls_str){ name.s + 1, name.len - 1 };
        if (!ls_source_path(&r->profile->sources[source]).len)
                return (struct ls_str){ r->labels->source[source],
                                        (uint32_t)strlen(r->labels->source[source]) };
        return name;
}

/* What a group is, in fields of its own, so that nobody needs to parse names. */
void ls_js_group(const struct ls_report *r, struct ls_js *g, const struct ls_grouping *grouping,
                 uint32_t group)
{
        const struct ls_key *key = grouping->key;
        const struct ls_profile *p = r->profile;
        uint32_t source = key->source ? key->source(grouping, group) : 0;

        if (key->line)
                ls_js_key_u64(g, key->field, key->line(grouping, group));
        else if (key->number)
                ls_js_key_u64(g, key->field, key->number(grouping, group));
        else
                ls_js_key_string(g, key->field, ls_group_text(grouping, group));
        if (key->function || source)
                ls_js_key_text(g, "source", ls_group_source(r, grouping, group));
        if (source)
                ls_js_key_text(g, "path", p->sources[source].path);
        if (key->function)
                ls_js_key_u64(g, "line_defined",
                              p->functions[key->function(grouping, group)].first_line);
}

static void json_shares(const struct ls_report *r, struct ls_js *g, uint64_t self, uint64_t whole,
                        double n)
{
        double share = ls_share(self, whole);

        (void)r;
        ls_js_key_share(g, "self", share);
        ls_js_key_u64(g, "self_ticks", self);
        ls_js_key_share(g, "margin", ls_margin(share, n));
}

/* Sequences of --depth are listed frame by frame as well. */
static int json_name(const struct ls_report *r, struct ls_js *g, const struct ls_rows *rows,
                     int level, uint32_t id)
{
        const struct ls_grouping *grouping = level && rows->grouping[1] ? rows->grouping[1]
                                                                        : rows->grouping[0];
        char *name = ls_rows_text(rows, level, id);

        if (!name)
                return -ENOMEM;
        ls_js_key_string(g, "name", name);
        free(name);
        ls_js_group(r, g, grouping, ls_rows_group(rows, level, id));
        return 0;
}

static int json_children(const struct ls_report *r, struct ls_js *g, const struct ls_rows *rows,
                         const struct ls_row *row)
{
        double n = r->aggregate->effective * ls_share(row->self, r->aggregate->ticks);
        int error = 0;

        if (!row->n_children)
                return 0;
        ls_js_key_open(g, "children", '[');
        for (size_t i = 0; !error && i < row->n_children; i++) {
                const struct ls_row *child = &rows->children[row->first_child + i];

                if (ls_below_min(r, child->self, row->self))
                        continue;
                ls_js_open(g, '{');
                error = json_name(r, g, rows, 1, child->id);
                json_shares(r, g, child->self, row->self, n);
                ls_js_close(g, '}');
        }
        ls_js_close(g, ']');
        return error;
}

static int flat_json(const struct ls_report *r, struct ls_js *g)
{
        struct ls_rows *rows = NULL;
        int error = ls_rows_new(r->profile, r->labels, r->aggregate, r->o, &rows);

        if (error)
                return error;
        ls_js_key_string(g, "relation", r->o->split ? (r->o->callees ? "callees" : "callers") : "");
        ls_js_key_open(g, "rows", '[');
        for (size_t i = 0; !error && i < rows->n_rows; i++) {
                const struct ls_row *row = &rows->rows[i];

                if (ls_below_min(r, rank_of(r, row), r->aggregate->ticks))
                        continue;
                ls_js_open(g, '{');
                error = json_name(r, g, rows, 0, row->id);
                json_shares(r, g, row->self, r->aggregate->ticks, r->aggregate->effective);
                if (rows->has_total) {
                        ls_js_key_share(g, "total", ls_share(row->total, r->aggregate->ticks));
                        ls_js_key_u64(g, "total_ticks", row->total);
                }
                if (!error)
                        error = json_children(r, g, rows, row);
                ls_js_close(g, '}');
        }
        ls_js_close(g, ']');
        ls_rows_free(rows);
        return error;
}

static int flat_chosen(const struct ls_report_options *o)
{
        return !o->tree && !o->annotate && !o->exporter && !o->html;
}

const struct ls_view ls_view_flat = {
        .name = "flat",
        .chosen = flat_chosen,
        .dims = ls_rows_dims,
        .text = flat_text,
        .json = flat_json,
};
