/* The recorder's memory, mapped into this process, and the word that tells this process from its children. Called by
 * preload.c and attach.c. */
#ifndef LS_SHARED_H
#define LS_SHARED_H

#include <stddef.h>

#include "formats/wire/shm.h"

/* Maps the memory in the file fd, when a recorder made it for this process and it can neither shrink nor grow. at: an old
 * mapping of at_size bytes that it may replace, NULL = anywhere. NULL when it is not valid. */
struct ls_shm *ls_shared_map(int fd, uint64_t generation, void *at, size_t at_size);
/* Replaces the mapping by zeros, in one step: what still looks at it finds that it is not recorded. */
void ls_shared_leave(struct ls_shm *shm, size_t size);

/* The word, on a page of its own that the kernel zeroes in forked children, raw clone included. NULL = it cannot be had. */
volatile uint64_t *ls_shared_generation(uint64_t generation);
void ls_shared_generation_free(volatile uint64_t *word);

#endif
