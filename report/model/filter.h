/* Which samples the user wants to see. Made once from the options; asked for each row by
 * report/model/aggregate.c. */
#ifndef LS_REPORT_MODEL_FILTER_H
#define LS_REPORT_MODEL_FILTER_H

#include "formats/label.h"
#include "formats/profile.h"
#include "report/model/options.h"

struct ls_span { uint64_t from, to; uint32_t thread; };

struct ls_filter {
        uint8_t *stacks;                /* [n_stacks] 1 = wanted; NULL = all. Others likewise. */
        uint8_t *zones;
        uint8_t *labels;
        uint8_t *processes;             /* of --process: which it names; threads has theirs */
        uint8_t *threads;
        uint8_t *vms;
        uint8_t *types;                 /* [256] of allocated blocks */
        unsigned vmstates;              /* bits; 0 = all */
        int need_region_flag;           /* only rows with LS_SAMPLE_IN_REGION */
        uint64_t from_ns, to_ns;        /* of CLOCK_MONOTONIC, when has_time */
        int has_time;
        uint64_t *at_ns, *but_ns;       /* by VM: only what was live at one time and not at the
                                         * other; NULL = all */
        struct ls_span *spans;          /* of --region: by thread and start, disjoint */
        size_t n_spans;
        int by_region;                  /* only rows inside spans */
        unsigned columns;               /* LS_COL_* that it needs */
        int active;                     /* the user asked for some filter */
        struct ls_event_choice choice;  /* which events are shown: at least one */
        uint8_t events[256];            /* rows of these count for the first of them */
};

/* Returns 0 or -errno; an error that is the user's was said (-EINVAL). */
int ls_filter_init(struct ls_filter *f, struct ls_profile *p, const struct ls_labels *labels,
                   const struct ls_filter_options *want);
void ls_filter_done(struct ls_filter *f);

/* When the recording began and how long it was, which --time counts from. A trace that still grows
 * does not say: then the samples do. Without need_end *ret_elapsed may be 0. */
int ls_filter_times(struct ls_profile *p, int need_end, uint64_t *ret_start, uint64_t *ret_elapsed);

/* Whether row i of a block passes. */
int ls_filter_wants(const struct ls_filter *f, const struct ls_sample_block *b, uint32_t i);

/* Whether any row can fail to pass. */
int ls_filter_any(const struct ls_filter *f);

/* Whether a thread was in a region of --region at that time. */
int ls_filter_in_spans(const struct ls_filter *f, uint32_t thread, uint64_t time_ns);

#endif
