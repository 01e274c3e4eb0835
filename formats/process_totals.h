/* What is counted of one process of a recording: written by record/, read by report/. */
#ifndef LS_FORMATS_PROCESS_TOTALS_H
#define LS_FORMATS_PROCESS_TOTALS_H

#include <stdint.h>

struct ls_process_totals {
        uint64_t ticks, samples, lost_ticks;
        uint64_t cpu_ns;                /* of its sampled threads while they were sampled */
        uint64_t own_ns;                /* the agent's time in it, without its start */
        uint64_t from_ns, to_ns;        /* CLOCK_MONOTONIC when its recording began and ended; 0 =
                                         * not known */
};

#endif
