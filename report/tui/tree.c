/* The call tree of the terminal browser. Branches with --min of the ticks and more are open at
 * first; of the rest there is a line that says how many they are. Called through the table
 * ls_tui_tree. */
#include "report/model/branches.h"
#include "report/tui/tui.h"
#include "formats/escape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPENED 10000                /* nodes that one key opens */
#define BAR 10

struct shown { uint32_t node, more; };  /* a row: more = children of node that are not shown; 0 =
                                         * node itself */

struct tree {
        struct ls_branches b;
        uint32_t *levels;               /* [n] */
        uint64_t *identity;             /* [n] a hash of the path's names */
        uint32_t *order, *position;     /* [n] depth first, and where each node is in that; made
                                         * when searched */
        struct shown *shown;            /* the rows of the view */
        size_t capacity;
        struct shown *stack;            /* to be shown; scratch of show_all */
        size_t stack_capacity;
        struct ls_tui_set opened, closed;       /* by the user */
        struct ls_tui_set whole;        /* with small children too */
};

static const struct ls_calltree_node *node_at(const struct tree *f, uint32_t at)
{
        return &f->b.tree->nodes[at];
}

static const char *label_of(const struct tree *f, uint32_t at)
{
        return ls_group_text(f->b.grouping, node_at(f, at)->label);
}

static int is_open(const struct ls_tui *t, const struct tree *f, uint32_t at)
{
        if (ls_tui_set_has(&f->closed, f->identity[at]))
                return 0;
        return ls_tui_set_has(&f->opened, f->identity[at]) ||
               !ls_below_min(&t->report, node_at(f, at)->total, t->aggregate->ticks);
}

static int push(struct shown **array, size_t *n, size_t *capacity, struct shown s)
{
        if (*n == *capacity) {
                size_t more = *capacity ? *capacity * 2 : 1024;
                struct shown *bigger = realloc(*array, more * sizeof(*bigger));

                if (!bigger)
                        return -ENOMEM;
                *array = bigger;
                *capacity = more;
        }
        (*array)[(*n)++] = s;
        return 0;
}

/* Pushes the children of a row, the last first. They are sorted: small ones come last. */
static int push_children(const struct ls_tui *t, struct tree *f, uint32_t at, size_t *n)
{
        unsigned folded;
        uint32_t last = at ? ls_branch_last(f->b.tree, at, &folded) : 0;
        const struct ls_calltree_node *node = node_at(f, last);
        uint32_t show = 0;
        int r = 0;

        while (show < node->n_children &&
               !ls_below_min(&t->report, node_at(f, node->first_child + show)->total,
                             t->aggregate->ticks))
                show++;
        if (show + 1 == node->n_children || ls_tui_set_has(&f->whole, f->identity[at]) ||
            (!show && (!at || ls_tui_set_has(&f->opened, f->identity[at]))))
                show = node->n_children;
        if (show < node->n_children)
                r = push(&f->stack, n, &f->stack_capacity,
                         (struct shown){ at, node->n_children - show });
        for (uint32_t i = show; !r && i-- > 0;)
                r = push(&f->stack, n, &f->stack_capacity,
                         (struct shown){ node->first_child + i, 0 });
        return r;
}

/* Depth first, without recursion: stacks may be any depth. */
static int show_all(const struct ls_tui *t, struct ls_tui_view *v)
{
        struct tree *f = v->data;
        size_t n = 0;
        int r = push_children(t, f, 0, &n);

        v->n_rows = 0;
        while (!r && n) {
                struct shown s = f->stack[--n];

                r = push(&f->shown, &v->n_rows, &f->capacity, s);
                if (!r && !s.more && is_open(t, f, s.node))
                        r = push_children(t, f, s.node, &n);
        }
        return r;
}

static int tree_build(struct ls_tui *t, struct ls_tui_view *v)
{
        struct tree *f = v->data;
        const struct ls_key *key = t->o->by[0]->is_frame ? t->o->by[0] : &ls_keys[0];
        uint64_t least = t->o->inverse ? t->aggregate->ticks / 1000 + 1 : 1;
        int r;

        if (!f)
                f = v->data = calloc(1, sizeof(*f));
        r = f ? ls_branches_init(&f->b, &t->report, key, t->o->inverse, least) : -ENOMEM;
        if (r)
                return r;
        f->levels = ls_branch_levels(f->b.tree);
        f->identity = calloc((size_t)f->b.tree->n + 1, sizeof(*f->identity));
        if (!f->levels || !f->identity)
                return -ENOMEM;
        for (uint32_t i = 1; i < f->b.tree->n; i++)
                f->identity[i] = ls_tui_hash(f->identity[node_at(f, i)->parent], label_of(f, i));
        return show_all(t, v);
}

