/* An export in the making: what the exporters' callbacks need. Shared by report/export*.c. */
#ifndef LS_REPORT_EXPORT_JOB_H
#define LS_REPORT_EXPORT_JOB_H

#include "formats/export/export.h"
#include "report/model/report.h"

/* Keys of the sample as a whole become frames: before the root when they come first in --by, else
 * after the leaf. */
struct ls_export_tags {
        const char **texts;             /* from 1 */
        size_t n;
        uint32_t base[2];               /* tag of group 0 of each level; 0 = this level is of
                                         * frames */
};

struct ls_export_job {
        const struct ls_report *r;
        struct ls_grouping *by[2];      /* of --by */
        struct ls_grouping *functions;  /* when --by has no frames */
        struct ls_grouping *frames;     /* one of those */
        struct ls_grouping *dims[LS_DIMS];       /* of the exporter's dims, by bit */
        struct ls_export_tags tags;
        struct ls_export_cell *cells[LS_EXPORT_EVENTS_MOST];    /* of each event */
        size_t n_cells[LS_EXPORT_EVENTS_MOST];
};

#endif
