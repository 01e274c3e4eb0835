/* Turns records from the rings into the trace: the agent's ids into the writer's, stacks into
 * prefix nodes. Every record is checked first; one that makes no sense is counted and left out.
 * Called by drain.c for the session. */
#ifndef LS_RECORD_TRANSLATE_TRANSLATE_H
#define LS_RECORD_TRANSLATE_TRANSLATE_H

#include "record/translate/state.h"

int ls_translate_init(struct ls_translate *t, const struct ls_translate_config *cfg);
void ls_translate_done(struct ls_translate *t);
/* The program has other rights now: another worker reads for it. */
void ls_translate_worker(struct ls_translate *t, struct ls_worker *worker);

/* The callbacks of struct ls_drain_sink; ctx is the struct ls_translate. */
void ls_translate_record(void *ctx, unsigned ring, unsigned kind, const void *body, uint32_t len);
void ls_translate_gap(void *ctx, unsigned ring);
void ls_translate_closed(void *ctx, unsigned ring);

/* After each run of the drain: blocked time that waits for earlier rows waits no longer. */
void ls_translate_settle(struct ls_translate *t);

/* Last names. When the recording ends. */
void ls_translate_finish(struct ls_translate *t);

#endif
