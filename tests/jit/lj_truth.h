/* What the patched LuaJIT (luajit-truth.patch, built by scripts/luajit-trees as the tree
 * "jittruth") tells about its traces: included by the patch and by score.c. Addresses are the
 * program's own. */
#ifndef LJ_TRUTH_H
#define LJ_TRUTH_H

#include <stdint.h>

#define LJ_TRUTH_MAX_FRAMES 64

struct lj_truth_snapshot {
        const void *pc;                 /* bytecode that an exit goes on with */
        uint16_t ref;                   /* less 0x8000 */
        uint16_t mcofs;
        uint16_t nframes;               /* inlined frames that an exit restores */
        uint16_t nfunctions;            /* that run in them, outermost first; NULL = not a constant
                                         * of the trace */
        const void *functions[LJ_TRUTH_MAX_FRAMES];
};

struct lj_truth_trace {
        uint32_t number, root, link, link_kind;
        uint32_t mcode_size, mcode_loop, spadjust;
        uint32_t nir, nsnapshots;
        uint32_t start_pos;
        const uint8_t *mcode;
        const uint64_t *ir;             /* from REF_BASE on */
        const void *start_proto;
        /* Of the trace that was assembled last, by reference less 0x8000: bytes [low, high) that
         * its assembly emitted (NULL = none), and for a copy that the loop optimisation made, the
         * reference that it was made from (0 = none). */
        const uint8_t *const *low, *const *high;
        const uint16_t *origin;
        const uint8_t *tail;            /* end of the last instruction's code: what follows links
                                         * on */
};

/* 0, or -1 when there is no such trace. The pointers stay right until the next trace is
 * assembled. */
typedef int lj_truth_trace_fn(void *L, uint32_t number, struct lj_truth_trace *ret);
/* The i-th snapshot of a trace. */
typedef void lj_truth_snapshot_fn(void *L, uint32_t number, uint32_t i,
                                  struct lj_truth_snapshot *ret);
/* IR reference reached so far by the trace that is being recorded, less 0x8000. */
typedef uint32_t lj_truth_reached_fn(void *L);

struct lj_truth_proto {
        const void *proto;              /* NULL = not a Lua function */
        const void *bc;                 /* its bytecodes, 4 bytes each */
        uint32_t sizebc;
        uint32_t first_line;
        const char *source;
        uint32_t ffid;
        const void *c_function;
};
/* Of a function, as lua_topointer gives it. */
typedef void lj_truth_proto_fn(const void *function, struct lj_truth_proto *ret);
typedef int lj_truth_line_fn(const void *proto, uint32_t pos);
/* For the tick: the trace that runs (0 = compiled code does not run), and where its C frame is. */
typedef uint32_t lj_truth_running_fn(void *L, const char **ret_cframe);

/* As if the processor had neither BMI2 nor SSE 4.1: the compiler then uses other instructions. */
typedef void lj_truth_plain_cpu_fn(void *L);

#endif
