/* Attaching to a process that knows nothing of luasample, and leaving it. Called by attached.c. */
#ifndef LS_RECORD_ATTACH_ATTACH_H
#define LS_RECORD_ATTACH_ATTACH_H

#include "record/attach/subject.h"
#include "record/process/memory.h"

/* Brings the agent in; makes and fills the memory, and waits until the agent looked around.
 * Prints why when it fails. Returns 0 or -errno. prepared: called when the memory is there and
 * the agent does not have it yet. */
int ls_attach_begin(struct ls_subject *t, const char *agent_path, struct ls_memory *m,
                    const struct ls_record_options *o, int (*prepared)(void *ctx), void *ctx);
/* Asks the agent to go, should it come up yet. No tick may be sent any more: it takes its
 * handler away. */
void ls_attach_give_up(struct ls_memory *m);
/* Asks the agent to go. work is called now and then until it has; returns 0, or -ETIMEDOUT. */
int ls_attach_end(struct ls_subject *t, struct ls_memory *m, void (*work)(void *ctx), void *ctx);
/* 1 while the agent's thread is there: not after the process has ended or has run another
 * program. */
int ls_attach_is_there(const struct ls_subject *t);

#endif
