/* Facts and totals of a merge: see info.c. */
#ifndef LS_FORMATS_MERGE_INFO_H
#define LS_FORMATS_MERGE_INFO_H

#include "formats/merge/tables.h"

/* Writes them, those of all inputs together. */
void ls_merge_info(struct ls_merge *m, const struct ls_merge_input *inputs, unsigned n);

#endif
