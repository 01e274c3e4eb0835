/* Whether the process is attached to, and what a fork means then. Called by start/attach.c and
 * interpose/process.c. */
#ifndef LS_LIBSAMPLE_ATTACH_ATTACHED_H
#define LS_LIBSAMPLE_ATTACH_ATTACHED_H

#include <stdatomic.h>

#include "formats/wire/attach.h"

extern struct ls_attach_status luasample_attach_status;
extern atomic_int ls_attach_taken;      /* 1 = an attachment has begun and not ended */

/* What the agent is called when it came by way of the recorder's memory file, and not by
 * LD_PRELOAD. */
int ls_attach_is_way_of(const char *library);
/* Before fork: the recorder waits a moment for the child to run, should this process end first. */
void ls_attach_fork_begins(void);
/* In the child after fork: it is not recorded, and can be attached to. */
void ls_attach_after_fork_child(void);
/* The same, when the process is attached to and what it had of its parent is forgotten: the
 * recorder is told, which attaches to the child in its turn. */
void ls_attach_tell_of_child(void);
/* 1 when the process was attached to, and is no longer, or not yet again. */
int ls_attach_has_left(void);

#endif
