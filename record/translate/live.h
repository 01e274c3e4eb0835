/* Sampled blocks that are not freed yet: rows of what they hold, written at the end of the
 * recording. Called by sample.c and translate.c. */
#ifndef LS_RECORD_TRANSLATE_LIVE_H
#define LS_RECORD_TRANSLATE_LIVE_H

#include "record/translate/state.h"

/* A block by its number, with the row of its allocation: row->weight is of bytes. The records of
 * different threads may come in any order: one that is known to be freed is forgotten. */
void ls_live_allocated(struct ls_translate *t, uint32_t id, uint32_t vm_id,
                       const struct ls_sample_row *row, uint64_t objects);
/* A FREE record. Returns 0 or -EINVAL. */
int ls_live_record(struct ls_translate *t, unsigned ring, const void *body, uint32_t len);
/* Writes the rows of what is left. */
void ls_live_finish(struct ls_translate *t);
void ls_live_done(struct ls_translate *t);

#endif
