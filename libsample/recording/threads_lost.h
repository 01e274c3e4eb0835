/* CPU time of a thread that has had no tick. Called by threads.c. Normal context. */
#ifndef LS_LIBSAMPLE_RECORDING_THREADS_LOST_H
#define LS_LIBSAMPLE_RECORDING_THREADS_LOST_H

#include "libsample/thread.h"

/* Ticks of which no signal has come are counted by their reason. own_blocks: the calling thread
 * blocked ticks before it took the lock. */
void ls_thread_lose_rest(const struct ls_thread *t, uint64_t ticks, int own_blocks);

#endif
