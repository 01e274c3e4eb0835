/* What the files of the key table share: keys.c (frames, VM states, zones) and keys_thread.c (threads, VMs, coroutines,
 * traces), keys_label.c. */
#ifndef LS_REPORT_MODEL_KEYS_PRIVATE_H
#define LS_REPORT_MODEL_KEYS_PRIVATE_H

#include "report/model/keys.h"

struct ls_keyed {                       /* a thing with what it is grouped by */
        uint64_t a, b;
        uint32_t id;
};

/* Numbers the distinct (a, b) of k[0..n): group_of[id] and sample_of[group]. Sorts k. Returns 0 or -ENOMEM. */
int ls_number_groups(struct ls_grouping *g, struct ls_keyed *k, uint32_t n);

/* The key label:KEY: label's row of the table with that KEY. NULL = no memory, or too many of them. */
const struct ls_key *ls_key_of_label(const struct ls_key *label, const char *name, uint32_t len);

int ls_prepare_label(struct ls_grouping *g);
uint32_t ls_group_label(const struct ls_grouping *g, const struct ls_cell *c);
const char *ls_text_label(const struct ls_grouping *g, uint32_t group);
int ls_prepare_process(struct ls_grouping *g);
int ls_prepare_thread(struct ls_grouping *g);
int ls_prepare_vm(struct ls_grouping *g);
int ls_prepare_coroutine(struct ls_grouping *g);
int ls_prepare_trace(struct ls_grouping *g);
uint32_t ls_group_process(const struct ls_grouping *g, const struct ls_cell *c);
uint32_t ls_group_thread(const struct ls_grouping *g, const struct ls_cell *c);
uint32_t ls_group_vm(const struct ls_grouping *g, const struct ls_cell *c);
uint32_t ls_group_coroutine(const struct ls_grouping *g, const struct ls_cell *c);
uint32_t ls_group_trace(const struct ls_grouping *g, const struct ls_cell *c);
const char *ls_text_process(const struct ls_grouping *g, uint32_t group);
const char *ls_text_thread(const struct ls_grouping *g, uint32_t group);
const char *ls_text_vm(const struct ls_grouping *g, uint32_t group);
const char *ls_text_coroutine(const struct ls_grouping *g, uint32_t group);
const char *ls_text_trace(const struct ls_grouping *g, uint32_t group);
uint32_t ls_number_process(const struct ls_grouping *g, uint32_t group);
uint32_t ls_number_thread(const struct ls_grouping *g, uint32_t group);
uint32_t ls_number_vm(const struct ls_grouping *g, uint32_t group);
uint32_t ls_number_trace(const struct ls_grouping *g, uint32_t group);

#endif
