/* The agent in a process that runs already. luasample_attach is its entry: record/attach/stub.c calls it in a thread that was
 * made for it, which stays while the recording goes on, and vanishes with it. See attach.c. */
#ifndef LS_LIBSAMPLE_ATTACH_ATTACH_H
#define LS_LIBSAMPLE_ATTACH_ATTACH_H

#include "formats/wire/attach.h"

extern struct ls_attach_status luasample_attach_status;

/* What the agent is called when it came by way of the recorder's memory file, and not by LD_PRELOAD. */
int ls_attach_is_way_of(const char *library);
/* Before fork: the recorder waits a moment for the child to run, should this process end first. */
void ls_attach_fork_begins(void);
/* In the child after fork: it is not recorded, and can be attached to. */
void ls_attach_after_fork_child(void);
/* The same, when the process is attached to and what it had of its parent is forgotten: the recorder is told, which attaches to
 * the child in its turn. */
void ls_attach_tell_of_child(void);
/* 1 when the process was attached to, and is no longer, or not yet again. */
int ls_attach_has_left(void);

#endif
