/* The flat table of the terminal browser: rows of report/model/rows.c, each of which opens to its
 * callers and callees, and these to theirs; rows that are no functions open to their second level.
 * Called through the table ls_tui_flat. */
#include "report/model/edges.h"
#include "report/model/rows.h"
#include "report/tui/tui.h"
#include "formats/escape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum kind { ROW, CALLER, CALLEE, PART };

struct node {
        enum kind kind;
        uint32_t id;                    /* of a row (ls_rows_text), of a group, of a row's child */
        uint64_t self, total;           /* ticks */
        uint64_t identity;
        struct node *parent;
        struct node *kids;              /* made when first opened */
        size_t n_kids;
        unsigned level;
        int filled;
};

struct flat {
        struct ls_rows *rows;
        struct ls_calls calls;
        int calls_ready;
        struct node *nodes;             /* [rows->n_rows] */
        struct node **shown;            /* the rows of the view */
        size_t capacity;
        struct ls_tui_set opened;
        size_t name_width, place_width; /* of the first rows */
        uint64_t most;                  /* ticks of the longest bar */
};

#define MEASURED 1000                   /* rows whose texts make the columns */

static const struct ls_grouping *grouping_of(const struct flat *f, const struct node *n)
{
        return n->kind == PART && f->rows->grouping[1] ? f->rows->grouping[1]
                                                       : f->rows->grouping[0];
}

static char *name_of(const struct flat *f, const struct node *n)
{
        if (n->kind == ROW || n->kind == PART)
                return ls_rows_text(f->rows, n->kind == PART, n->id);
        return strdup(ls_group_text(f->rows->grouping[0], n->id));
}

static uint32_t group_of(const struct flat *f, const struct node *n)
{
        return n->kind == ROW || n->kind == PART ? ls_rows_group(f->rows, n->kind == PART, n->id)
                                                 : n->id;
}

static uint32_t function_of(const struct flat *f, const struct node *n)
{
        const struct ls_grouping *g = grouping_of(f, n);

        return g->key->function ? g->key->function(g, group_of(f, n)) : 0;
}

static void set_node(const struct flat *f, struct node *n, struct node *parent, enum kind kind,
                     uint32_t id)
{
        char *name;

        n->kind = kind;
        n->id = id;
        n->parent = parent;
        n->level = parent ? parent->level + 1 : 0;
        name = name_of(f, n);
        n->identity = ls_tui_hash((parent ? parent->identity : 0) + kind, name ? name : "");
        free(name);
}

/* Rows that are no functions open to the functions in them, unless --by names another second
 * level. */
static int has_parts(const struct flat *f)
{
        return f->rows->grouping[1] != NULL;
}

static int fill_parts(struct flat *f, struct node *n)
{
        const struct ls_row *row = &f->rows->rows[n - f->nodes];

        n->kids = calloc(row->n_children + 1, sizeof(*n->kids));
        if (!n->kids)
                return -ENOMEM;
        for (size_t i = 0; i < row->n_children; i++) {
                const struct ls_row *child = &f->rows->children[row->first_child + i];

                set_node(f, &n->kids[i], n, PART, child->id);
                n->kids[i].self = n->kids[i].total = child->self;
        }
        n->n_kids = row->n_children;
        return 0;
}

/* The groups from the row down to n. To be freed. */
static uint32_t *chain_to(const struct flat *f, const struct node *n, size_t *ret_n)
{
        uint32_t *chain = malloc(((size_t)n->level + 1) * sizeof(*chain));

        *ret_n = n->level + 1;
        for (; chain && n; n = n->parent)
                chain[n->level] = group_of(f, n);
        return chain;
}

