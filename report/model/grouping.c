/* See grouping.h. */

#include "report/model/grouping.h"

#include <errno.h>
#include <stdlib.h>

static int by_keys(const void *x, const void *y)
{
        const struct ls_keyed *p = x, *q = y;

        if (p->a != q->a)
                return p->a < q->a ? -1 : 1;
        if (p->b != q->b)
                return p->b < q->b ? -1 : 1;
        return p->id < q->id ? -1 : p->id > q->id;
}

int ls_number_groups(struct ls_grouping *g, struct ls_keyed *k, uint32_t n)
{
        g->group_of = calloc((size_t)n + 1, sizeof(*g->group_of));
        g->sample_of = calloc((size_t)n + 2, sizeof(*g->sample_of));
        if (!g->group_of || !g->sample_of)
                return -ENOMEM;
        qsort(k, n, sizeof(*k), by_keys);
        for (uint32_t i = 0; i < n; i++) {
                if (i == 0 || k[i].a != k[i - 1].a || k[i].b != k[i - 1].b)
                        g->sample_of[g->n_groups++] = k[i].id;
                g->group_of[k[i].id] = g->n_groups - 1;
        }
        return 0;
}
