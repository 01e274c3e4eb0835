/* Samples and their stacks on their way into the trace. Called by translate.c. */
#ifndef LS_RECORD_TRANSLATE_SAMPLE_H
#define LS_RECORD_TRANSLATE_SAMPLE_H

#include "record/translate/state.h"

/* Takes a SAMPLE record, as all takers in translate.c do. Returns 0 or -errno: it makes no
 * sense, or there is no memory. */
int ls_translate_sample(struct ls_translate *t, unsigned ring, const void *body, uint32_t len);

/* Writes the blocked time of the agent's ring that is not after time_ns. */
void ls_translate_wall_until(struct ls_translate *t, unsigned ring, uint64_t time_ns);

#endif
