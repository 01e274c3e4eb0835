/* The call tree of a report, and which of its nodes share a line. Called by report/view/tree.c and
 * the terminal browser. */
#include "report/model/branches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ls_branches_init(struct ls_branches *b, const struct ls_report *r, const struct ls_key *key,
                     int inverse, uint64_t least)
{
        int error;

        memset(b, 0, sizeof(*b));
        error = ls_grouping_new(key, r->profile, r->labels, &b->grouping);
        if (error)
                return error;
        return ls_calltree_new(
                &(struct ls_calltree_request){
                        .profile = r->profile,
                        .self = r->aggregate->self,
                        .label_of_location = b->grouping->group_of,
                        .min = least,
                        .inverse = inverse,
                },
                &b->tree);
}

void ls_branches_done(struct ls_branches *b)
{
        ls_calltree_free(b->tree);
        ls_grouping_free(b->grouping);
        memset(b, 0, sizeof(*b));
}

int ls_branch_is_folded(const struct ls_calltree *t, uint32_t at)
{
        const struct ls_calltree_node *node = &t->nodes[at], *parent = &t->nodes[node->parent];

        return node->parent && parent->label == node->label && parent->n_children == 1 &&
               !parent->self && parent->total == node->total;
}

uint32_t ls_branch_last(const struct ls_calltree *t, uint32_t at, unsigned *ret_folded)
{
        unsigned n = 1;

        for (; t->nodes[at].n_children == 1 && ls_branch_is_folded(t, t->nodes[at].first_child);
             n++)
                at = t->nodes[at].first_child;
        *ret_folded = n;
        return at;
}

uint32_t *ls_branch_levels(const struct ls_calltree *t)
{
        uint32_t *levels = calloc((size_t)t->n + 1, sizeof(*levels));

        for (uint32_t i = 1; levels && i < t->n; i++)
                if (t->nodes[i].parent)
                        levels[i] = levels[t->nodes[i].parent] + !ls_branch_is_folded(t, i);
        return levels;
}
