/* View "tree": the call tree, root first, or with --inverse the callers of each function that
 * ran. */
#include "report/view/view.h"
#include "formats/escape.h"
#include "report/model/branches.h"
#include "formats/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>


struct tree {
        struct ls_branches b;
        const struct ls_report *r;
        struct ls_grouping *grouping;   /* of b */
        struct ls_calltree *t;
        size_t hidden;                  /* branches below --min */
};

/* Fewest ticks of a node that is shown: nothing below it needs to be built. */
static uint64_t least_ticks(const struct ls_report *r)
{
        double percent = r->o->min;
        uint64_t least;

        if (percent >= 1)
                percent -= 1;           /* what rounding may add (ls_below_min) */
        least = (uint64_t)(percent / 100 * (double)r->aggregate->ticks);
        return least ? least : 1;
}

static int build(struct tree *t)
{
        int error =
                ls_branches_init(&t->b, t->r, t->r->o->by[0], t->r->o->inverse, least_ticks(t->r));

        t->grouping = t->b.grouping;
        t->t = t->b.tree;
        return error;
}

struct text_ctx {
        uint32_t *levels;
        unsigned limit;                 /* columns of indent: below them, the level is told by a
                                         * number */
};

static void put_dim(const struct ls_report *r, const char *text)
{
        if (*text)
                fprintf(r->out, "%s%s%s", ls_dim(r), text, ls_plain(r));
}

/* A line for a node and those folded into it; the last of them has the self ticks. */
static void put_node(struct tree *t, const struct text_ctx *ctx, uint32_t at)
{
        const struct ls_report *r = t->r;
        const struct ls_calltree_node *last;
        unsigned indent = ctx->levels[at] <= ctx->limit / 2 ? ctx->levels[at] * 2 : ctx->limit,
                 folded;
        char level[24] = "", times[32] = "";
        double total;
        size_t used;

        last = &t->t->nodes[ls_branch_last(t->t, at, &folded)];
        total = ls_share(last->total, r->aggregate->ticks);
        if (indent == ctx->limit)
                snprintf(level, sizeof(level), "(%u) ", ctx->levels[at]);
        if (folded > 1)
                snprintf(times, sizeof(times), " (%u levels)", folded);
        used = 3 + ls_margin_width(r) + 2 * ls_number_width(r) + indent + strlen(level) +
               strlen(times);
        if (r->width && used + 1 >= r->width) { /* a very narrow terminal */
                used -= strlen(times);
                times[0] = '\0';
        }
        fputs(ls_heat(r, total), r->out);
        ls_put_number(r, last->total, r->aggregate->ticks);
        fputs(ls_plain(r), r->out);
        ls_put_margin(r, total, r->aggregate->effective, r->aggregate->ticks);
        fputc(' ', r->out);
        ls_put_number(r, last->self, r->aggregate->ticks);
        fprintf(r->out, "  %*s", (int)indent, "");
        put_dim(r, level);
        ls_put_fit(r->out, ls_group_text(t->grouping, last->label),
                   !r->width ? 0 : r->width > used ? r->width - used : 1, 0);
        put_dim(r, times);
        fputc('\n', r->out);
}

/* Depth first, without recursion: stacks may be any depth. next[] is the child to visit next. */
static int walk(struct tree *t, int (*enter)(struct tree *, uint32_t, void *), void *ctx)
{
        uint32_t *next = calloc((size_t)t->t->n + 1, sizeof(*next)), at = 0;
        int error = next ? 0 : -ENOMEM;

        while (!error) {
                const struct ls_calltree_node *node = &t->t->nodes[at];

                if (next[at] < node->n_children) {
                        uint32_t child = node->first_child + next[at]++;
                        const struct ls_calltree_node *c = &t->t->nodes[child];

                        if (ls_below_min(t->r, c->total, t->r->aggregate->ticks)) {
                                t->hidden++;
                                continue;
                        }
                        error = enter(t, child, ctx);
                        at = child;
                } else if (at) {
                        at = node->parent;
                } else {
                        break;
                }
        }
        free(next);
        return error;
}