static void tree_forget(struct ls_tui_view *v)
{
        struct tree *f = v->data;

        if (!f)
                return;
        ls_branches_done(&f->b);
        free(f->levels);
        free(f->identity);
        free(f->order);
        free(f->position);
        f->levels = f->order = f->position = NULL;
        f->identity = NULL;
        v->n_rows = 0;
}

static void tree_close(struct ls_tui_view *v)
{
        struct tree *f = v->data;

        if (f) {
                ls_tui_set_free(&f->opened);
                ls_tui_set_free(&f->closed);
                ls_tui_set_free(&f->whole);
                free(f->shown);
                free(f->stack);
        }
        free(f);
}

static void tree_title(const struct ls_tui *t, const struct ls_tui_view *v, char *buf, size_t size)
{
        const struct tree *f = v->data;

        snprintf(buf, size, "%s by %s", t->o->inverse ? "callers of what ran," : "call tree",
                 f->b.grouping->key->name);
}

struct columns { int total, margin, self, bar, name, name_width; };     /* -1 = not shown */

static void lay_out(const struct ls_tui *t, struct columns *c)
{
        int width = ls_screen_columns(), number = (int)ls_number_width(&t->report), x = number;

        *c = (struct columns){ 0, -1, -1, -1, 0, 0 };
        if (width >= 60) {
                c->margin = x;
                x += 8;
        }
        if (width >= 34) {
                c->self = x + 1;
                x += number + 1;
        }
        if (width >= x + 60) {
                c->bar = x + 2;
                x += BAR + 2;
        }
        c->name = x + 1;
        c->name_width = width - c->name;
}

static void tree_head(const struct ls_tui *t, const struct ls_tui_view *v, int y)
{
        const struct tree *f = v->data;
        int number = (int)ls_number_width(&t->report);
        struct columns c;

        lay_out(t, &c);
        ls_screen_printf(y, c.total, number, LS_LOOK_HEAD, "%*s", number,
                         ls_number_title(&t->report, "Total"));
        if (c.margin >= 0)
                ls_screen_printf(y, c.margin, 8, LS_LOOK_HEAD, "%8s", "+-95%");
        if (c.self >= 0)
                ls_screen_printf(y, c.self, number, LS_LOOK_HEAD, "%*s", number,
                                 ls_number_title(&t->report, "Self"));
        ls_screen_put(y, c.name + 2, c.name_width - 2, LS_LOOK_HEAD,
                      t->o->inverse ? "Function, then its callers" : f->b.grouping->key->title);
}

/* Columns before the name of a level: below a limit the level is told by a number. Returns where
 * the name begins. */
static int put_indent(const struct columns *c, uint32_t level, int y, unsigned look)
{
        uint32_t limit = (uint32_t)(c->name_width > 4 ? c->name_width / 4 * 2 : 0);
        char text[16];
        int len;

        if (level * 2 <= limit || level > UINT32_MAX / 2)
                return c->name + (int)level * 2;
        len = snprintf(text, sizeof(text), "(%u) ", level);
        if ((uint32_t)len > limit)
                return c->name + (int)limit;
        return c->name + (int)limit - len +
               ls_screen_put(y, c->name + (int)limit - len, len, look, text);
}

static void draw_more(const struct ls_tui *t, const struct tree *f, const struct columns *c,
                      struct shown s, int y, unsigned look)
{
        unsigned folded, level = s.node ? f->levels[s.node] + 1 : 0;
        const struct ls_calltree_node *node =
                node_at(f, s.node ? ls_branch_last(f->b.tree, s.node, &folded) : 0);
        uint64_t ticks = 0;
        char number[32];
        int x;

        for (uint32_t i = node->n_children - s.more; i < node->n_children; i++)
                ticks += node_at(f, node->first_child + i)->total;
        ls_tui_number(t, number, sizeof(number), ticks);
        ls_screen_put(y, c->total, (int)ls_number_width(&t->report), look, number);
        x = put_indent(c, level, y, look);
        ls_screen_printf(y, x + 2, c->name + c->name_width - x - 2, look, "%u more below %g%%",
                         s.more, t->o->min);
}

