/* What holds what: the shortest way from the root to each object, and its dominator, without which
 * it would be garbage, by the algorithm of Lengauer and Tarjan: n log n whatever the graph is. */
#include "report/heap/heap.h"

#include <errno.h>
#include <stdlib.h>

struct work {                           /* numbers of the depth-first search, from 0 = root */
        struct ls_heap *h;
        uint32_t *number;               /* of each object; LS_HEAP_NONE = not met */
        uint32_t *vertex, *parent, *semi, *ancestor, *label, *bucket, *next, *stack;
        uint32_t *from, *n_from, *into; /* edges backwards: those into an object */
        uint32_t n;
};

/* Edges of object v: those of the root stand behind all others. */
static void edges_of(const struct ls_heap *h, uint32_t v, uint32_t *ret_first, uint32_t *ret_end)
{
        *ret_first = v ? h->objects[v].first : h->objects[h->n].first;
        *ret_end = v ? h->objects[v + 1].first : h->n_edges;
}

static void shortest(struct ls_heap *h, uint32_t *queue)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < h->n; i++)
                h->parent[i] = h->by[i] = LS_HEAP_NONE;
        h->parent[0] = 0;
        queue[n++] = 0;
        for (uint32_t i = 0; i < n; i++) {
                uint32_t at, end;

                for (edges_of(h, queue[i], &at, &end); at < end; at++) {
                        uint32_t to = h->edges[at].target;

                        if (h->parent[to] != LS_HEAP_NONE)
                                continue;
                        h->parent[to] = queue[i];
                        h->by[to] = at;
                        queue[n++] = to;
                }
        }
}

/* Numbers objects in the order of a depth-first search; next[] has where each object's edges
 * are. */
static void search(struct work *w)
{
        uint32_t depth = 0, end;

        for (uint32_t i = 0; i < w->h->n; i++) {
                w->number[i] = LS_HEAP_NONE;
                edges_of(w->h, i, &w->next[i], &end);
        }
        w->number[0] = w->n++;
        w->stack[depth++] = 0;
        while (depth) {
                uint32_t v = w->stack[depth - 1], at, to;

                edges_of(w->h, v, &at, &end);
                if (w->next[v] == end) {
                        depth--;
                        continue;
                }
                to = w->h->edges[w->next[v]++].target;
                if (w->number[to] != LS_HEAP_NONE)
                        continue;
                w->number[to] = w->n;
                w->vertex[w->n] = to;
                w->parent[w->n++] = w->number[v];
                w->stack[depth++] = to;
        }
}

static void turn_around(struct work *w)
{
        uint32_t sum = 0, at, end;

        for (uint32_t i = 0; i < w->n; i++)
                for (edges_of(w->h, w->vertex[i], &at, &end); at < end; at++)
                        w->n_from[w->number[w->h->edges[at].target]]++;
        for (uint32_t i = 0; i < w->n; i++) {
                w->from[i] = sum;
                sum += w->n_from[i];
                w->n_from[i] = 0;
        }
        for (uint32_t i = 0; i < w->n; i++)
                for (edges_of(w->h, w->vertex[i], &at, &end); at < end; at++) {
                        uint32_t to = w->number[w->h->edges[at].target];

                        w->into[w->from[to] + w->n_from[to]++] = i;
                }
}

/* The object with the smallest semidominator on the way up; ways become short. */
static uint32_t best_above(struct work *w, uint32_t v)
{
        uint32_t depth = 0;

        if (w->ancestor[v] == LS_HEAP_NONE)
                return v;
        for (uint32_t u = v; w->ancestor[w->ancestor[u]] != LS_HEAP_NONE; u = w->ancestor[u])
                w->stack[depth++] = u;
        while (depth) {
                uint32_t u = w->stack[--depth], a = w->ancestor[u];

                if (w->semi[w->label[a]] < w->semi[w->label[u]])
                        w->label[u] = w->label[a];
                w->ancestor[u] = w->ancestor[a];
        }
        return w->label[v];
}

static void dominate(struct work *w, uint32_t *idom)
{
        for (uint32_t i = 0; i < w->n; i++) {
                w->semi[i] = w->label[i] = i;
                w->ancestor[i] = w->bucket[i] = w->next[i] = LS_HEAP_NONE;
        }
        for (uint32_t v = w->n; --v > 0;) {
                for (uint32_t i = 0; i < w->n_from[v]; i++) {
                        uint32_t u = best_above(w, w->into[w->from[v] + i]);

                        w->semi[v] = w->semi[u] < w->semi[v] ? w->semi[u] : w->semi[v];
                }
                w->next[v] = w->bucket[w->semi[v]];
                w->bucket[w->semi[v]] = v;
                w->ancestor[v] = w->parent[v];
                for (uint32_t *b = &w->bucket[w->parent[v]]; *b != LS_HEAP_NONE;) {
                        uint32_t x = *b, u = best_above(w, x);

                        *b = w->next[x];
                        idom[x] = w->semi[u] < w->semi[x] ? u : w->parent[v];
                }
        }
        for (uint32_t v = 1; v < w->n; v++)
                if (idom[v] != w->semi[v])
                        idom[v] = idom[idom[v]];
}

static void sum_up(struct work *w, const uint32_t *idom)
{
        struct ls_heap *h = w->h;

        for (uint32_t i = 0; i < h->n; i++) {
                h->retained[i] = h->objects[i].size;
                h->dominator[i] = LS_HEAP_NONE;
        }
        for (uint32_t v = w->n; --v > 0;) {
                h->dominator[w->vertex[v]] = w->vertex[idom[v]];
                h->retained[w->vertex[idom[v]]] += h->retained[w->vertex[v]];
        }
}

int ls_heap_dominate(struct ls_heap *h)
{
        size_t n = (size_t)h->n + 1;
        uint32_t *all = calloc(n * 12 + h->n_edges + 1, sizeof(*all)), *idom = all;
        struct work w = { .h = h };

        h->parent = calloc(n, sizeof(*h->parent));
        h->by = calloc(n, sizeof(*h->by));
        h->dominator = calloc(n, sizeof(*h->dominator));
        h->retained = calloc(n, sizeof(*h->retained));
        if (!all || !h->parent || !h->by || !h->dominator || !h->retained) {
                free(all);
                return -ENOMEM;
        }
        w.number = all + n;
        w.vertex = all + 2 * n;
        w.parent = all + 3 * n;
        w.semi = all + 4 * n;
        w.ancestor = all + 5 * n;
        w.label = all + 6 * n;
        w.bucket = all + 7 * n;
        w.next = all + 8 * n;
        w.stack = all + 9 * n;
        w.from = all + 10 * n;
        w.n_from = all + 11 * n;
        w.into = all + 12 * n;
        shortest(h, w.stack);
        search(&w);
        turn_around(&w);
        dominate(&w, idom);
        sum_up(&w, idom);
        free(all);
        return 0;
}
