/* luasample jit --tree: root traces, and below each the side traces that begin at its exits. Called
 * by jit.c.
 *
 * A parent was compiled before its child. A file may say otherwise: such a trace is shown as one
 * without a parent. */
#include "report/jit/jit.h"
#include "formats/escape.h"
#include "report/view/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct tree {
        const struct ls_jit *j;
        uint64_t *total;                /* of a trace with those below it */
        uint32_t *child, *next;         /* first child, of 0 the first root; next sibling; 0 =
                                         * none */
        uint32_t *depth;
};

static uint32_t parent_of(const struct ls_jit *j, uint32_t i)
{
        uint32_t parent = j->r.profile->jittraces[i].parent;

        return parent < i ? parent : 0;
}

static const uint64_t *totals_to_sort;

static int less_total(const void *a, const void *b)
{
        const uint32_t *x = a, *y = b;

        if (totals_to_sort[*x] != totals_to_sort[*y])
                return totals_to_sort[*x] < totals_to_sort[*y] ? -1 : 1;
        return *x > *y ? -1 : *x < *y;
}

/* Totals, and lists of siblings, largest first: put in front of their list in the order of their
 * totals. */
static int link_up(struct tree *t, uint32_t n)
{
        uint32_t *order = calloc((size_t)n + 1, sizeof(*order)), n_order = 0;

        if (!order)
                return -ENOMEM;
        for (uint32_t i = n; i-- > 1;) {
                t->total[i] += t->j->ticks[i];
                if (parent_of(t->j, i))
                        t->total[parent_of(t->j, i)] += t->total[i];
                order[n_order++] = i;
        }
        totals_to_sort = t->total;
        qsort(order, n_order, sizeof(*order), less_total);
        for (uint32_t i = 0; i < n_order; i++) {
                uint32_t parent = parent_of(t->j, order[i]);

                t->next[order[i]] = t->child[parent];
                t->child[parent] = order[i];
        }
        free(order);
        return 0;
}

/* "exit 3: trace 5 work:12, goes on to itself"; to be freed, NULL = no memory. */
static char *node_text(const struct tree *t, uint32_t i)
{
        const struct ls_jittrace *trace = &t->j->r.profile->jittraces[i];
        char *start = ls_jit_start(t->j, i), *link = ls_jit_link(t->j, i), *exit, *text = NULL;

        exit = parent_of(t->j, i) ? ls_print("exit %u: ", trace->exit) : strdup("");
        if (start && link && exit)
                text = trace->number ? ls_print("%strace %u %s, goes on to %s", exit,
                                                trace->number, start, link)
                                     : ls_print("%snot recorded", exit);
        free(start);
        free(link);
        free(exit);
        return text;
}

static int put_node(const struct tree *t, uint32_t i)
{
        const struct ls_report *r = &t->j->r;
        unsigned indent = t->depth[i] < 12 ? t->depth[i] * 2 : 24;
        char *text = node_text(t, i);

        if (!text)
                return -ENOMEM;
        ls_put_number(r, t->total[i], r->aggregate->ticks);
        fputc(' ', r->out);
        ls_put_number(r, t->j->ticks[i], r->aggregate->ticks);
        fprintf(r->out, "  %*s", (int)indent, "");
        ls_put_fit(r->out, text, 80 - 2 * ls_number_width(r) - 3 - indent, 0);
        fputc('\n', r->out);
        free(text);
        return 0;
}

/* Without recursion: a file may nest any number. */
static int put_nodes(const struct tree *t)
{
        const struct ls_report *r = &t->j->r;
        uint32_t at = t->child[0];
        int error = 0;

        while (!error && at) {
                int shown = t->total[at] && !ls_below_min(r, t->total[at], r->aggregate->ticks);

                if (shown)
                        error = put_node(t, at);
                if (shown && t->child[at]) {
                        t->depth[t->child[at]] = t->depth[at] + 1;
                        at = t->child[at];
                        continue;
                }
                while (at && !t->next[at])
                        at = parent_of(t->j, at);
                if (at) {
                        t->depth[t->next[at]] = t->depth[at];
                        at = t->next[at];
                }
        }
        return error;
}

int ls_jit_tree(const struct ls_jit *j)
{
        size_t n = (size_t)j->r.profile->n_jittraces + 1;
        struct tree t = { j, calloc(n, sizeof(*t.total)), calloc(n, sizeof(*t.child)),
                          calloc(n, sizeof(*t.next)), calloc(n, sizeof(*t.depth)) };
        int error = t.total && t.child && t.next && t.depth ? link_up(&t, j->r.profile->n_jittraces)
                                                            : -ENOMEM;

        if (!error) {
                fprintf(j->r.out,
                        "== Traces, and the side traces that begin at their exits ==\n"
                        "Total is a trace with all below it; self is its own machine "
                        "code.\n\n%s%*s %*s  Trace%s\n",
                        ls_dim(&j->r), (int)ls_number_width(&j->r), "Total",
                        (int)ls_number_width(&j->r), "Self", ls_plain(&j->r));
                error = j->n_order ? put_nodes(&t) : 0;
                if (!j->n_order)
                        fprintf(j->r.out, "[No sample is in a trace that is known]\n");
        }
        free(t.total);
        free(t.child);
        free(t.next);
        free(t.depth);
        return error;
}