static int fill_calls(struct ls_tui *t, struct flat *f, struct node *n)
{
        struct ls_edge *edges[2] = { NULL, NULL };
        size_t n_edges[2] = { 0, 0 }, n_chain;
        uint32_t *chain = chain_to(f, n, &n_chain);
        int r = chain ? 0 : -ENOMEM;

        if (!r && !f->calls_ready)
                r = ls_calls_init(&f->calls, t->profile, f->rows->grouping[0], t->aggregate);
        f->calls_ready = !r;
        for (int side = 0; !r && side < 2; side++)
                if (n->kind == ROW || n->kind == (side ? CALLEE : CALLER))
                        r = ls_calls_edges(&f->calls, side, chain, n_chain, &edges[side],
                                           &n_edges[side]);
        if (!r) {
                n->kids = calloc(n_edges[0] + n_edges[1] + 1, sizeof(*n->kids));
                r = n->kids ? 0 : -ENOMEM;
        }
        for (int side = 0; !r && side < 2; side++) {
                for (size_t i = 0; i < n_edges[side]; i++) {
                        struct node *kid = &n->kids[n->n_kids++];

                        set_node(f, kid, n, side ? CALLEE : CALLER, edges[side][i].group);
                        kid->total = edges[side][i].ticks;
                }
        }
        free(edges[0]);
        free(edges[1]);
        free(chain);
        return r;
}

static int can_open(const struct flat *f, const struct node *n)
{
        if (has_parts(f))
                return n->kind == ROW && f->rows->rows[n - f->nodes].n_children;
        return !n->filled || n->n_kids;
}

static int fill(struct ls_tui *t, struct flat *f, struct node *n)
{
        int r;

        if (n->filled)
                return 0;
        r = has_parts(f) ? (n->kind == ROW ? fill_parts(f, n) : 0) : fill_calls(t, f, n);
        n->filled = !r;
        return r;
}

static int show(struct ls_tui *t, struct ls_tui_view *v, struct node *nodes, size_t n)
{
        struct flat *f = v->data;
        int r = 0;

        for (size_t i = 0; !r && i < n; i++) {
                if (v->n_rows == f->capacity) {
                        size_t capacity = f->capacity ? f->capacity * 2 : 1024;
                        struct node **bigger = realloc(f->shown, capacity * sizeof(*bigger));

                        if (!bigger)
                                return -ENOMEM;
                        f->shown = bigger;
                        f->capacity = capacity;
                }
                f->shown[v->n_rows++] = &nodes[i];
                if (!ls_tui_set_has(&f->opened, nodes[i].identity))
                        continue;
                r = fill(t, f, &nodes[i]);
                if (!r)
                        r = show(t, v, nodes[i].kids, nodes[i].n_kids);
        }
        return r;
}

static int show_all(struct ls_tui *t, struct ls_tui_view *v)
{
        struct flat *f = v->data;

        v->n_rows = 0;
        return show(t, v, f->nodes, f->rows->n_rows);
}

static void measure(struct ls_tui *t, struct flat *f)
{
        const struct ls_grouping *g = f->rows->grouping[0];

        f->name_width = strlen(g->key->title);
        f->place_width = 0;
        for (size_t i = 0; i < f->rows->n_rows && i < MEASURED; i++) {
                char *name = name_of(f, &f->nodes[i]);
                char *place = g->key->function
                                      ? ls_place_text(&t->report, function_of(f, &f->nodes[i]))
                                      : NULL;
                size_t width = name ? ls_text_columns(name) : 0;

                f->name_width = width > f->name_width ? width : f->name_width;
                width = place ? ls_text_columns(place) : 0;
                f->place_width = width > f->place_width ? width : f->place_width;
                free(name);
                free(place);
        }
}

static int make_rows(struct ls_tui *t, struct flat *f)
{
        struct ls_report_options o = *t->o;     /* one frame a row, no split: rows open to that */

        o.depth = 1;
        o.split = o.inverse = 0;
        if (!o.by[0]->is_frame && !o.by[1])
                o.by[1] = &ls_keys[0];
        if (!o.by[0]->is_frame && o.sort == LS_SORT_TOTAL)
                o.sort = LS_SORT_SELF;
        return ls_rows_new(t->profile, t->labels, t->aggregate, &o, &f->rows);
}

