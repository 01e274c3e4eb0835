/* Rows of luasample diff --tree: the call trees of all recordings as one, whose nodes have the
 * ticks of each. Called by diff.c. */
#include "report/diff/diff.h"
#include "formats/export/calltree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->failed = 1)
#include <uthash.h>

#define ROOT UINT32_MAX

struct entry {                          /* a node of the joint tree */
        struct { uint32_t parent, item; } key;
        uint32_t id;
        int failed;
        UT_hash_handle hh;
};

struct joint {
        struct ls_diff *d;
        struct entry *hash;
        uint32_t cap;
};

static int add_node(struct joint *j, uint32_t parent, uint32_t item, uint32_t *ret)
{
        struct ls_diff *d = j->d;
        uint32_t n = d->n_rows;
        struct entry *e;

        if (n == j->cap) {
                uint32_t cap = j->cap ? j->cap * 2 : 1024;
                struct ls_diff_row *rows =
                        cap < INT32_MAX ? reallocarray(d->rows, cap, sizeof(*rows)) : NULL;
                uint64_t *ticks;

                if (!rows)
                        return -ENOMEM;
                d->rows = rows;
                ticks = reallocarray(d->ticks, cap, d->n_runs * sizeof(*ticks));
                if (!ticks)
                        return -ENOMEM;
                d->ticks = ticks;
                j->cap = cap;
        }
        e = calloc(1, sizeof(*e));
        if (!e)
                return -ENOMEM;
        e->key.parent = parent;
        e->key.item = item;
        e->id = n;
        HASH_ADD(hh, j->hash, key, sizeof(e->key), e);
        if (e->failed) {
                free(e);
                return -ENOMEM;
        }
        d->rows[n] =
                (struct ls_diff_row){ .item = item,
                                      .parent = parent,
                                      .depth = parent == ROOT ? 0 : d->rows[parent].depth + 1 };
        memset(d->ticks + (size_t)n * d->n_runs, 0, d->n_runs * sizeof(*d->ticks));
        d->n_rows++;
        *ret = n;
        return 0;
}

static int find_node(struct joint *j, uint32_t parent, uint32_t item, uint32_t *ret)
{
        struct entry key = { .key = { parent, item } }, *e;

        HASH_FIND(hh, j->hash, &key.key, sizeof(key.key), e);
        if (!e)
                return add_node(j, parent, item, ret);
        *ret = e->id;
        return 0;
}

/* Parents come before their children in both trees. */
static int add_tree(struct joint *j, unsigned k, const struct ls_calltree *t)
{
        uint32_t *node_of = calloc((size_t)t->n + 1, sizeof(*node_of));
        int r = node_of ? 0 : -ENOMEM;

        for (uint32_t i = 1; !r && i < t->n; i++) {
                const struct ls_calltree_node *node = &t->nodes[i];

                r = find_node(j, node->parent ? node_of[node->parent] : ROOT, node->label,
                              &node_of[i]);
                if (!r)
                        j->d->ticks[(size_t)node_of[i] * j->d->n_runs + k] += node->total;
        }
        free(node_of);
        return r;
}

static int add_run(struct joint *j, unsigned k)
{
        const struct ls_diff_run *run = &j->d->runs[k];
        uint32_t n = run->profile->n_locations;
        uint32_t *labels = calloc((size_t)n + 1, sizeof(*labels));
        struct ls_calltree *t = NULL;
        int r = labels ? 0 : -ENOMEM;

        for (uint32_t i = 0; !r && i < n; i++)
                labels[i] = run->item_of[run->grouping->group_of[i]];
        if (!r)
                r = ls_calltree_new(&(struct ls_calltree_request){ .profile = run->profile,
                                                                   .self = run->aggregate->self,
                                                                   .label_of_location = labels,
                                                                   .min = 1,
                                                                   .inverse = j->d->o->o.inverse },
                                    &t);
        if (!r)
                r = add_tree(j, k, t);
        ls_calltree_free(t);
        free(labels);
        return r;
}

struct order { double size, whole; uint32_t parent, id; };

/* Children of a node are neighbours, the one that differs most first; those of the root are
 * last. */
static int by_parent(const void *x, const void *y)
{
        const struct order *a = x, *b = y;

        if (a->parent != b->parent)
                return a->parent < b->parent ? -1 : 1;
        if (a->size != b->size)
                return a->size > b->size ? -1 : 1;
        if (a->whole != b->whole)
                return a->whole > b->whole ? -1 : 1;
        return a->id < b->id ? -1 : a->id > b->id;
}

struct placing {                        /* the rows in the order shown */
        struct ls_diff_row *rows;
        uint32_t *ticks_of;
        uint32_t n;
        uint32_t *place_of;             /* by node */
};

/* Depth first without recursion: the children of a node that was placed stand on a stack, the first
 * on top. */
static void place(const struct ls_diff *d, const struct order *order, const uint32_t *first,
                  uint32_t *stack, struct placing *p)
{
        uint32_t depth = 0;

        for (uint32_t i = d->n_rows; i-- > 0 && order[i].parent == ROOT;)
                stack[depth++] = order[i].id;
        while (depth) {
                uint32_t id = stack[--depth], at = first[id], end = at;

                p->place_of[id] = p->n;
                p->rows[p->n] = d->rows[id];
                if (d->rows[id].parent != ROOT)
                        p->rows[p->n].parent = p->place_of[d->rows[id].parent];
                p->ticks_of[p->n++] = id;
                while (end < d->n_rows && order[end].parent == id)
                        end++;
                while (end > at)
                        stack[depth++] = order[--end].id;
        }
}

static int sort_tree(struct ls_diff *d)
{
        uint32_t n = d->n_rows;
        struct order *order = calloc((size_t)n + 1, sizeof(*order));
        uint32_t *first = calloc((size_t)n + 1, sizeof(*first)),
                 *stack = calloc((size_t)n + 1, sizeof(*stack));
        struct placing p = { .rows = calloc((size_t)n + 1, sizeof(*p.rows)),
                             .place_of = calloc((size_t)n + 1, sizeof(uint32_t)),
                             .ticks_of = calloc((size_t)n + 1, sizeof(uint32_t)) };
        int r = order && first && stack && p.rows && p.place_of && p.ticks_of ? 0 : -ENOMEM;

        for (uint32_t i = 0; !r && i < n; i++) {
                const struct ls_diff_row *row = &d->rows[i];

                order[i] = (struct order){ ls_diff_size(row), row->before + row->after, row->parent,
                                           i };
                first[i] = n;
        }
        if (!r) {
                qsort(order, n, sizeof(*order), by_parent);
                for (uint32_t i = n; i-- > 0;)
                        if (order[i].parent != ROOT)
                                first[order[i].parent] = i;
                place(d, order, first, stack, &p);
                free(d->rows);
                d->rows = p.rows;
                d->ticks_of = p.ticks_of;
        } else {
                free(p.rows);
                free(p.ticks_of);
        }
        free(p.place_of);
        free(order);
        free(first);
        free(stack);
        return r;
}

int ls_diff_tree_rows(struct ls_diff *d)
{
        struct joint j = { .d = d };
        struct entry *e, *next;
        int r = 0;

        for (unsigned k = 0; !r && k < d->n_runs; k++)
                r = add_run(&j, k);
        HASH_ITER(hh, j.hash, e, next) {
                HASH_DEL(j.hash, e);
                free(e);
        }
        if (!r)
                r = ls_diff_weigh(d);
        return r ? r : sort_tree(d);
}
