/* What the collectors of the VMs did, from what ticks read: their cycles, the heap over time, and
 * the CPU time in each phase. Called by view/header.c and view/gc.c. */
#ifndef LS_REPORT_MODEL_COLLECTOR_H
#define LS_REPORT_MODEL_COLLECTOR_H

#include <stddef.h>

#include "report/model/filter.h"

struct ls_heap_sum {                    /* of all VMs of a trace */
        uint32_t vms;                   /* whose heap is known; 0 = the trace has nothing of it */
        double peak;                    /* bytes: the largest of one VM */
        double cycles;                  /* that were seen: one that lies between two ticks is not */
};

void ls_heap_sum(const struct ls_profile *p, struct ls_heap_sum *ret);

/* What a phase (enum ls_gc_phase) is called, and what it does. */
const char *ls_gc_phase_name(unsigned phase);
const char *ls_gc_phase_meaning(unsigned phase);

struct ls_gc_cycle {
        uint32_t vm;
        uint64_t from_ns, to_ns;        /* CLOCK_MONOTONIC, at ticks */
        double before, peak, after;     /* bytes at its start, at most, at its end */
        uint64_t ticks[LS_GC_PHASES];   /* of CPU time, after filters */
        uint8_t cut;                    /* 1 = the recording began or ended in it */
};

struct ls_gc_times {
        struct ls_gc_cycle *cycles;     /* by VM and time */
        size_t n;
        uint64_t ticks[LS_GC_PHASES];   /* of all; LS_GC_PAUSE: outside of cycles that were seen */
};

/* Returns 0 or -errno. */
int ls_gc_times_new(struct ls_profile *p, const struct ls_filter *f, struct ls_gc_times *ret);
void ls_gc_times_free(struct ls_gc_times *g);

#endif
