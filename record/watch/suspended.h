/* The time that coroutines spend in yield, and ready to run where the host marks that: read from
 * outside, in looks at all coroutines of a process. Called by watch.c. */
#ifndef LS_RECORD_WATCH_SUSPENDED_H
#define LS_RECORD_WATCH_SUSPENDED_H

#include <sys/types.h>

#include "formats/wire/shm.h"

/* The image that the process pid runs now, which ls_look_image has read. ring: for what is found,
 * no one else's. */
void ls_suspended_begin(struct ls_shm *shm, pid_t pid, struct ls_ring *ring, uint64_t interval_ns);
/* Sends what is known and not sent. */
void ls_suspended_end(void);

/* Looks, when that is due. Returns when the next look is due (CLOCK_MONOTONIC). */
uint64_t ls_suspended_look(uint64_t now_ns);

#endif
