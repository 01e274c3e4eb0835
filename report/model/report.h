/* What a report is made of. */
#ifndef LS_REPORT_MODEL_REPORT_H
#define LS_REPORT_MODEL_REPORT_H

#include <stdio.h>

#include "report/model/aggregate.h"
#include "report/model/options.h"

struct ls_report {                      /* what all views get */
        const struct ls_report_options *o;
        struct ls_profile *profile;
        const struct ls_labels *labels;
        const struct ls_filter *filter;
        const struct ls_aggregate *aggregate;
        const struct ls_aggregate *events[LS_EVENTS_SHOWN];     /* of each event of --event; the
                                                                 * first is aggregate */
        FILE *out;
        int color;
        unsigned width;                 /* of the terminal; 0 = no limit */
};

#endif
