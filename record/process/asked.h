/* What `luasample record` was asked to do. Filled by record/options.c, read by the rest of
 * record/. */
#ifndef LS_RECORD_PROCESS_ASKED_H
#define LS_RECORD_PROCESS_ASKED_H

#include <popt.h>
#include <stdint.h>

#include "formats/wire/events.h"

#define LS_MIN_INTERVAL_NS                                                                         \
        50000ull /* a tick costs some microseconds: below this it is mostly itself */
#define LS_MAX_INTERVAL_NS 3600000000000ull
#define LS_DEFAULT_INTERVAL_NS 1000000ull
#define LS_DEFAULT_RING (2u << 20)              /* with the trace buffers, 4 MiB for one thread */
/* With native stacks below the default interval: at 100 us, 0.3 s of a program that compiles all
 * the time. At 1 ms the pages that are new to the program would be half of a tick's cost for
 * seconds. */
#define LS_NATIVE_RING (8u << 20)
#define LS_SMALL_RING                                                                              \
        (512u << 10) /* for each thread after the first, or a quarter of the first one's */
#define LS_MIN_RING (64u << 10)
#define LS_MAX_RING (1u << 23)                  /* a record's size has 24 bits */
#define LS_MAX_DEPTH 1000000u
#define LS_DEFAULT_NATIVE (16u << 10)           /* bytes of a native stack */
#define LS_DEFAULT_ALLOC (128u << 10)   /* bytes allocated from sample to sample */
#define LS_MAX_ALLOC (1u << 30)
#define LS_MIN_NATIVE 1024u
#define LS_MAX_NATIVE (256u << 10)

#define LS_MIN_SWITCH_BYTES (64u << 10)
#define LS_KEEP_MOST 100000u
#define LS_MIN_SWITCH_NS 1000000000ull
#define LS_MIN_RING_NS 1000000000ull
#define LS_MAX_RING_NS (24 * 3600 * 1000000000ull)
#define LS_DELAY_FOREVER UINT64_MAX
#define LS_RECORD_TELLS 32u

#define LS_RECORD_CPU  (1u << LS_EVENT_CPU)
#define LS_RECORD_WALL (1u << LS_EVENT_WALL)
#define LS_RECORD_SUSPENDED (1u << LS_EVENT_SUSPENDED)
#define LS_RECORD_ALLOC (1u << LS_EVENT_ALLOC)
#define LS_RECORD_LIVE (1u << LS_EVENT_LIVE)
#define LS_RECORD_MEMORY (LS_RECORD_ALLOC | LS_RECORD_LIVE)
#define LS_RECORD_COVERAGE (1u << LS_EVENT_COVERAGE)
#define LS_RECORD_CALLTIME (1u << LS_EVENT_CALLTIME)
#define LS_RECORD_EXACT                                                                            \
        (LS_RECORD_COVERAGE | 1u << LS_EVENT_LINES | 1u << LS_EVENT_CALLS |                        \
         1u << LS_EVENT_INSTRUCTIONS | 1u << LS_EVENT_BRANCHES | LS_RECORD_CALLTIME)

struct ls_record_options {
        uint64_t interval_ns;
        uint64_t duration_ns;           /* 0 = until the program ends */
        uint64_t delay_ns;              /* before the first sample; LS_DELAY_FOREVER = until
                                         * somebody asks for them */
        uint64_t switch_bytes, switch_ns; /* of a file of the trace; 0 = no limit */
        uint64_t ring_ns;               /* keep only so much; 0 = all */
        uint32_t ring_cpu;              /* percent of one CPU; 0 = do not look */
        const char *ring_mark;          /* pattern of marks that want it written; NULL = none do */
        const char *tells[LS_RECORD_TELLS];     /* --tell, as it was given */
        unsigned n_tells;
        uint32_t keep;                  /* files that have ended; 0 = all */
        const char *control;            /* NULL = nobody can */
        const char *output;
        uint32_t depth;                 /* 0 = no limit */
        uint32_t ring_size;             /* of the first thread; a power of two */
        uint32_t native_bytes;          /* most of a native stack that is copied, 0 = none wanted */
        uint8_t scope;                  /* enum ls_scope */
        uint8_t engine;                 /* enum ls_engine_kind */
        uint8_t jit_leaf;               /* enum ls_jit_leaf */
        uint64_t alloc_interval;        /* bytes allocated from sample to sample, on average */
        int timer;                      /* enum ls_timer, -1 = the best that works */
        uint32_t events;                /* LS_RECORD_*; CPU or WALL is among them, or all of them
                                         * are EXACT or MEMORY */
        int quiet, no_args, no_source;
        int no_children;                /* follow none */
        int no_wait;                    /* end with the program, also when children go on */
        int force;                      /* attach where that is a risk to the program */
        int own;                        /* the program itself has begun us */
        uint8_t bare_tick;              /* see shm.h */
        const char *attach_pids, *attach_name, *attach_cgroup;  /* processes that run already; NULL
                                                                 * = none are meant by it */
        const char **command;           /* the program and its arguments, NULL-terminated, never
                                         * empty */
        poptContext popt;               /* owns the strings */
        char *strings[64];              /* values that popt gave away */
        unsigned n_strings;
};

#endif
