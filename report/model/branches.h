/* The call tree of a report. Made for the tree view, report/view/tree.c, and the terminal
 * browser. */
#ifndef LS_REPORT_MODEL_BRANCHES_H
#define LS_REPORT_MODEL_BRANCHES_H

#include "formats/export/calltree.h"
#include "report/model/report.h"

struct ls_branches {
        struct ls_grouping *grouping;   /* gives names to the labels of the tree */
        struct ls_calltree *tree;
};

/* key: of frames. least: nodes with fewer ticks get no children. Returns 0 or -errno; to be done
 * with in any case. */
int ls_branches_init(struct ls_branches *b, const struct ls_report *r, const struct ls_key *key,
                     int inverse, uint64_t least);
void ls_branches_done(struct ls_branches *b);

/* Whether a node is shown in its parent's line: a function that does nothing but call itself, level
 * after level, is one line, not thousands. */
int ls_branch_is_folded(const struct ls_calltree *t, uint32_t at);
/* The last of the nodes that are shown in the line of at, and how many they are: it has the self
 * ticks, and its children are those of the line. */
uint32_t ls_branch_last(const struct ls_calltree *t, uint32_t at, unsigned *ret_folded);
/* Levels shown above each node, folded ones not counted. To be freed; NULL = no memory. */
uint32_t *ls_branch_levels(const struct ls_calltree *t);

#endif
