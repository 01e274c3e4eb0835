/* What samples can be grouped by: function, line, VM state, ... One table; views know no kinds of their own. */
#ifndef LS_REPORT_MODEL_KEYS_H
#define LS_REPORT_MODEL_KEYS_H

#include <stdint.h>

#include "formats/dims.h"
#include "formats/label.h"
#include "formats/profile.h"

struct ls_cell {                        /* ticks that agree in the stack and in the dims asked for */
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
        uint32_t (*group)(const struct ls_grouping *g, const struct ls_cell *c);       /* not frames */
        const char *(*text)(const struct ls_grouping *g, uint32_t group);
        uint32_t (*function)(const struct ls_grouping *g, uint32_t group);      /* 0 = none */
        uint32_t (*line)(const struct ls_grouping *g, uint32_t group);
        uint32_t (*source)(const struct ls_grouping *g, uint32_t group);
        uint32_t (*number)(const struct ls_grouping *g, uint32_t group);        /* what JSON has in place of the text */
        const char *argument;           /* of label:KEY the KEY; else NULL */
};

struct ls_grouping {
        const struct ls_key *key;
        const struct ls_profile *profile;
        const struct ls_labels *labels;
        uint32_t *group_of;             /* frames: by location; others by id of zone, thread, ... */
        uint32_t n_groups;              /* groups are 0 .. n_groups - 1 */
        uint32_t *sample_of;            /* one location (frames), zone, thread, ... of each group */
        char **texts;                   /* [n_groups], made when first asked for, or by prepare() */
};

extern const struct ls_key ls_keys[];   /* ended by name NULL */
/* NULL = there is none. */
const struct ls_key *ls_key_find(const char *name, uint32_t len);

/* The value of a sample's label of this key, NULL = it has none. */
const struct ls_str *ls_label_value(const struct ls_profile *p, uint32_t label, const char *key, size_t len);

/* The keys of the labels of samples, those with the most ticks first. ticks: [n_sample_labels] of the samples that have
 * each, NULL = one each. *ret_keys is to be freed. Returns 0 or -errno. */
struct ls_label_key { uint64_t ticks; uint32_t label; };        /* one of the labels of this key */
int ls_label_keys(const struct ls_profile *p, const uint64_t *ticks, struct ls_label_key **ret_keys, uint32_t *ret_n);
/* The key label:KEY of a label; NULL = it has no name that an option could have, or no memory. */
const struct ls_key *ls_label_key(const struct ls_profile *p, uint32_t label);

int ls_grouping_new(const struct ls_key *key, const struct ls_profile *p, const struct ls_labels *labels,
                    struct ls_grouping **ret);
void ls_grouping_free(struct ls_grouping *g);   /* takes NULL */

/* What a group is called; never NULL. */
const char *ls_group_text(const struct ls_grouping *g, uint32_t group);

/* The group of the leaf of a cell, or of the cell itself. */
uint32_t ls_group_of_cell(const struct ls_grouping *g, const struct ls_cell *c);

/* The path of a zone, outermost first: "AI;A*". To be freed; NULL = no memory. */
char *ls_zone_path(const struct ls_profile *p, uint32_t zone);

#endif