static int flat_build(struct ls_tui *t, struct ls_tui_view *v)
{
        struct flat *f = v->data;
        int r;

        if (!f)
                f = v->data = calloc(1, sizeof(*f));
        r = f ? make_rows(t, f) : -ENOMEM;
        if (r)
                return r;
        f->nodes = calloc(f->rows->n_rows + 1, sizeof(*f->nodes));
        if (!f->nodes)
                return -ENOMEM;
        f->most = 1;
        for (size_t i = 0; i < f->rows->n_rows; i++) {
                const struct ls_row *row = &f->rows->rows[i];
                uint64_t ticks = t->o->sort == LS_SORT_TOTAL ? row->total : row->self;

                set_node(f, &f->nodes[i], NULL, ROW, row->id);
                f->nodes[i].self = row->self;
                f->nodes[i].total = row->total;
                f->most = ticks > f->most ? ticks : f->most;
        }
        measure(t, f);
        return show_all(t, v);
}

static void free_kids(struct node *n)
{
        for (size_t i = 0; i < n->n_kids; i++)
                free_kids(&n->kids[i]);
        free(n->kids);
}

static void flat_forget(struct ls_tui_view *v)
{
        struct flat *f = v->data;

        if (!f)
                return;
        for (size_t i = 0; f->nodes && i < f->rows->n_rows; i++)
                free_kids(&f->nodes[i]);
        free(f->nodes);
        ls_rows_free(f->rows);
        ls_calls_done(&f->calls);
        f->nodes = NULL;
        f->rows = NULL;
        f->calls_ready = 0;
        v->n_rows = 0;
}

static void flat_close(struct ls_tui_view *v)
{
        struct flat *f = v->data;

        if (f) {
                ls_tui_set_free(&f->opened);
                free(f->shown);
        }
        free(f);
}

static void flat_title(const struct ls_tui *t, const struct ls_tui_view *v, char *buf, size_t size)
{
        static const char *const sorts[] = { "self", "total", "name" };

        (void)v;
        if (ls_screen_columns() < 40)
                snprintf(buf, size, "%s", t->o->by[0]->name);
        else
                snprintf(buf, size, "by %s%s%s, sorted by %s", t->o->by[0]->name,
                         t->o->by[1] ? "," : "", t->o->by[1] ? t->o->by[1]->name : "",
                         sorts[t->o->sort]);
}

struct columns {
        int self, margin, total, bar, name, name_width, place, place_width;
}; /* -1 = not shown */

#define BAR 10

/* Columns that the width has room for: the name first, then total, margin, place, bar. */
static void lay_out(const struct ls_tui *t, const struct flat *f, struct columns *c)
{
        int width = ls_screen_columns(), number = (int)ls_number_width(&t->report), x = number;
        int has_place = f->place_width > 0;

        *c = (struct columns){ 0, -1, -1, -1, 0, 0, -1, 0 };
        if (width >= 60) {
                c->margin = x;
                x += 8;
        }
        if (f->rows->has_total && width >= 34) {
                c->total = x;
                x += number + 1;
        }
        if (width >= x + 60) {
                c->bar = x + 2;
                x += BAR + 2;
        }
        c->name = x + 1;
        c->name_width = width - c->name;
        if (has_place && c->name_width >= 36) {
                int want = (int)f->place_width + 2, least = c->name_width / 3;
                int left = c->name_width - (int)f->name_width - 3;

                c->place_width = want < left    ? want
                                 : left > least ? left
                                 : least < want ? least
                                                : want;
                c->name_width -= c->place_width;
                c->place = c->name + c->name_width + 1;
                c->place_width--;
                if (c->name_width > (int)f->name_width + 3 &&
                    c->name_width > 30) { /* near to the name */
                        int less = c->name_width -
                                   ((int)f->name_width + 3 > 30 ? (int)f->name_width + 3 : 30);

                        c->name_width -= less;
                        c->place -= less;
                        c->place_width += less;
                }
        }
}

