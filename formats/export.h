/* Exporters: a profile, filtered, in the format of another tool. One file and one row of the table for each. Called by
 * report/export.c. */
#ifndef LS_FORMATS_EXPORT_H
#define LS_FORMATS_EXPORT_H

#include <stdio.h>

#include "formats/label.h"
#include "formats/profile.h"

struct ls_export_cell {                 /* ticks of one stack, after all filters */
        uint64_t ticks;
        uint32_t stack;
        uint32_t prefix, suffix;        /* tags: a frame above the roots, a frame below the leaf; 0 = none */
        uint8_t noline;                 /* the leaf's line is not known */
};

struct ls_export {
        const struct ls_profile *profile;
        const struct ls_labels *labels;
        const struct ls_export_cell *cells;
        size_t n_cells;
        const char *const *tags;        /* texts of prefix and suffix, from 1 */
        const uint32_t *frame_of_location;      /* what a frame is shown as: [n_locations] -> number */
        const char *(*frame_text)(void *ctx, uint32_t frame);
        void *ctx;
        uint32_t n_frames;
        uint64_t interval_ns;
};

struct ls_exporter {
        const char *name;               /* --format NAME */
        const char *suffix;             /* usual end of its file names */
        const char *help;
        int (*write)(FILE *out, const struct ls_export *in);    /* 0 or -errno; the caller checks out */
};

extern const struct ls_exporter ls_export_collapsed;
extern const struct ls_exporter ls_export_callgrind;

/* All exporters, ended by NULL. */
extern const struct ls_exporter *const ls_exporters[];

#endif
