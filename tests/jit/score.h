/* What the scorer's parts share: score.c watches and samples, score_compare.c judges, score_dump.c
 * shows. */
#ifndef SCORE_H
#define SCORE_H

#include <stdio.h>

#include "formats/jit/map.h"
#include "tests/jit/lj_truth.h"

struct stack {                          /* inlined functions of a snapshot, as LuaJIT restores
                                         * them */
        uint16_t n;
        uint16_t ids[LJ_TRUTH_MAX_FRAMES];      /* 0 = not known */
};

struct trace {
        const uint8_t *mcode;
        uint32_t size, number, spadjust, nir;
        int dead;                       /* flushed */
        void *blob;                     /* the record that the agent would send */
        size_t blob_len;
        uint16_t *truth;                /* reference of each offset */
        uint16_t *origin;               /* of each reference */
        volatile uint32_t *hits;        /* of each offset */
        uint32_t parent;                /* index + 1, 0 = none */
        struct stack *stacks;           /* of each snapshot */
        struct ls_jit_map *map;
};

struct ticks {
        uint32_t all, running, placed;  /* running: while compiled code ran; placed: where in it is
                                         * known */
};

/* Makes the maps of all traces, compares, and writes one line of figures to f; before it the traces
 * whose number is dump (0 = all). */
void score_compare(struct trace *traces, uint32_t n, struct ticks ticks, const char *irnames,
                   size_t irnames_len, int dump, FILE *f);
/* A trace as text: its snapshots, events, IR, and each x86 instruction with both views. */
void score_dump(const struct trace *t, const char *irnames, FILE *f);

/* The leaf that LuaJIT's log gives for an offset, and the one that the map gives. */
struct ls_jit_frame score_truth(const struct trace *t, uint32_t offset);
struct ls_jit_frame score_ours(const struct trace *t, uint32_t offset);

#endif
