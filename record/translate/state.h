/* The translation of one process: what the ids in its rings mean. Used by the files of
 * translate/. */
#ifndef LS_RECORD_TRANSLATE_STATE_H
#define LS_RECORD_TRANSLATE_STATE_H

#include <stdint.h>

#include "formats/trace/writer.h"
#include "formats/wire/counters.h"
#include "record/native/mappings.h"
#include "record/native/native.h"
#include "record/process/ids.h"
#include "record/process/memory.h"
#include "record/translate/attempt_sums.h"
#include "record/translate/jit_keep.h"
#include "record/translate/sources.h"

#define LS_KNOWN_COROUTINES 65536u       /* more that are alive at a time may be described twice */

/* Of a counter: who wants to hear of its values; the caller's. */
struct ls_told {
        uint64_t time_ns;               /* of the value that was looked at last */
        uint32_t fits, over, known;     /* bits, by number of what is asked for */
        int asked;                      /* whose name it fits was asked */
};

struct ls_translate_config {
        struct ls_trace_writer *writer;
        const struct ls_memory *memory;
        struct ls_map_shared *maps;     /* of all processes, or NULL */
        struct ls_worker *worker;       /* reads what the program names; outlives the translator.
                                         * NULL = we do (tests) */
        const char *cwd;                /* the program's at its start; outlives the translator */
        int pid;                        /* the program; 0 = none (tests) */
        int other_namespace;            /* it knows itself and its threads by other ids */
        uint32_t process;               /* its id in the trace; known before the first record
                                         * comes */
        uint32_t ordinal;               /* of the process among those of the session, from 0 */
        uint64_t interval_ns;
        uint64_t alloc_interval;        /* bytes from sample to sample; 0 = there are none */
        int alloc, live;                /* which rows they get */
        uint64_t start_ns;              /* CLOCK_MONOTONIC: no sample is older */
        uint64_t (*clock)(void);        /* CLOCK_MONOTONIC now; NULL = what was said before the run
                                         * holds (tests) */
        int no_source;
        int wall_only;                  /* time on a CPU is wall time, and nothing else */
        int native;                     /* samples have native stacks */
        /* A sentence from the agent, to be shown at the end; may be NULL. */
        void (*notice)(void *ctx, const char *text);
        /* The program has marked an instant; may be NULL. */
        void (*marked)(void *ctx, const char *name, uint32_t len);
        /* A counter has a value, not older than the last; name NULL: its process has ended. May be
         * NULL. */
        void (*counted)(void *ctx, struct ls_told *told, const char *name, uint32_t len,
                        double value);
        void *notice_ctx;
        /* The thread of a ring has ended, and its last records were taken; may be NULL. */
        void (*ended)(void *ctx, unsigned ring);
        void *ended_ctx;
};

struct ls_counts_one {
        uint32_t id;                    /* the writer's; 0 = it has none yet */
        uint32_t rows;                  /* in this file */
        uint64_t time_ns, value;        /* of the last row in this file; time 0 = none */
        uint64_t apart_ns;              /* the least time between two rows */
};

/* What was read last of a VM's heap, and its counters; entry LS_COUNTER_OWN of them is not used. */
struct ls_counts_heap {
        struct ls_counts_one one[LS_COUNTER_WHATS];
        struct ls_told told;            /* of its size */
        uint64_t cycles;
        uint64_t peak;                  /* of what is in this file */
        uint8_t white;                  /* 0 = nothing was read yet */
};

struct ls_counts {
        struct ls_counts_one one[LS_COUNTERS];  /* as in the memory's table */
        struct ls_told told[LS_COUNTERS];
        uint32_t rows;                  /* of all, in this file */
        uint64_t dropped;               /* beyond the most of a file */
        struct ls_counts_heap *heaps;   /* by the agent's id of the VM */
        uint32_t n_heaps;
        uint32_t heaps_used;
        uint64_t heaps_dropped;         /* readings of those for which there was no place, or no
                                         * room in a file */
};

struct ls_translate_function {
        uint64_t addr;                  /* C, builtin: of its C code, 0 = not known */
        uint32_t trace_id, slot;
        uint8_t kind, rank;
};

/* A coroutine of the thread, by the address of its lua_State: agent and watcher number coroutines
 * as each meets them. */
struct ls_translate_coroutine {
        uint64_t address;
        uint32_t function, trace_id;
        uint8_t sides;                  /* who has described it: bits, by role */
};

