/* A call tree: stacks merged by what their frames are shown as. Used by the tree view of report/
 * and by the collapsed exporter.
 *
 * Built breadth first without hashing: a node keeps the list of the stacks that were merged into
 * it; their next frames are sorted by label, and each run of equal labels is a child. */
#include "formats/export/calltree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct member {                         /* one stack merged into a node */
        uint32_t label;                 /* of its frame in this node */
        uint32_t at;                    /* the stack whose leaf is that frame */
        uint64_t ticks;                 /* self (root first), or what the stack it came from had
                                         * (inverse) */
        uint64_t total;                 /* with all that it called (root first); the same as ticks
                                         * (inverse) */
};

struct builder {
        const struct ls_calltree_request *rq;
        const struct ls_profile *p;
        uint64_t *totals;               /* root first */
        uint32_t *first_child, *next;   /* root first: stacks called by a stack */
        struct ls_calltree *tree;
        uint32_t capacity;              /* of tree->nodes */
        struct member *members;         /* of nodes not yet expanded, in order of nodes */
        size_t head, n_members, members_capacity;
        uint32_t *counts;               /* members of each node */
        struct member *next_members;    /* children of the node being expanded */
        size_t next_capacity;
};

uint64_t *ls_stack_totals(const struct ls_profile *p, const uint64_t *self)
{
        uint64_t *totals = malloc(((size_t)p->n_stacks + 1) * sizeof(*totals));

        if (!totals)
                return NULL;
        memcpy(totals, self, (size_t)p->n_stacks * sizeof(*totals));
        for (uint32_t i = p->n_stacks; i-- > 1;)
                if (p->stacks[i].parent)
                        totals[p->stacks[i].parent] += totals[i];
        return totals;
}

/* Links each stack with ticks to its caller. Index 0 collects the roots. */
static int link_children(const struct ls_profile *p, const uint64_t *totals, uint32_t **ret_first,
                         uint32_t **ret_next)
{
        uint32_t *first = calloc((size_t)p->n_stacks + 1, sizeof(*first));
        uint32_t *next = calloc((size_t)p->n_stacks + 1, sizeof(*next));

        if (!first || !next) {
                free(first);
                free(next);
                return -ENOMEM;
        }
        for (uint32_t i = p->n_stacks; i-- > 1;) {
                if (!totals[i])
                        continue;
                next[i] = first[p->stacks[i].parent];
                first[p->stacks[i].parent] = i;
        }
        *ret_first = first;
        *ret_next = next;
        return 0;
}

int ls_label_totals(const struct ls_profile *p, const uint64_t *totals,
                    const uint32_t *label_of_location, uint32_t n_labels, uint64_t *ret_total)
{
        uint32_t *first = NULL, *next = NULL,
                 *on_path = calloc((size_t)n_labels + 1, sizeof(*on_path));
        uint32_t at;
        int r = on_path ? link_children(p, totals, &first, &next) : -ENOMEM;

        /* Depth first, without recursion: down to the first child, else to the next sibling, else
         * up. first[] is used up on the way. on_path counts how often a label is between the root
         * and here. */
        for (at = 0; !r;) {
                uint32_t child = first[at];

                if (child) {
                        uint32_t label = label_of_location[p->stacks[child].location];

                        first[at] = next[child];
                        if (on_path[label]++ == 0)
                                ret_total[label] += totals[child];
                        at = child;
                } else if (at) {
                        on_path[label_of_location[p->stacks[at].location]]--;
                        at = p->stacks[at].parent;
                } else {
                        break;
                }
        }
        free(first);
        free(next);
        free(on_path);
        return r;
}

static int by_label(const void *a, const void *b)
{
        const struct member *x = a, *y = b;

        if (x->label != y->label)
                return x->label < y->label ? -1 : 1;
        return x->at < y->at ? -1 : x->at > y->at;
}

static int grow(void **array, size_t *capacity, size_t need, size_t size)
{
        size_t n = *capacity ? *capacity : 64;
        void *bigger;

        if (need <= *capacity)
                return 0;
        while (n < need)
                n *= 2;
        bigger = realloc(*array, n * size);
        if (!bigger)
                return -ENOMEM;
        *array = bigger;
        *capacity = n;
        return 0;
}

static uint32_t label_at(const struct builder *b, uint32_t stack)
{
        return b->rq->label_of_location[b->p->stacks[stack].location];
}

static int push(struct builder *b, size_t *n, struct member m)
{
        int r = m.total ? grow((void **)&b->next_members, &b->next_capacity, *n + 1, sizeof(m)) : 0;

        if (!r && m.total)
                b->next_members[(*n)++] = m;
        return r;
}

/* The frames that follow those of node members m[0..n): callees, or callers with inverse. */
static int collect_next(struct builder *b, const struct member *m, size_t n, size_t *ret_n)
{
        size_t found = 0;
        int r = 0;

        for (size_t i = 0; !r && i < n; i++) {
                if (b->rq->inverse) {
                        uint32_t up = b->p->stacks[m[i].at].parent;

                        if (up)
                                r = push(b, &found,
                                         (struct member){ label_at(b, up), up, m[i].ticks,
                                                          m[i].total });
                        continue;
                }
                for (uint32_t c = b->first_child[m[i].at]; !r && c; c = b->next[c])
                        r = push(b, &found,
                                 (struct member){ label_at(b, c), c, b->rq->self[c],
                                                  b->totals[c] });
        }
        *ret_n = found;
        return r;
}

struct run {                            /* a child to be: members with one label */
        size_t start, n;
        uint64_t self, total;
};

static int by_total(const void *a, const void *b)
{
        const struct run *x = a, *y = b;

        if (x->total != y->total)
                return x->total > y->total ? -1 : 1;
        return x->start < y->start ? -1 : x->start > y->start;
}

