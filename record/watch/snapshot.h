/* All objects of a process's VMs: its memory is copied while its threads stand still, then walked,
 * and written as luasample-heap(5) has it. What the memory says may be anything: each pointer leads
 * into the copy or nowhere, and each object is taken once. In the reader (now.h), which
 * record/worker/outside.c runs. */
#ifndef LS_RECORD_WATCH_SNAPSHOT_H
#define LS_RECORD_WATCH_SNAPSHOT_H

#include "record/watch/now.h"

/* Before the process's rights are taken: reserves addresses for the copy, which takes no memory
 * until it is written to. Returns 0 or -errno. */
int ls_snapshot_reserve(void);
/* Before the stop: how much there is to be copied. Sets n->heap_bytes or n->error (-E2BIG). */
void ls_snapshot_prepare(struct ls_now *n);
/* While the threads stand still. Sets n->heap_bytes to what was copied; n->error: -EAGAIN, a VM was
 * changed meanwhile, by a thread that ran on; one that is stopped in the middle of a change is not
 * told from others. */
void ls_snapshot_copy(struct ls_now *n);
/* Afterwards: writes the objects into fd. Returns 0 or -errno. */
int ls_snapshot_write(const struct ls_now *n, int fd);

#endif
