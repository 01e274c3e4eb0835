/* Turns records from the rings into the trace: the agent's ids into the writer's, stacks into prefix nodes. Every
 * record is checked first; one that makes no sense is counted and left out. Called by drain.c for the session. */
#ifndef LS_RECORD_TRANSLATE_H
#define LS_RECORD_TRANSLATE_H

#include <stdint.h>

#include "formats/trace_writer.h"
#include "record/drain.h"
#include "record/mappings.h"
#include "record/sources.h"

struct ls_translate_config {
        struct ls_trace_writer *writer;
        const struct ls_memory *memory;
        const char *cwd;                /* the program's at its start; outlives the translator */
        int pid;                        /* the program; 0 = none (tests) */
        uint32_t process;               /* its id in the trace */
        uint64_t interval_ns;
        uint64_t start_ns;              /* CLOCK_MONOTONIC: no sample is older */
        int no_source;
        /* A sentence from the agent, to be shown at the end; may be NULL. */
        void (*notice)(void *ctx, const char *text);
        void *ctx;
};

struct ls_translate_function { uint32_t trace_id, slot; uint8_t kind, rank; };

struct ls_translate_ring {
        uint32_t *stacks;               /* the writer's ids of the last sample's stack, by depth from the root */
        uint32_t depth, cap;
        uint32_t thread;                /* the writer's id, 0 = not known yet */
        uint32_t tid;                   /* of that thread */
};

struct ls_translate {
        struct ls_translate_config cfg;
        struct ls_sources sources;
        struct ls_mappings mappings;
        struct ls_translate_function *functions;
        uint32_t *zones, *vms, *coroutines;             /* the agent's id to the writer's */
        uint32_t n_functions, n_zones, n_vms, n_coroutines;     /* allocated, id 0 included */
        struct ls_translate_ring *rings;
        uint32_t lost_location, cut_location;           /* of the pseudo functions; 0 = not used yet */
        uint64_t now_ns;                /* set by the session before each run: no sample is newer */
        /* totals */
        uint64_t samples, sample_ticks, rows, kernel_delayed;
        uint64_t bad_records, definition_missing;
        uint64_t last_cpu_ns;           /* of the latest sample */
        uint32_t notices;
};

int ls_translate_init(struct ls_translate *t, const struct ls_translate_config *cfg);
void ls_translate_done(struct ls_translate *t);

/* The two callbacks of struct ls_drain_sink; ctx is the struct ls_translate. */
void ls_translate_record(void *ctx, unsigned ring, unsigned kind, const void *body, uint32_t len);
void ls_translate_gap(void *ctx, unsigned ring);

/* Thread of a ring in the trace, 0 = none. */
uint32_t ls_translate_thread(struct ls_translate *t, unsigned ring);

/* Last names. When the recording ends. */
void ls_translate_finish(struct ls_translate *t);

#endif
