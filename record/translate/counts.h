/* The counters of a process on their way into the trace: see counts.c. Called by translate.c and
 * rotate.c. */
#ifndef LS_RECORD_TRANSLATE_COUNTS_H
#define LS_RECORD_TRANSLATE_COUNTS_H

#include "record/translate/state.h"

/* A COUNT record. Returns 0, or -EINVAL when it makes no sense. */
int ls_counts_record(struct ls_translate *t, unsigned ring, const void *body, uint32_t len);
/* A HEAP record. Returns likewise. */
int ls_counts_heap(struct ls_translate *t, unsigned ring, const void *body, uint32_t len);
/* Takes what it holds back. */
void ls_counts_free(struct ls_translate *t);
/* After the rings: last values that did not come through them. last: the file or the recording
 * ends, all are written. */
void ls_counts_look(struct ls_translate *t, int last);
/* The trace goes on in another file, which begins with the values that hold. */
void ls_counts_restart(struct ls_translate *t);

#endif
