/* The keys label and label:KEY: see keys_label.c. */
#ifndef LS_REPORT_MODEL_KEYS_LABEL_H
#define LS_REPORT_MODEL_KEYS_LABEL_H

#include "report/model/grouping.h"

/* The value of a sample's label of this key, NULL = it has none. */
const struct ls_str *ls_label_value(const struct ls_profile *p, uint32_t label, const char *key,
                                    size_t len);

/* The keys of the labels of samples, those with the most ticks first. ticks: [n_sample_labels] of
 * the samples that have each, NULL = one each. *ret_keys is to be freed. Returns 0 or -errno. */
struct ls_label_key { uint64_t ticks; uint32_t label; };        /* one of the labels of this key */
int ls_label_keys(const struct ls_profile *p, const uint64_t *ticks, struct ls_label_key **ret_keys,
                  uint32_t *ret_n);

/* The key label:KEY: label's row of the table with that KEY. NULL = no memory, or too many of
 * them. */
const struct ls_key *ls_key_of_label(const struct ls_key *label, const char *name, uint32_t len);

int ls_prepare_label(struct ls_grouping *g);
uint32_t ls_group_label(const struct ls_grouping *g, const struct ls_cell *c);
const char *ls_text_label(const struct ls_grouping *g, uint32_t group);

#endif
