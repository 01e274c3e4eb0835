/* Attempts of the JIT compiler, those that are alike added up until the file ends. Called by
 * translate.c and writer/taken.c. */
#ifndef LS_RECORD_TRANSLATE_ATTEMPT_SUMS_H
#define LS_RECORD_TRANSLATE_ATTEMPT_SUMS_H

#include <stdint.h>

#include "formats/trace/writer.h"

#define LS_ATTEMPT_KINDS 16384u         /* of a process that are told apart */
#define LS_ATTEMPT_REASONS 1024u        /* of a process that are told apart */
#define LS_ATTEMPT_REASON 256u          /* bytes of a reason */

struct ls_attempt_kind {                /* the writer's ids of VM and functions; without padding: it
                                         * is a key */
        uint32_t vm, start, start_line, first_line, last_line, stop, stop_line, flags, about;
        uint32_t reason;                /* set by ls_attempts_add */
};

struct ls_attempt_sum;
struct ls_attempt_reason;

struct ls_attempts {
        struct ls_attempt_sum *sums;
        struct ls_attempt_reason *reasons;
        uint32_t n, n_reasons;
        uint64_t dropped;               /* attempts of more kinds than fit */
};

/* One more of a kind, with the words why it was given up, len of at most LS_ATTEMPT_REASON bytes.
 * Nothing is interned: what is dropped leaves nothing in the trace. Returns 0 or -ENOMEM. */
int ls_attempts_add(struct ls_attempts *a, struct ls_attempt_kind kind, const char *reason,
                    size_t len, uint64_t ns, uint64_t bytecodes);
/* Writes what was not written yet. Rows of one kind add up. */
void ls_attempts_write(struct ls_attempts *a, struct ls_trace_writer *w);
void ls_attempts_done(struct ls_attempts *a);

#endif
