/* Random distances between samples: bytes to the next one of a Poisson process. Called by alloc.c,
 * and by its unit test. Uses no library: the agent has libc's alone, without libm. */
#ifndef LS_LIBSAMPLE_ALLOC_DRAW_H
#define LS_LIBSAMPLE_ALLOC_DRAW_H

#include <stdint.h>

struct ls_draw { uint64_t state, mean; };

/* mean: bytes, at least 1. The same seed gives the same distances. */
void ls_draw_begin(struct ls_draw *d, uint64_t mean, uint64_t seed);
/* Exponentially distributed, at least 0. */
int64_t ls_draw_bytes(struct ls_draw *d);

#endif
