/* Rows of the flat and split views: ticks by group, on one level or two. Called by
 * report/view/flat.c. */
#ifndef LS_REPORT_MODEL_ROWS_H
#define LS_REPORT_MODEL_ROWS_H

#include "report/model/aggregate.h"
#include "report/model/options.h"

struct ls_row {
        uint32_t id;                    /* of a group, or of a sequence of groups (ls_rows_text) */
        uint64_t self, total;           /* ticks; total: on the first level only, and only of single
                                         * frames */
        size_t first_child, n_children; /* in children[] */
};

struct ls_rows {
        struct ls_row *rows, *children;
        size_t n_rows, n_children;
        int has_total;                  /* rows have totals of their own, not just self */
        const char *separator;          /* between first and second level: "<-", "->" or "--" */
        struct ls_grouping *grouping[2];/* NULL when there is no second level */
        /* private: sequences of frames, for --depth and --split */
        struct ls_sequence *sequences;  /* by id - n_groups of the frame grouping */
        uint32_t n_sequences, sequence_capacity;
        struct ls_sequence_entry *hash;
        const char *joint;              /* between the frames of a sequence: " < " or " > " */
};

unsigned ls_rows_dims(const struct ls_report_options *o);

int ls_rows_new(struct ls_profile *p, const struct ls_labels *labels, const struct ls_aggregate *a,
                const struct ls_report_options *o, struct ls_rows **ret);
void ls_rows_free(struct ls_rows *r);   /* takes NULL */

/* What a row is called, to be freed; level 0 or 1. NULL = no memory. */
char *ls_rows_text(const struct ls_rows *r, int level, uint32_t id);
/* The group of a row's first frame. */
uint32_t ls_rows_group(const struct ls_rows *r, int level, uint32_t id);

#endif