static void tree_draw(const struct ls_tui *t, const struct ls_tui_view *v, size_t row, int y,
                      int selected)
{
        const struct tree *f = v->data;
        struct shown s = f->shown[row];
        unsigned look = selected ? LS_LOOK_SELECTED : LS_LOOK_PLAIN,
                 quiet = selected ? look : LS_LOOK_DIM, folded;
        const struct ls_calltree_node *node;
        struct columns c;
        int x;

        lay_out(t, &c);
        if (s.more) {
                draw_more(t, f, &c, s, y, quiet);
                return;
        }
        node = node_at(f, ls_branch_last(f->b.tree, s.node, &folded));
        ls_tui_put_number(t, y, c.total, node->total, selected);
        if (c.margin >= 0)
                ls_tui_put_margin(t, y, c.margin, node->total, quiet);
        if (c.self >= 0)
                ls_tui_put_number(t, y, c.self, node->self, selected);
        if (c.bar >= 0)
                ls_screen_bar(y, c.bar, BAR, ls_share(node->total, t->aggregate->ticks),
                              ls_tui_heat(t, node->total, selected));
        x = put_indent(&c, f->levels[s.node], y, quiet);
        x += ls_screen_put(y, x, 2, quiet,
                           ls_tui_mark(node->n_children > 0, is_open(t, f, s.node)));
        x += ls_screen_put_found(y, x, c.name + c.name_width - x, look, label_of(f, s.node),
                                 t->search);
        if (folded > 1)
                ls_screen_printf(y, x, c.name + c.name_width - x, quiet, " (%u levels)", folded);
}

static char *tree_text(const struct ls_tui *t, const struct ls_tui_view *v, size_t row)
{
        const struct tree *f = v->data;

        (void)t;
        return f->shown[row].more ? NULL : strdup(label_of(f, f->shown[row].node));
}

static uint64_t tree_identity(const struct ls_tui_view *v, size_t row)
{
        const struct tree *f = v->data;

        return f->identity[f->shown[row].node] + (f->shown[row].more != 0);
}

static void show_again(struct ls_tui *t, struct ls_tui_view *v)
{
        if (show_all(t, v))
                ls_tui_fail(t, "out of memory");
}

static void set_open(struct tree *f, uint32_t at, int open)
{
        ls_tui_set_put(open ? &f->opened : &f->closed, f->identity[at], 1);
        ls_tui_set_put(open ? &f->closed : &f->opened, f->identity[at], 0);
}

static void tree_open(struct ls_tui *t, struct ls_tui_view *v, size_t row)
{
        struct tree *f = v->data;
        struct shown s = f->shown[row];

        if (s.more)
                ls_tui_set_put(&f->whole, f->identity[s.node], 1);
        else
                set_open(f, s.node, !is_open(t, f, s.node));
        show_again(t, v);
}

/* The row of a node; of a folded one, that of the node that it is shown with. */
static size_t row_of(const struct tree *f, const struct ls_tui_view *v, uint32_t at)
{
        while (ls_branch_is_folded(f->b.tree, at))
                at = node_at(f, at)->parent;
        for (size_t i = 0; i < v->n_rows; i++)
                if (f->shown[i].node == at && !f->shown[i].more)
                        return i;
        return v->n_rows;
}

static void tree_close_row(struct ls_tui *t, struct ls_tui_view *v, size_t row)
{
        struct tree *f = v->data;
        struct shown s = f->shown[row];
        unsigned folded;
        uint32_t at = s.node, last = at ? ls_branch_last(f->b.tree, at, &folded) : 0;

        if (!s.more && at && is_open(t, f, at) && node_at(f, last)->n_children) {
                set_open(f, at, 0);
                ls_tui_set_put(&f->whole, f->identity[at], 0);
                show_again(t, v);
                return;
        }
        if (!s.more)
                at = node_at(f, at)->parent;
        if (at)
                ls_tui_goto(t, row_of(f, v, at));
}

static void tree_open_all(struct ls_tui *t, struct ls_tui_view *v, size_t row)
{
        struct tree *f = v->data;
        size_t n = 0, opened = 0;
        int r;

        if (f->shown[row].more)
                return;
        r = push(&f->stack, &n, &f->stack_capacity, f->shown[row]);
        while (!r && n && opened < MAX_OPENED) {
                struct shown s = f->stack[--n];

                if (s.more)
                        continue;
                set_open(f, s.node, 1);
                ls_tui_set_put(&f->whole, f->identity[s.node], 1);
                opened++;
                r = push_children(t, f, s.node, &n);
        }
        if (n && !r)
                ls_tui_say(t, "opened %d branches; there are more", MAX_OPENED);
        show_again(t, v);
}

static int tree_place(const struct ls_tui *t, const struct ls_tui_view *v, size_t row,
                      struct ls_tui_place *ret)
{
        const struct tree *f = v->data;
        const struct ls_grouping *g = f->b.grouping;
        uint32_t label = node_at(f, f->shown[row].node)->label;

