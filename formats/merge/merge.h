/* Joins several recordings in one trace. Called by report/merge.c. */
#ifndef LS_FORMATS_MERGE_MERGE_H
#define LS_FORMATS_MERGE_MERGE_H

#include "formats/merge/input.h"

/* Decides what ticks and times of the merged trace are. The interval is the shortest; all others
 * must be multiples of it: else -EDOM, and *ret_a and *ret_b are the inputs that do not go
 * together. Times of one boot of one machine are of one clock and stay as they are; recordings of
 * another are placed behind all those before, a second apart. Returns 0 or -errno. */
int ls_merge_plan(struct ls_merge_input *inputs, unsigned n, uint64_t *ret_interval_ns,
                  unsigned *ret_a, unsigned *ret_b);

/* Writes the trace to fd, which the caller closes. Returns 0 or -errno. */
int ls_merge_write(int fd, const struct ls_merge_input *inputs, unsigned n, uint64_t interval_ns);

#endif
