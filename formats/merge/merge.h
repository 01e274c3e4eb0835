/* Joins several recordings in one trace. Called by report/merge.c, report/diff/html.c, and by
 * store/ for chunks. */
#ifndef LS_FORMATS_MERGE_MERGE_H
#define LS_FORMATS_MERGE_MERGE_H

#include "formats/merge/input.h"

/* Decides what ticks and times of the merged trace are. The interval is the shortest; all others
 * must be multiples of it: else -EDOM, and *ret_a and *ret_b are the inputs that do not go
 * together. Times of one boot of one machine are of one clock and stay as they are; recordings of
 * another are placed behind all those before, a second apart. Returns 0 or -errno. */
int ls_merge_plan(struct ls_merge_input *inputs, unsigned n, uint64_t *ret_interval_ns,
                  unsigned *ret_a, unsigned *ret_b);

/* Whether two inputs that are planned are of one boot, in which the wall clock was not set by
 * seconds: one time of the day fits both. */
int ls_merge_one_clock(const struct ls_merge_input *a, const struct ls_merge_input *b);

/* After the plan: times of one clock are moved so that the clocks of the first input say of each
 * when it was by the clocks of its own. The wall clock is slewed all the time: what belongs to a
 * time of the day hangs on no other input then. */
void ls_merge_by_wall(struct ls_merge_input *inputs, unsigned n);

/* Pieces of one service: a process that is in several is one, by number and name, and so are its
 * threads, VMs and traces of the JIT compiler, each of which is written once. */
struct ls_merge_pieces {
        uint64_t bucket_ns;             /* samples that differ in their time only become one when
                                         * they are of one such time: that of its last. 0 = they
                                         * stay as they are */
        int brief;                      /* it is read once, at once: written fast rather than
                                         * small */
};

/* Writes the trace to fd, which the caller closes. pieces = NULL: each input is a recording of its
 * own. Returns 0 or -errno. */
int ls_merge_write(int fd, const struct ls_merge_input *inputs, unsigned n, uint64_t interval_ns,
                   const struct ls_merge_pieces *pieces);

#endif