        (void)t;
        if (f->shown[row].more || !g->key->source)
                return 0;
        ret->function = g->key->function ? g->key->function(g, label) : 0;
        ret->source = g->key->source(g, label);
        ret->line = g->key->line ? g->key->line(g, label) : 0;
        return 1;
}

/* Opens all above a node and puts the cursor on it. */
static void reveal(struct ls_tui *t, struct ls_tui_view *v, uint32_t at)
{
        struct tree *f = v->data;
        size_t row;

        row = row_of(f, v, at);
        if (row == v->n_rows) {
                for (uint32_t up = node_at(f, at)->parent, child = at;;
                     child = up, up = node_at(f, up)->parent) {
                        if (up && !is_open(t, f, up))
                                set_open(f, up, 1);
                        if (ls_below_min(&t->report, node_at(f, child)->total, t->aggregate->ticks))
                                ls_tui_set_put(&f->whole, f->identity[up], 1);
                        if (!up)
                                break;
                }
                show_again(t, v);
                row = row_of(f, v, at);
        }
        if (row < v->n_rows)
                v->cursor = row;
}

/* The places of all nodes, depth first: the order of the rows were all open. */
static int find_order(struct tree *f)
{
        uint32_t n = f->b.tree->n, next = 0;
        uint32_t *stack;
        size_t depth = 0;

        if (f->order)
                return 0;
        f->order = calloc((size_t)n + 1, sizeof(*f->order));
        f->position = calloc((size_t)n + 1, sizeof(*f->position));
        stack = calloc((size_t)n + 1, sizeof(*stack));
        if (!f->order || !f->position || !stack) {
                free(f->order);
                f->order = NULL;
                free(stack);
                return -ENOMEM;
        }
        for (stack[depth++] = 0; depth;) {
                uint32_t at = stack[--depth];
                const struct ls_calltree_node *node = node_at(f, at);

                f->position[at] = next;
                f->order[next++] = at;
                for (uint32_t i = node->n_children; i-- > 0;)
                        stack[depth++] = node->first_child + i;
        }
        free(stack);
        return 0;
}

/* Finds the labels that search matches. To be freed. */
static uint8_t *matching_labels(const struct ls_tui *t, const struct tree *f)
{
        uint8_t *match = calloc((size_t)f->b.grouping->n_groups + 1, 1);
        size_t at, len;

        for (uint32_t i = 0; match && i < f->b.grouping->n_groups; i++)
                match[i] = (uint8_t)ls_tui_text_matches(ls_group_text(f->b.grouping, i), t->search,
                                                        &at, &len);
        return match;
}

static int tree_find(struct ls_tui *t, struct ls_tui_view *v, size_t from, int step)
{
        struct tree *f = v->data;
        uint8_t *match = find_order(f) ? NULL : matching_labels(t, f);
        uint32_t n = f->b.tree->n, at = f->position && v->cursor < v->n_rows
                                                ? f->position[f->shown[v->cursor].node]
                                                : 0;
        int hit = 0;

        if (from != v->cursor)
                at = (at + (step > 0 ? 1 : n - 1)) % n;
        for (uint32_t i = 0; match && !hit && i < n; i++) {
                uint32_t node = f->order[at];

                if (node && match[node_at(f, node)->label] &&
                    !ls_branch_is_folded(f->b.tree, node)) {
                        reveal(t, v, node);
                        hit = 1;
                }
                at = (at + (step > 0 ? 1 : n - 1)) % n;
        }
        free(match);
        return hit;
}

/* The node with most ticks of those called so. */
static int tree_seek(struct ls_tui *t, struct ls_tui_view *v, const char *name)
{
        struct tree *f = v->data;
        uint32_t best = 0;

        for (uint32_t i = 1; i < f->b.tree->n; i++)
                if ((!best || node_at(f, i)->total > node_at(f, best)->total) &&
                    !strcmp(label_of(f, i), name) && !ls_branch_is_folded(f->b.tree, i))
                        best = i;
        if (!best)
                return 0;
        reveal(t, v, best);
        ls_tui_goto(t, v->cursor);
        return 1;
}

const struct ls_tui_view_ops ls_tui_tree = {
        .name = "tree",
        .bit = LS_TUI_IN_TREE,
        .needs = LS_TUI_NEEDS_PROFILE,
        .build = tree_build,
        .forget = tree_forget,
        .close = tree_close,
        .title = tree_title,
        .head = tree_head,
        .draw = tree_draw,
        .text = tree_text,
        .identity = tree_identity,
        .open_row = tree_open,
        .close_row = tree_close_row,
        .open_all = tree_open_all,
        .place = tree_place,
        .seek = tree_seek,
        .find = tree_find,
};
