/* Tables that the inputs of a merge share, and the dictionaries of each: see tables.c. */
#ifndef LS_FORMATS_MERGE_TABLES_H
#define LS_FORMATS_MERGE_TABLES_H

#include <uthash.h>

#include "formats/merge/input.h"
#include "formats/trace/dict.h"
#include "formats/trace/reader.h"

struct ls_fold;

struct ls_merge_trace {                 /* of the JIT compiler: the function that stands for it, by
                                         * what it is */
        uint64_t identity;
        uint32_t function;
        UT_hash_handle hh;
};

struct ls_merge {                       /* what all inputs share */
        struct ls_trace_writer *w;
        uint64_t interval_ns;
        uint64_t jit_base;              /* recordings count their traces from 1: added to those of
                                         * the next */
        struct ls_dict mappings;        /* by what tells files apart: where they were mapped does
                                         * not */
        uint32_t *mapping_ids;          /* the writer's, by id of that */
        uint32_t cap_mapping_ids;
        uint8_t *has_text;              /* by the writer's source */
        uint32_t n_has_text;
        /* Of pieces of one service: */
        int pieces;
        struct ls_fold *fold;           /* NULL = samples stay as they are */
        struct ls_dict known[LS_KINDS]; /* rows of kinds that are not interned by the writer; their
                                         * ids are its ids */
        struct ls_merge_trace *traces;
};

struct ls_merge_ids {                   /* the writer's ids of one input's, 0 = not yet */
        struct ls_merge *m;
        const struct ls_merge_input *in;
        const struct ls_profile *p;
        uint32_t *sources, *functions, *locations, *stacks, *zones, *processes, *threads, *vms,
                *coroutines, *mappings;
        uint32_t *labels, *counters;
        uint64_t jit_most;              /* greatest number of its traces */
        uint8_t *has_trace;             /* by its traces: an earlier piece has it */
};

/* Return 0 or -ENOMEM. */
int ls_merge_ids_init(struct ls_merge_ids *ids, struct ls_merge *m,
                      const struct ls_merge_input *in);
void ls_merge_ids_done(struct ls_merge_ids *ids);
void ls_merge_traces_done(struct ls_merge *m);
int ls_merge_tables(struct ls_merge_ids *ids);
/* Makes sure that stack, zone and label of a sample have ids, lost ones too. */
int ls_merge_lost(struct ls_merge_ids *ids, uint32_t stack, uint32_t zone, uint32_t label);
/* Ids beyond the table are 0. */
uint32_t ls_merge_id(const uint32_t *table, uint32_t n, uint64_t id);

#endif