static void flat_head(const struct ls_tui *t, const struct ls_tui_view *v, int y)
{
        const struct flat *f = v->data;
        int number = (int)ls_number_width(&t->report);
        struct columns c;

        lay_out(t, f, &c);
        ls_screen_printf(y, c.self, number, LS_LOOK_HEAD, "%*s", number,
                         ls_number_title(&t->report, f->rows->has_total ? "Self" : "Share"));
        if (c.margin >= 0)
                ls_screen_printf(y, c.margin, 8, LS_LOOK_HEAD, "%8s", "+-95%");
        if (c.total >= 0)
                ls_screen_printf(y, c.total + 1, number, LS_LOOK_HEAD, "%*s", number,
                                 ls_number_title(&t->report, "Total"));
        ls_screen_put(y, c.name + 2, c.name_width - 2, LS_LOOK_HEAD,
                      f->rows->grouping[0]->key->title);
        if (c.place >= 0)
                ls_screen_put(y, c.place, c.place_width, LS_LOOK_HEAD, "Source");
}

static int flat_sort_at(const struct ls_tui *t, const struct ls_tui_view *v, int x)
{
        const struct flat *f = v->data;
        int number = (int)ls_number_width(&t->report);
        struct columns c;

        lay_out(t, f, &c);
        if (x < c.self + number)
                return LS_SORT_SELF;
        if (c.total >= 0 && x > c.total && x <= c.total + number)
                return LS_SORT_TOTAL;
        return x >= c.name && x < c.name + c.name_width ? LS_SORT_NAME : -1;
}

/* The name with what stands before it; with the place behind it on the first level. */
static void put_name(const struct ls_tui *t, const struct flat *f, const struct node *n,
                     const struct columns *c, int y, unsigned look)
{
        static const char *const sides[2][4] = { { "", "<- ", "-> ", "-- " },
                                                 { "", "\u2190 ", "\u2192 ", "\u2500 " } };
        unsigned quiet = look == LS_LOOK_SELECTED ? look : LS_LOOK_DIM;
        int indent = (int)n->level * 2, limit = c->name_width / 2, x = c->name;
        char *name = name_of(f, n), *place;

        if (indent > limit)             /* too deep to be indented: told by a number */
                ls_screen_printf(y, x, limit, quiet, "(%u)", n->level);
        x += indent > limit ? limit : indent;
        x += ls_screen_put(y, x, 2, quiet,
                           ls_tui_mark(can_open(f, n), ls_tui_set_has(&f->opened, n->identity)));
        x += ls_screen_put(y, x, 3, n->kind == CALLER || n->kind == CALLEE ? quiet : look,
                           sides[ls_screen_utf8()][n->kind]);
        if (name)
                ls_screen_put_found(y, x, c->name + c->name_width - x, look, name, t->search);
        free(name);
        if (c->place < 0)
                return;
        place = ls_place_text(&t->report, function_of(f, n));
        if (place)
                ls_screen_put(y, c->place, c->place_width, quiet, place);
        free(place);
}

static void flat_draw(const struct ls_tui *t, const struct ls_tui_view *v, size_t row, int y,
                      int selected)
{
        const struct flat *f = v->data;
        const struct node *n = f->shown[row];
        unsigned look = selected ? LS_LOOK_SELECTED : LS_LOOK_PLAIN;
        struct columns c;
        uint64_t main_ticks = n->kind == CALLER || n->kind == CALLEE || t->o->sort == LS_SORT_TOTAL
                                      ? n->total
                                      : n->self;

        lay_out(t, f, &c);
        if (n->kind == ROW || n->kind == PART || c.total < 0)
                ls_tui_put_number(t, y, c.self,
                                  n->kind == ROW || n->kind == PART ? n->self : n->total, selected);
        if (c.margin >= 0 && n->kind == ROW)
                ls_tui_put_margin(t, y, c.margin, n->self, selected ? look : LS_LOOK_DIM);
        if (c.total >= 0)
                ls_tui_put_number(t, y, c.total + 1, n->total, selected);
        if (c.bar >= 0)
                ls_screen_bar(y, c.bar, BAR, (double)main_ticks / (double)f->most,
                              ls_tui_heat(t, main_ticks, selected));
        put_name(t, f, n, &c, y, look);
}

