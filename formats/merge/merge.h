/* Joins several recordings in one trace. Called by report/merge.c. */
#ifndef LS_FORMATS_MERGE_MERGE_H
#define LS_FORMATS_MERGE_MERGE_H

#include "formats/profile.h"

struct ls_merge_input {
        struct ls_profile *profile;
        const char *name;               /* for notices; the caller's */
        /* filled by ls_merge_plan: */
        uint64_t scale;                 /* ticks of the merged trace that one of its ticks is */
        uint64_t start_ns, end_ns;      /* CLOCK_MONOTONIC of the recording, as it says */
        uint64_t shift_ns;              /* added to its times, modulo 2^64 */
        unsigned boot;                  /* first input of the same boot of the same machine */
        uint8_t flags;                  /* LS_SAMPLE_* that its samples get: a program that marks no region is all of
                                         * interest, and stays so beside one that does */
};

/* Decides what ticks and times of the merged trace are. The interval is the shortest; all others must be multiples of it:
 * else -EDOM, and *ret_a and *ret_b are the inputs that do not go together. Times of one boot of one machine are of one
 * clock and stay as they are; recordings of another are placed behind all those before, a second apart. Returns 0 or
 * -errno. */
int ls_merge_plan(struct ls_merge_input *inputs, unsigned n, uint64_t *ret_interval_ns, unsigned *ret_a, unsigned *ret_b);

/* Writes the trace to fd, which the caller closes. Returns 0 or -errno. */
int ls_merge_write(int fd, const struct ls_merge_input *inputs, unsigned n, uint64_t interval_ns);

#endif
