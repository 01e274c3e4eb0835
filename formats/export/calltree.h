/* A call tree: stacks merged by what their frames are shown as. Made for the tree view of report/
 * and for the collapsed exporter. */
#ifndef LS_FORMATS_EXPORT_CALLTREE_H
#define LS_FORMATS_EXPORT_CALLTREE_H

#include "formats/profile.h"

struct ls_calltree_node {
        uint32_t parent;                /* < own index; node 0 is above all roots */
        uint32_t label;                 /* what its frame is shown as, the caller's number */
        uint32_t first_child;           /* children are neighbours, sorted by total, largest
                                         * first */
        uint32_t n_children;
        uint32_t stack;                 /* one of the stacks that end here */
        uint32_t depth;
        uint64_t self, total;           /* ticks */
};

struct ls_calltree {
        struct ls_calltree_node *nodes;
        uint32_t n;
        uint32_t *node_of_stack;        /* [n_stacks], made when asked for; 0 = not in the tree */
};

struct ls_calltree_request {
        const struct ls_profile *profile;
        const uint64_t *self;           /* [n_stacks] ticks that ended in a stack */
        const uint32_t *label_of_location;      /* [n_locations] */
        uint64_t min;                   /* nodes with fewer ticks get no children */
        int inverse;                    /* roots are the functions that ran, their children called
                                         * them */
        int want_nodes_of_stacks;       /* not with inverse or min */
};

/* Returns 0 or -errno. */
int ls_calltree_new(const struct ls_calltree_request *rq, struct ls_calltree **ret);
void ls_calltree_free(struct ls_calltree *t);   /* takes NULL */

/* Ticks of every stack and all that it called: self of its whole subtree. Array of n_stacks, to be
 * freed. */
uint64_t *ls_stack_totals(const struct ls_profile *p, const uint64_t *self);

/* Ticks during which each label was on the stack, however often: ret_total[n_labels] is added to.
 * Linear in the number of stacks, whatever their depth. totals: of ls_stack_totals. Returns 0 or
 * -errno. */
int ls_label_totals(const struct ls_profile *p, const uint64_t *totals,
                    const uint32_t *label_of_location, uint32_t n_labels, uint64_t *ret_total);

#endif
