/* What the trace says about the recording as a whole: rates, losses. Used by the header of report
 * and by info. */
#ifndef LS_REPORT_MODEL_FACTS_H
#define LS_REPORT_MODEL_FACTS_H

#include <stdint.h>

#include "formats/profile.h"

struct ls_loss_fact {
        const char *key, *label;
        int is_ticks;                   /* ticks are missing; 0 = records or samples affected, the
                                         * ticks are kept */
        int is_stack;                   /* of stacks that are not complete */
        uint64_t count;
        double share;                   /* of all ticks, or of all samples; 0 where neither is
                                         * counted */
};

struct ls_facts {
        uint64_t asked_ns;              /* interval; 0 = not known */
        uint64_t cpu_ns;                /* of the sampled threads; from ticks when the trace does
                                         * not say */
        uint64_t elapsed_ns;
        uint64_t samples, ticks;        /* samples written, ticks that passed (lost ones too) */
        uint64_t sample_ticks;          /* ticks in the samples that can be read */
        uint64_t lost_ticks;            /* by all reasons together */
        double achieved_hz;             /* samples per second of CPU time; 0 = not known */
        double own_share;               /* the agent's time as a share of the program's CPU time */
        double incomplete_share;        /* ticks without a complete stack: lost ones, and those
                                         * whose stack lacks a part */
        struct ls_loss_fact losses[32];
        unsigned n_losses;
};

void ls_facts_init(struct ls_facts *f, const struct ls_profile *p);

/* "1 ms", "250 us", "1.50 s". */
const char *ls_duration_text(uint64_t ns, char *buf, unsigned size);

#endif
