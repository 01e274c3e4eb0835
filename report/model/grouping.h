/* Samples grouped by a key: what a key is, and how things of equal keys get a number. */
#ifndef LS_REPORT_MODEL_GROUPING_H
#define LS_REPORT_MODEL_GROUPING_H

#include <stdint.h>

#include "formats/dims.h"
#include "formats/label.h"
#include "formats/profile.h"

struct ls_cell {                        /* ticks that agree in the stack and in the dims asked
                                         * for */
        uint64_t ticks;
        uint32_t stack, trace;
#define LS_DIM(NAME, name, bits, KIND, key) LS_DIM_TYPE_##bits name;
#include "formats/dims.def"
#undef LS_DIM
};

struct ls_grouping;                     /* a key, made ready for one profile */

struct ls_key {
        const char *name;               /* --by NAME */
        const char *title;              /* head of its column */
        const char *field;              /* name in JSON */
        const char *help;
        char jp;                        /* letter of -jp, 0 = none */
        unsigned dims;
        int is_frame;                   /* 1 = of a frame, 0 = of the sample as a whole */
        int (*prepare)(struct ls_grouping *g);
        uint32_t (*group)(const struct ls_grouping *g, const struct ls_cell *c); /* not frames */
        const char *(*text)(const struct ls_grouping *g, uint32_t group);
        uint32_t (*function)(const struct ls_grouping *g, uint32_t group);      /* 0 = none */
        uint32_t (*line)(const struct ls_grouping *g, uint32_t group);
        uint32_t (*source)(const struct ls_grouping *g, uint32_t group);
        uint32_t (*number)(const struct ls_grouping *g,
                           uint32_t group); /* what JSON has in place of the text */
        const char *argument;           /* of label:KEY the KEY; else NULL */
        const char *old_name;           /* --by takes it too, and shows it nowhere; NULL = none */
};

struct ls_grouping {
        const struct ls_key *key;
        const struct ls_profile *profile;
        const struct ls_labels *labels;
        uint32_t *group_of;             /* frames: by location; others by id of zone, thread, ... */
        uint32_t n_groups;              /* groups are 0 .. n_groups - 1 */
        uint32_t *paying;               /* by stack: that whose leaf its ticks are charged to; NULL
                                         * = its own */
        uint32_t *sample_of;            /* one location (frames), zone, thread, ... of each group */
        char **texts;                   /* [n_groups], made when first asked for, or by prepare() */
};

struct ls_keyed {                       /* a thing with what it is grouped by */
        uint64_t a, b;
        uint32_t id;
};

/* Numbers the distinct (a, b) of k[0..n): group_of[id] and sample_of[group]. Sorts k. Returns 0
 * or -ENOMEM. */
int ls_number_groups(struct ls_grouping *g, struct ls_keyed *k, uint32_t n);

#endif
