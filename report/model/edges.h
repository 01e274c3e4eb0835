/* Callers and callees by the ticks that passed through the call: what a row opens to. Made for the
 * terminal browser. */
#ifndef LS_REPORT_MODEL_EDGES_H
#define LS_REPORT_MODEL_EDGES_H

#include <stddef.h>

#include "report/model/aggregate.h"
#include "report/model/keys.h"

struct ls_edge { uint32_t group; uint64_t ticks; };

struct ls_calls {                       /* the stacks, made ready for any number of questions */
        const struct ls_profile *profile;
        const struct ls_grouping *grouping;     /* of frames */
        uint64_t *totals;               /* [n_stacks] ticks of a stack and all that it called */
        uint32_t *first_child, *next;   /* [n_stacks] */
        uint64_t *ticks;                /* [n_groups] scratch */
        uint32_t *on_path;              /* [n_groups] scratch */
};

/* grouping must live as long. Returns 0 or -errno. */
int ls_calls_init(struct ls_calls *c, const struct ls_profile *p, const struct ls_grouping *g,
                  const struct ls_aggregate *a);
void ls_calls_done(struct ls_calls *c);

/* What called chain[0], or with callees what it called: chain[1] is its caller (callee), and so on;
 * asked is who stands at the end. Ticks count once for each group, however often it is on the
 * stack. Most ticks first; to be freed. */
int ls_calls_edges(struct ls_calls *c, int callees, const uint32_t *chain, size_t n_chain,
                   struct ls_edge **ret, size_t *ret_n);

#endif
