/* Callers and callees by the ticks that passed through the call. Called by the terminal browser.
 *
 * A question is one walk over all stacks, depth first: a stack of which the last frames are the
 * chain gives its ticks, and those of all that it called, to the group that follows, unless a stack
 * on the way to it did so already. */
#include "report/model/edges.h"
#include "formats/export/calltree.h"
#include "report/model/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_GROUP UINT32_MAX

static void link_children(struct ls_calls *c)
{
        for (uint32_t i = c->profile->n_stacks; i-- > 1;) {
                uint32_t parent = c->profile->stacks[i].parent;

                c->next[i] = c->first_child[parent];
                c->first_child[parent] = i;
        }
}

int ls_calls_init(struct ls_calls *c, const struct ls_profile *p, const struct ls_grouping *g,
                  const struct ls_aggregate *a)
{
        memset(c, 0, sizeof(*c));
        c->profile = p;
        c->grouping = g;
        c->totals = ls_stack_totals(p, a->self);
        c->first_child = calloc((size_t)p->n_stacks + 1, sizeof(*c->first_child));
        c->next = calloc((size_t)p->n_stacks + 1, sizeof(*c->next));
        c->ticks = calloc((size_t)g->n_groups + 1, sizeof(*c->ticks));
        c->on_path = calloc((size_t)g->n_groups + 1, sizeof(*c->on_path));
        if (!c->totals || !c->first_child || !c->next || !c->ticks || !c->on_path) {
                ls_calls_done(c);
                return -ENOMEM;
        }
        link_children(c);
        return 0;
}

void ls_calls_done(struct ls_calls *c)
{
        free(c->totals);
        free(c->first_child);
        free(c->next);
        free(c->ticks);
        free(c->on_path);
        memset(c, 0, sizeof(*c));
}

struct question {
        struct ls_calls *c;
        int callees;
        const uint32_t *chain;
        size_t n;
};

static uint32_t group_at(const struct ls_calls *c, uint32_t stack)
{
        return c->grouping->group_of[c->profile->stacks[stack].location];
}

/* Whether the frames from stack up are chain[from..n), which is innermost first, or with callees
 * outermost first. Returns the stack above them in *ret_above. */
static int matches(const struct question *q, uint32_t stack, size_t from, uint32_t *ret_above)
{
        for (size_t i = from; i < q->n; i++) {
                uint32_t want = q->chain[q->callees ? q->n - 1 - i : i];

                if (!stack || group_at(q->c, stack) != want)
                        return 0;
                stack = q->c->profile->stacks[stack].parent;
        }
        *ret_above = stack;
        return 1;
}

/* The group that gets the ticks of a stack and all that it called. */
static uint32_t follower(const struct question *q, uint32_t stack)
{
        uint32_t above;

        if (q->callees)
                return matches(q, q->c->profile->stacks[stack].parent, 0, &above)
                               ? group_at(q->c, stack)
                               : NO_GROUP;
        return matches(q, stack, 0, &above) && above ? group_at(q->c, above) : NO_GROUP;
}

static void enter(const struct question *q, uint32_t stack)
{
        uint32_t group = follower(q, stack);

        if (group != NO_GROUP && !q->c->on_path[group]++)
                q->c->ticks[group] += q->c->totals[stack];
}

static void leave(const struct question *q, uint32_t stack)
{
        uint32_t group = follower(q, stack);

        if (group != NO_GROUP)
                q->c->on_path[group]--;
}

static void walk(const struct question *q)
{
        uint32_t at = q->c->first_child[0];

        while (at) {
                enter(q, at);
                if (q->c->first_child[at]) {
                        at = q->c->first_child[at];
                        continue;
                }
                leave(q, at);
                while (!q->c->next[at] && q->c->profile->stacks[at].parent) {
                        at = q->c->profile->stacks[at].parent;
                        leave(q, at);
                }
                at = q->c->next[at];
        }
}

static int by_ticks(const void *a, const void *b)
{
        const struct ls_edge *x = a, *y = b;

        if (x->ticks != y->ticks)
                return x->ticks > y->ticks ? -1 : 1;
        return x->group < y->group ? -1 : x->group > y->group;
}

int ls_calls_edges(struct ls_calls *c, int callees, const uint32_t *chain, size_t n_chain,
                   struct ls_edge **ret, size_t *ret_n)
{
        const struct question q = { c, callees, chain, n_chain };
        uint32_t n_groups = c->grouping->n_groups;
        struct ls_edge *edges;
        size_t n = 0;

        memset(c->ticks, 0, (size_t)n_groups * sizeof(*c->ticks));
        walk(&q);
        for (uint32_t i = 0; i < n_groups; i++)
                n += c->ticks[i] != 0;
        edges = malloc((n + 1) * sizeof(*edges));
        if (!edges)
                return -ENOMEM;
        n = 0;
        for (uint32_t i = 0; i < n_groups; i++)
                if (c->ticks[i])
                        edges[n++] = (struct ls_edge){ i, c->ticks[i] };
        qsort(edges, n, sizeof(*edges), by_ticks);
        *ret = edges;
        *ret_n = n;
        return 0;
}
