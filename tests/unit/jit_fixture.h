/* A JITTRACE record made by hand, for tests of what is done with traces, not of how they are mapped
 * (tests/jit does that): each of its parts is code of one recorded bytecode, with a snapshot before
 * it, so that the map is exact by its borders. */
#ifndef LS_TESTS_JIT_FIXTURE_H
#define LS_TESTS_JIT_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "formats/wire/ring.h"

#define JIT_PART_BYTES 20u              /* of machine code */
#define JIT_PART_REFS 4u

struct jit_part { uint16_t function, depth; uint32_t line; };

/* The record, to be freed, and its size. head says what the trace is; functions and parts are of
 * the counts given. */
static inline struct ls_rec_jittrace *jit_record(struct ls_rec_jittrace head,
                                                 const uint32_t *functions, uint32_t nfunctions,
                                                 const struct jit_part *parts, uint32_t n,
                                                 uint32_t *ret_size)
{
        uint32_t function_bytes = (nfunctions * 4 + 7) & ~7u;
        struct ls_rec_jittrace *rec;
        struct ls_jit_event *events;
        struct ls_jit_snapshot *snapshots;
        uint64_t *ir;

        head.flags = LS_JITF_MAP;
        head.nfunctions = nfunctions;
        head.nevents = head.nsnapshots = n;
        head.nir = n * JIT_PART_REFS + 1;
        head.mcode_size = n * JIT_PART_BYTES;
        *ret_size = (uint32_t)sizeof(head) + function_bytes + n * 32 + head.nir * 8 +
                    head.mcode_size;
        rec = calloc(1, *ret_size);
        if (!rec)
                abort();
        *rec = head;
        memcpy(rec + 1, functions, nfunctions * 4);
        events = (struct ls_jit_event *)((char *)(rec + 1) + function_bytes);
        snapshots = (struct ls_jit_snapshot *)(events + n);
        ir = (uint64_t *)(snapshots + n);
        for (uint32_t i = 0; i < n; i++) {
                uint16_t ref = (uint16_t)(1 + i * JIT_PART_REFS);

                events[i] = (struct ls_jit_event){ .ref = ref,
                                                   .function = parts[i].function,
                                                   .depth = parts[i].depth,
                                                   .pos = i + 1,
                                                   .line = parts[i].line };
                snapshots[i] = (struct ls_jit_snapshot){ .ref = ref,
                                                         .mcofs = (uint16_t)(i * JIT_PART_BYTES),
                                                         .function = parts[i].function,
                                                         .nframes = parts[i].depth,
                                                         .pos = i + 1,
                                                         .line = parts[i].line };
        }
        memset(ir + head.nir, 0x90, head.mcode_size);
        return rec;
}

/* Names enough for an opcode 0 that does nothing in particular. */
#define JIT_NAMES "NOP   ADD   SUB   MUL   DIV   "

#endif
