/* Keys of the process, thread, VM, coroutine and trace that a sample is of: rows of the table in
 * keys.c. */
#ifndef LS_REPORT_MODEL_KEYS_THREAD_H
#define LS_REPORT_MODEL_KEYS_THREAD_H

#include "report/model/grouping.h"

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
