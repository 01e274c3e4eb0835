/* luasample jit --graph: traces, which leaves which and goes on to which, as a drawing of
 * graphviz's (DOT). Called by jit.c. */
#include "report/jit/jit.h"
#include "formats/escape.h"
#include "report/view/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct graph {
        const struct ls_jit *j;
        uint8_t *shown;                 /* [n_jittraces] */
};

/* A text of DOT's between quotes. */
static void put_text(FILE *out, const char *text)
{
        for (; *text; text++) {
                if (*text == '"' || *text == '\\')
                        fputc('\\', out);
                fputc(*text, out);
        }
}

/* Traces with enough time, and what leads to them. A file may name a parent that comes later, or a
 * circle: those are no parents. */
static void choose(const struct graph *g)
{
        const struct ls_report *r = &g->j->r;
        const struct ls_profile *p = r->profile;

        for (uint32_t i = p->n_jittraces; i-- > 1;) {
                uint32_t parent = p->jittraces[i].parent;

                if (!g->shown[i] && g->j->ticks[i] &&
                    !ls_below_min(r, g->j->ticks[i], r->aggregate->ticks))
                        g->shown[i] = 1;
                if (g->shown[i] && parent && parent < i)
                        g->shown[parent] = 1;
        }
}

/* The hotter the fuller, on white: HSV. */
static double fullness(double share)
{
        return share > 0.5 ? 0.6 : 0.05 + 1.1 * share;
}

static int put_node(const struct graph *g, uint32_t i)
{
        const struct ls_report *r = &g->j->r;
        const struct ls_jittrace *t = &r->profile->jittraces[i];
        double share = ls_share(g->j->ticks[i], r->aggregate->ticks);
        char *start = ls_jit_start(g->j, i);

        if (!start)
                return -ENOMEM;
        fprintf(r->out, "  t%u [label=\"", i);
        if (t->number)
                fprintf(r->out, "%strace %u\\n", t->parent || t->root ? "side " : "", t->number);
        put_text(r->out, start);
        fprintf(r->out, "\\n%.2f%%\", fillcolor=\"0.05 %.3f 1.0\"]\n", 100 * share,
                fullness(share));
        free(start);
        return 0;
}

/* The only shown trace of this number in the VM; 0 = there is none, or more, since LuaJIT uses
 * numbers again. */
static uint32_t trace_of(const struct graph *g, uint32_t vm, uint32_t number)
{
        const struct ls_profile *p = g->j->r.profile;
        uint32_t found = 0;

        for (uint32_t i = 1; i < p->n_jittraces; i++) {
                if (!g->shown[i] || p->jittraces[i].vm != vm || p->jittraces[i].number != number)
                        continue;
                if (found)
                        return 0;
                found = i;
        }
        return found;
}

static void put_edges(const struct graph *g, uint32_t i)
{
        const struct ls_profile *p = g->j->r.profile;
        const struct ls_jittrace *t = &p->jittraces[i];
        uint32_t to = t->link == t->number ? i : t->link ? trace_of(g, t->vm, t->link) : 0;

        if (t->parent && t->parent < i)
                fprintf(g->j->r.out, "  t%u -> t%u [label=\"exit %u\"]\n", t->parent, i, t->exit);
        if (t->number && t->link && to)
                fprintf(g->j->r.out, "  t%u -> t%u [style=dashed]\n", i, to);
}

int ls_jit_graph(const struct ls_jit *j)
{
        uint32_t n = j->r.profile->n_jittraces;
        struct graph g = { j, calloc((size_t)n + 1, 1) };
        int error = g.shown ? 0 : -ENOMEM;

        if (!error) {
                choose(&g);
                fprintf(j->r.out, "digraph traces {\n  // edges: exits; dashed: goes on to\n"
                        "  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"]\n"
                        "  edge [fontname=\"sans-serif\", fontsize=10]\n");
        }
        for (uint32_t i = 1; !error && i < n; i++)
                error = g.shown[i] ? put_node(&g, i) : 0;
        for (uint32_t i = 1; !error && i < n; i++)
                if (g.shown[i])
                        put_edges(&g, i);
        if (!error)
                fputs("}\n", j->r.out);
        free(g.shown);
        return error;
}
