/* Samples that differ in their time only become one. Called by merge.c. */
#ifndef LS_FORMATS_MERGE_FOLD_H
#define LS_FORMATS_MERGE_FOLD_H

#include "formats/trace/writer.h"

struct ls_fold;

/* bucket_ns: of one such time they become one. NULL = no memory. */
struct ls_fold *ls_fold_new(uint64_t bucket_ns);
/* Takes a row, by the writer's ids; those of the time before are written. Returns 0 or -ENOMEM. */
int ls_fold_sample(struct ls_fold *f, struct ls_trace_writer *w, const struct ls_sample_row *row);
/* Writes what waits. */
void ls_fold_flush(struct ls_fold *f, struct ls_trace_writer *w);
void ls_fold_free(struct ls_fold *f);

#endif