static int enter_text(struct tree *t, uint32_t at, void *ctx)
{
        if (!ls_branch_is_folded(t->t, at))
                put_node(t, ctx, at);
        return 0;
}

static int tree_text(const struct ls_report *r)
{
        struct tree t = { .r = r };
        unsigned width = ls_number_width(r), numbers = 3 + ls_margin_width(r) + 2 * width;
        struct text_ctx ctx = { .limit = !r->width                ? 100
                                         : r->width > numbers + 4 ? (r->width - numbers) / 2 / 2 * 2
                                                                  : 2 };
        int error = build(&t);

        if (!error) {
                ctx.levels = ls_branch_levels(t.t);
                error = ctx.levels ? 0 : -ENOMEM;
        }
        if (!error) {
                fprintf(r->out, "%s#%*s %s %*s  %s%s\n", ls_dim(r), (int)width - 1,
                        ls_number_title(r, "Total"), ls_margin_title(r), (int)width,
                        ls_number_title(r, "Self"),
                        r->o->inverse ? "Function, then its callers" : r->o->by[0]->title,
                        ls_plain(r));
                error = walk(&t, enter_text, &ctx);
        }
        if (!error && t.hidden)
                fprintf(r->out, "%s# %zu branch%s below %g%% not shown (--min 0 shows all)%s\n",
                        ls_dim(r), t.hidden, t.hidden == 1 ? "" : "es", r->o->min, ls_plain(r));
        free(ctx.levels);
        ls_branches_done(&t.b);
        return error;
}

/* Nodes are listed flat, with their depth and the index of their parent: most readers of JSON nest
 * no deeper than some hundred levels, stacks do. */
struct json_ctx {
        struct ls_js *g;
        uint32_t *index;                /* number of each node in the list */
        uint32_t n;
};

static int enter_json(struct tree *t, uint32_t at, void *ctx)
{
        struct json_ctx *c = ctx;
        const struct ls_calltree_node *node = &t->t->nodes[at];
        const struct ls_report *r = t->r;
        double total = ls_share(node->total, r->aggregate->ticks);

        c->index[at] = c->n++;
        ls_js_open(c->g, '{');
        ls_js_key_u64(c->g, "id", c->index[at]);
        ls_js_key(c->g, "parent");
        if (node->parent)
                ls_js_u64(c->g, c->index[node->parent]);
        else
                ls_js_null(c->g);
        ls_js_key_u64(c->g, "depth", node->depth);
        ls_js_key_string(c->g, "name", ls_group_text(t->grouping, node->label));
        ls_js_group(r, c->g, t->grouping, node->label);
        ls_js_key_share(c->g, "total", total);
        ls_js_key_u64(c->g, "total_ticks", node->total);
        ls_js_key_share(c->g, "self", ls_share(node->self, r->aggregate->ticks));
        ls_js_key_u64(c->g, "self_ticks", node->self);
        ls_js_key_share(c->g, "margin", ls_margin(total, r->aggregate->effective));
        ls_js_close(c->g, '}');
        return 0;
}

static int tree_json(const struct ls_report *r, struct ls_js *g)
{
        struct tree t = { .r = r };
        struct json_ctx ctx = { .g = g };
        int error = build(&t);

        if (!error) {
                ctx.index = calloc((size_t)t.t->n + 1, sizeof(*ctx.index));
                error = ctx.index ? 0 : -ENOMEM;
        }
        if (!error) {
                ls_js_key_bool(g, "inverse", r->o->inverse);
                ls_js_key_open(g, "nodes", '[');
                error = walk(&t, enter_json, &ctx);
                ls_js_close(g, ']');
        }
        free(ctx.index);
        ls_branches_done(&t.b);
        return error;
}

static int tree_chosen(const struct ls_report_options *o)
{
        return o->tree;
}

static unsigned tree_dims(const struct ls_report_options *o)
{
        return o->by[0]->dims;
}

const struct ls_view ls_view_tree = {
        .name = "tree",
        .chosen = tree_chosen,
        .dims = tree_dims,
        .text = tree_text,
        .json = tree_json,
};