static int add_node(struct builder *b, uint32_t parent, const struct run *run,
                    const struct member *m)
{
        struct ls_calltree *t = b->tree;
        size_t capacity = b->capacity, counts_capacity = b->capacity;

        if (t->n == UINT32_MAX - 1)
                return -EOVERFLOW;
        if (grow((void **)&t->nodes, &capacity, (size_t)t->n + 1, sizeof(*t->nodes)) ||
            grow((void **)&b->counts, &counts_capacity, (size_t)t->n + 1, sizeof(*b->counts)))
                return -ENOMEM;
        b->capacity = (uint32_t)capacity;
        t->nodes[t->n] = (struct ls_calltree_node){
                .parent = parent, .label = m->label, .stack = m->at,
                .depth = t->n ? t->nodes[parent].depth + 1 : 0,
                .self = run->self, .total = run->total,
        };
        b->counts[t->n] = (uint32_t)run->n;
        t->n++;
        return 0;
}

/* Keeps the members of a node for its own expansion. The list is a queue: what was expanded is
 * dropped now and then. */
static int queue_members(struct builder *b, const struct member *m, size_t n)
{
        int r;

        if (b->head > 4096 && b->head > b->n_members / 2) {
                memmove(b->members, b->members + b->head, (b->n_members - b->head) * sizeof(*m));
                b->n_members -= b->head;
                b->head = 0;
        }
        r = grow((void **)&b->members, &b->members_capacity, b->n_members + n, sizeof(*m));
        if (r)
                return r;
        memcpy(b->members + b->n_members, m, n * sizeof(*m));
        b->n_members += n;
        return 0;
}

/* Makes children of node out of next_members[0..n). */
static int add_children(struct builder *b, uint32_t node, size_t n)
{
        struct member *m = b->next_members;
        struct run *runs = malloc((n + 1) * sizeof(*runs));
        size_t n_runs = 0;
        int r = runs ? 0 : -ENOMEM;

        if (r)
                return r;
        if (n)
                qsort(m, n, sizeof(*m), by_label);
        for (size_t i = 0; i < n; i++) {
                if (i == 0 || m[i].label != m[i - 1].label)
                        runs[n_runs++] = (struct run){ i, 0, 0, 0 };
                runs[n_runs - 1].n++;
                runs[n_runs - 1].self += m[i].ticks;
                runs[n_runs - 1].total += m[i].total;
        }
        qsort(runs, n_runs, sizeof(*runs), by_total);
        b->tree->nodes[node].first_child = b->tree->n;
        b->tree->nodes[node].n_children = (uint32_t)n_runs;
        for (size_t i = 0; !r && i < n_runs; i++) {
                if (b->rq->inverse)     /* of a caller, none of the ticks is its own */
                        runs[i].self = node ? 0 : runs[i].total;
                if (b->rq->want_nodes_of_stacks)
                        for (size_t k = 0; k < runs[i].n; k++)
                                b->tree->node_of_stack[m[runs[i].start + k].at] = b->tree->n;
                r = add_node(b, node, &runs[i], &m[runs[i].start]);
                if (!r)
                        r = queue_members(b, m + runs[i].start, runs[i].n);
        }
        free(runs);
        return r;
}

/* Members of node 0: what the roots of the tree are made of. */
static int start(struct builder *b)
{
        size_t n = 0;
        int r = 0;

        if (!b->rq->inverse) {
                const struct member top = { 0, 0, 0, 0 };

                r = collect_next(b, &top, 1, &n);
        } else {
                for (uint32_t i = 1; !r && i < b->p->n_stacks; i++)
                        r = push(b, &n,
                                 (struct member){ label_at(b, i), i, b->rq->self[i],
                                                  b->rq->self[i] });
        }
        for (size_t i = 0; !r && i < n; i++)
                b->tree->nodes[0].total += b->next_members[i].total;
        return r ? r : add_children(b, 0, n);
}

static int build(struct builder *b)
{
        const struct run top = { 0, 0, 0, 0 };
        const struct member none = { 0, 0, 0, 0 };
        int r = add_node(b, 0, &top, &none);

        if (!r)
                r = start(b);
        for (uint32_t i = 1; !r && i < b->tree->n; i++) {
                size_t n = 0, mine = b->counts[i], at = b->head;

                if (b->tree->nodes[i].total >= b->rq->min)
                        r = collect_next(b, b->members + at, mine, &n);
                b->head += mine;
                if (!r && n)
                        r = add_children(b, i, n);
        }
        return r;
}

int ls_calltree_new(const struct ls_calltree_request *rq, struct ls_calltree **ret)
{
        struct builder b = { .rq = rq, .p = rq->profile };
        int r = -ENOMEM;

        b.tree = calloc(1, sizeof(*b.tree));
        if (!b.tree)
                goto out;
        if (rq->want_nodes_of_stacks) {
                b.tree->node_of_stack = calloc((size_t)b.p->n_stacks + 1, sizeof(uint32_t));
                if (!b.tree->node_of_stack)
                        goto out;
        }
        if (!rq->inverse) {
                b.totals = ls_stack_totals(b.p, rq->self);
                if (!b.totals)
                        goto out;
                r = link_children(b.p, b.totals, &b.first_child, &b.next);
                if (r)
                        goto out;
        }
        r = build(&b);
out:
        free(b.totals);
        free(b.first_child);
        free(b.next);
        free(b.members);
        free(b.counts);
        free(b.next_members);
        if (r) {
                ls_calltree_free(b.tree);
                return r;
        }
        *ret = b.tree;
        return 0;
}

void ls_calltree_free(struct ls_calltree *t)
{
        if (!t)
                return;
        free(t->nodes);
        free(t->node_of_stack);
        free(t);
}
