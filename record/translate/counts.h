/* The counters of a process on their way into the trace: see counts.c. Called by translate.c and rotate.c. */
#ifndef LS_RECORD_TRANSLATE_COUNTS_H
#define LS_RECORD_TRANSLATE_COUNTS_H

#include <stdint.h>

#include "formats/wire/counters.h"

struct ls_translate;

struct ls_counts_one {
        uint32_t id;                    /* the writer's; 0 = it has none yet */
        uint32_t rows;                  /* in this file */
        uint64_t time_ns, value;        /* of the last row in this file; time 0 = none */
        uint64_t apart_ns;              /* the least time between two rows */
};

struct ls_counts {
        struct ls_counts_one one[LS_COUNTERS];  /* as in the memory's table */
        uint32_t rows;                  /* of all, in this file */
        uint64_t dropped;               /* beyond the most of a file */
};

/* A COUNT record. Returns 0, or -EINVAL when it makes no sense. */
int ls_counts_record(struct ls_translate *t, unsigned ring, const void *body, uint32_t len);
/* After the rings: last values that did not come through them. last: the file or the recording ends, all are written. */
void ls_counts_look(struct ls_translate *t, int last);
/* The trace goes on in another file, which begins with the values that hold. */
void ls_counts_restart(struct ls_translate *t);

#endif
