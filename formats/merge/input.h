/* A recording that goes into a merge. */
#ifndef LS_FORMATS_MERGE_INPUT_H
#define LS_FORMATS_MERGE_INPUT_H

#include "formats/profile.h"

struct ls_merge_input {
        struct ls_profile *profile;
        const char *name;               /* for notices; the caller's */
        /* filled by ls_merge_plan: */
        uint64_t scale;                 /* ticks of the merged trace that one of its ticks is */
        uint64_t start_ns, end_ns;      /* CLOCK_MONOTONIC of the recording, as it says */
        uint64_t shift_ns;              /* added to its times, modulo 2^64 */
        unsigned boot;                  /* first input of the same boot of the same machine */
        uint8_t flags;                  /* LS_SAMPLE_* that its samples get: a program that marks no
                                         * region is all of interest, and stays so beside one that
                                         * does */
};

#endif