struct ls_translate_wall {              /* a row of blocked time */
        struct ls_sample_row row;
        uint32_t like;                  /* enum ls_like */
};

/* A ring's thread, and what the ids in its records mean: forgotten when another thread gets the
 * ring. */
struct ls_translate_ring {
        enum ls_ring_role role;
        unsigned owner;                 /* the agent's ring of the same thread; of suspended
                                         * coroutines: none */
        struct ls_source_table sources;
        struct ls_translate_function *functions;
        uint32_t *zones, *labels, *coroutines;   /* the agent's id to the writer's */
        uint32_t n_functions, n_zones, n_labels, n_coroutines;    /* allocated, id 0 included */
        uint32_t *stacks;               /* the writer's ids of the last sample's stack, by depth
                                         * from the root */
        uint32_t depth, cap;
        struct ls_native_lua *lua;      /* its frames, likewise; only with native stacks */
        struct ls_native_ring native;
        uint32_t thread;                /* the writer's id, 0 = nothing has needed it yet */
        uint32_t tid, name;             /* of that thread, as it knows itself; name: the writer's
                                         * string. 0 = not known */
        uint32_t outer_tid;             /* as it is known here; 0 = the same, or not asked for
                                         * yet */
        uint32_t claim;                 /* the ring's when that thread came */
        uint32_t n_named;               /* THREAD records of it */
        /* Rows of the watcher's ring wait in the agent's until those before them in time are
         * there. */
        struct ls_sample_row own;       /* the last one of a sample with a stack of its own in this
                                         * ring; stack 0 = none */
        struct ls_sample_row last;      /* the last one written of this thread; likewise */
        struct ls_translate_coroutine *known;   /* LS_KNOWN_COROUTINES by address, NULL = none yet;
                                                 * the agent's ring has both sides' */
        uint32_t *generations;          /* by the writer's function id: how many coroutines it was
                                         * the body of */
        uint32_t n_generations;
        uint32_t *places;               /* the writer's ids of stacks of suspended coroutines, by
                                         * number */
        uint32_t n_places;
        struct ls_translate_wall *wall;
        uint32_t n_wall, wall_room;
};

struct ls_translate {
        struct ls_translate_config cfg;
        struct ls_ids ids;              /* of all tables by an id of the agent's or the writer's */
        struct ls_sources sources;
        struct ls_mappings mappings;
        struct ls_native_process native;
        struct ls_jit_keep jit;         /* traces of the JIT compiler */
        uint32_t *vms;                  /* the agent's id to the writer's */
        uint32_t n_vms;                 /* allocated, id 0 included */
        uint8_t *vm_rings;              /* by the agent's id: ring of the thread that ran it last */
        uint32_t n_vm_rings;
        struct ls_translate_ring *rings;
        uint32_t lost_location, cut_location, outside_location; /* of the pseudo functions; 0 = not
                                                                 * used yet */
        uint64_t now_ns;                /* set by the session before each run: no sample is newer */
        /* totals */
        uint64_t samples, sample_ticks, rows, kernel_delayed;
        uint64_t wall_ticks;            /* of blocked time */
        uint64_t suspended_ticks, ready_ticks;  /* of coroutines */
        uint64_t allocs;                /* samples of allocations */
        struct ls_live_block *live;     /* of them, what is not freed yet; live.c */
        struct ls_live_block **live_vms;        /* the same of each VM, by the agent's id */
        uint32_t n_live_vms;
        uint64_t live_lost;             /* that found no room there */
        double allocs_rest;             /* of the objects that they stand for, below one */
        uint64_t bad_records, definition_missing;
        uint64_t native_cut;            /* native stacks that did not reach their end */
        uint32_t notices, marks;
        uint64_t marks_dropped;         /* beyond the most that are kept */
        struct ls_counts counts;
        struct ls_attempts attempts;    /* of the JIT compiler */
        uint64_t counted, counted_compiled;     /* bytecodes: exact.c */
};

static inline uint32_t ls_translate_lookup(const uint32_t *table, uint32_t n, uint32_t id)
{
        return id < n ? table[id] : 0;
}

/* The writer's id of a function of a ring, 0 = not defined. */
static inline uint32_t ls_translate_function_id(const struct ls_translate_ring *r, uint32_t id)
{
        return id < r->n_functions ? r->functions[id].trace_id : 0;
}

#endif