static char *flat_text(const struct ls_tui *t, const struct ls_tui_view *v, size_t row)
{
        const struct flat *f = v->data;

        (void)t;
        return name_of(f, f->shown[row]);
}

static uint64_t flat_identity(const struct ls_tui_view *v, size_t row)
{
        return ((const struct flat *)v->data)->shown[row]->identity;
}

static void set_opened(struct ls_tui *t, struct ls_tui_view *v, struct node *n, int open)
{
        struct flat *f = v->data;

        ls_tui_set_put(&f->opened, n->identity, open);
        if (show_all(t, v))
                ls_tui_fail(t, "out of memory");
}

static void flat_open(struct ls_tui *t, struct ls_tui_view *v, size_t row)
{
        struct flat *f = v->data;
        struct node *n = f->shown[row];
        int is_open = ls_tui_set_has(&f->opened, n->identity);

        if (!can_open(f, n))
                return;
        if (!is_open && fill(t, f, n))
                ls_tui_fail(t, "out of memory");
        else if (!n->n_kids)
                ls_tui_say(t, "no callers and no callees");
        else
                set_opened(t, v, n, !is_open);
}

/* Closes the row, or the one that it is part of. */
static void flat_close_row(struct ls_tui *t, struct ls_tui_view *v, size_t row)
{
        struct flat *f = v->data;
        struct node *n = f->shown[row];

        if (!ls_tui_set_has(&f->opened, n->identity))
                n = n->parent;
        if (!n)
                return;
        while (row && f->shown[row] != n)
                row--;
        set_opened(t, v, n, 0);
        ls_tui_goto(t, row);
}

static int flat_place(const struct ls_tui *t, const struct ls_tui_view *v, size_t row,
                      struct ls_tui_place *ret)
{
        const struct flat *f = v->data;
        const struct node *n = f->shown[row];
        const struct ls_grouping *g = grouping_of(f, n);
        uint32_t group = group_of(f, n);

        (void)t;
        if (!g->key->source)
                return 0;
        ret->function = g->key->function ? g->key->function(g, group) : 0;
        ret->source = g->key->source(g, group);
        ret->line = g->key->line ? g->key->line(g, group) : 0;
        return 1;
}

static int flat_seek(struct ls_tui *t, struct ls_tui_view *v, const char *name)
{
        struct flat *f = v->data;

        for (size_t i = 0; i < v->n_rows; i++) {
                char *text = f->shown[i]->kind == ROW ? name_of(f, f->shown[i]) : NULL;
                int hit = text && !strcmp(text, name);

                free(text);
                if (hit) {
                        v->cursor = i;
                        ls_tui_goto(t, i);
                        return 1;
                }
        }
        return 0;
}

const struct ls_tui_view_ops ls_tui_flat = {
        .name = "flat",
        .bit = LS_TUI_IN_FLAT,
        .needs = LS_TUI_NEEDS_PROFILE,
        .build = flat_build,
        .forget = flat_forget,
        .close = flat_close,
        .title = flat_title,
        .head = flat_head,
        .draw = flat_draw,
        .text = flat_text,
        .identity = flat_identity,
        .open_row = flat_open,
        .close_row = flat_close_row,
        .place = flat_place,
        .seek = flat_seek,
        .sort_at = flat_sort_at,
};
