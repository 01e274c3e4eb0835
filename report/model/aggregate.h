/* One pass over the samples into what a view needs. Called by report/report.c. */
#ifndef LS_REPORT_MODEL_AGGREGATE_H
#define LS_REPORT_MODEL_AGGREGATE_H

#include <stddef.h>

#include "report/model/filter.h"
#include "report/model/keys.h"

struct ls_aggregate {
        uint64_t *self;                 /* [n_stacks] ticks that ended in each stack, filtered */
        struct ls_cell *cells;          /* the same, told apart by the dims asked for; without ticks
                                         * = 0 */
        size_t n_cells;
        uint8_t *could;                 /* [n_stacks] of events that are counted: 1 = it has rows,
                                         * without weight too. Else NULL */
        uint64_t ticks;                 /* after filters */
        uint64_t gc_ticks;              /* of these, while the VM's state was that of the
                                         * collector */
        uint64_t samples;
        double effective;               /* samples of equal weight that would be as certain: (sum
                                         * w)^2 / sum w^2 */
        uint64_t all_ticks;             /* before filters */
        uint64_t all_samples;
};

/* dims: LS_DIM_*. Returns 0 or -errno. */
int ls_aggregate_new(struct ls_profile *p, const struct ls_filter *f, unsigned dims,
                     struct ls_aggregate **ret);
void ls_aggregate_free(struct ls_aggregate *a); /* takes NULL */

/* Half the width of the 95 % interval (Wilson's score) of a share that was measured with n
 * samples. */
double ls_margin(double share, double n);

#endif
