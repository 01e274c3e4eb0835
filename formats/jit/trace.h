/* What the parts of the JIT map share: map.c, input.c, ops.c, loop.c, align.c, disasm.c, group.c,
 * score.c. Nobody else includes it. References are those of LuaJIT's IR less 0x8000 (REF_BASE =
 * 0). */
#ifndef LS_FORMATS_JIT_TRACE_H
#define LS_FORMATS_JIT_TRACE_H

#include "formats/jit/input.h"

#define JIT_TAG_BITS 47                 /* of a value, below its type tag */
#define JIT_NUM_TAG                                                                                \
        0xfff90000u /* a value whose upper half is below it is a number: what loads check */

/* Limits of the work on one trace, whatever its record says: 128 KiB is twice what LuaJIT can
 * number. */
#define JIT_MAX_CODE (128u << 10)       /* bytes that are disassembled */
#define JIT_MAX_CELLS (4u << 20)        /* of all dynamic programmes of a trace together */

/* An IR instruction as LuaJIT stores it (LuaJIT's lj_ir.h: operands, type, opcode, register, spill
 * slot). */
struct jit_ir {
        uint16_t op1, op2;
        uint8_t type, op, reg, spill;
};
_Static_assert(sizeof(struct jit_ir) == 8, "an IR instruction is 8 bytes");
#define JIT_IR_GUARD 0x80
#define JIT_IR_TYPE 0x1f
#define JIT_IR_NUM 14                   /* type: a double */
#define JIT_IR_FLOAT 13
#define JIT_REG_NONE 0x80               /* bit: no register */
#define JIT_REG_SUNK 0xfe               /* stored only by an exit; 0xfd likewise */
#define JIT_OPERAND_BIAS                                                                           \
        0x8000 /* operands at and above it are references, below constants or literals */

/* x86 registers by LuaJIT's numbers */
#define JIT_REG_DX 2                    /* holds the Lua stack's base */
#define JIT_REG_SP 4
#define JIT_REG_DISPATCH 14             /* r14: global state */
#define JIT_REG_XMM 16

/* Opcode properties, by name: ops.c. */
enum {
        JIT_OP_NOCODE = 1 << 0,         /* never emits code */
        JIT_OP_EFFECT = 1 << 1,         /* emits code though it has no register */
        JIT_OP_CALL = 1 << 2,           /* may call a C function */
        JIT_OP_SURE_CALL = 1 << 3,      /* does call one */
        JIT_OP_NEW = 1 << 4,            /* makes an object, and may fill it */
        JIT_OP_LOAD = 1 << 5,
        JIT_OP_STORE = 1 << 6,
        JIT_OP_COMPARE = 1 << 7,
        JIT_OP_JUMPS = 1 << 8,          /* jumps within its own code */
        JIT_OP_WEAK = 1 << 9,           /* its guard bit alone does not keep it alive */
        JIT_OP_HASH = 1 << 10,          /* HREF: a hash function and a loop over a chain */
        JIT_OP_BARRIER = 1 << 11,
        JIT_OP_LOOP = 1 << 12,
        JIT_OP_RENAME = 1 << 13,        /* with PHI and NOP: no part of the loop's copy */
        JIT_OP_SLOT = 1 << 14,          /* SLOAD: a slot of the Lua stack */
        JIT_OP_LINK = 1 << 15,          /* HREFK: compares a key */
        JIT_OP_ORDER = 1 << 16,         /* compares the order: folding may turn one such into
                                         * another */
        JIT_OP_NOEXIT = 1 << 17,        /* its guard bit only stands for an error that it may
                                         * raise */
        JIT_OP_UNCHECKED = 1 << 18,     /* its jumps and calls tell nothing about the alignment */
        JIT_OP_GC = 1 << 19,            /* GCSTEP: a check of the collector's threshold */
        JIT_OP_RARE_EXIT = 1 << 20,     /* its guard bit is set, but only newer versions make it an
                                         * exit */
};

struct jit_op {
        uint32_t flags;
        uint8_t class;                  /* of the x86 instruction that does it, JIT_X_*; 0 = none in
                                         * particular */
        uint8_t skip;                   /* what it costs to give it no instruction, in quarters */
};

struct jit_ops {
        struct jit_op op[256];
};

void jit_ops_init(struct jit_ops *ops, const char *irnames, size_t len);
/* Whether an instruction has machine code of its own. */
int jit_ir_emits(const struct jit_ops *ops, const struct jit_ir *ir);

/* x86 instructions by what they are good for here: disasm.c. */
enum jit_class {
        JIT_X_OTHER,
        JIT_X_CALL,
        JIT_X_EXIT,
        JIT_X_INNER,
        JIT_X_JUMP,
        /* arithmetic: a range */
        JIT_X_ADD,
        JIT_X_SUB,
        JIT_X_MUL,
        JIT_X_DIV,
        JIT_X_CONVERT,
        JIT_X_ROUND,
        JIT_X_MIN,
        JIT_X_MAX,
        JIT_X_SQRT,
        JIT_X_LOAD_NUM,
        JIT_X_LOAD,
        JIT_X_STORE,
        JIT_X_STORE_IMM,
        JIT_X_MOVE,
        JIT_X_COMPARE,
        JIT_X_COMPARE_MEM,
        JIT_X_COMPARE_NUM,
        JIT_X_BITS,
        JIT_X_SHIFT,
        JIT_X_LEA,
        JIT_X_XOR_NUM,
        JIT_X_NEG,
        JIT_X_SELECT,
        JIT_X_LAST,
};

struct jit_unit {                       /* an x86 instruction, or a few that belong together */
        uint32_t start, end;            /* offsets in the code */
        uint8_t class;
        uint8_t jump;                   /* that ends a group: JIT_X_EXIT, JIT_X_INNER, or 0 */
        uint8_t overflow;               /* a jump for when the instruction before has overflowed */
        uint8_t memory;                 /* 1 = it has a memory operand */
        uint8_t constant;               /* 1 = imm is its last operand */
        uint8_t state;                  /* a load of the Lua stack's base or of the coroutine */
        uint8_t turns;                  /* a rotation that brings the tag of a value to the low
                                         * bits */
        uint8_t gc;                     /* part of a check of the garbage collector's threshold */
        uint8_t glued;                  /* belongs to the instruction after it */
        int8_t dst, src, base;          /* registers, -1 = none */
        int64_t imm, disp;
};

/* Disassembles code at its address; loop: offset of its loop, 0 = none. Gives an array of
 * instructions that cover it, of which none is marked (gc, glued) yet. 0, -ENOMEM, -ENOTSUP (no
 * disassembler), or -EILSEQ when less than all of the code is understood; what was is then
 * there. */
int jit_disassemble(const uint8_t *code, uint32_t size, uint64_t address, uint32_t loop,
                    struct jit_unit **ret, uint32_t *ret_n);

/* The same as text: put is called for each instruction with its offset, name and operands; target
 * is where a conditional jump leaves the code to, 0 = it is no such. Ends when put returns an
 * error. 0, -ENOMEM, -ENOTSUP, or put's error. */
int jit_disassemble_text(const uint8_t *code, uint32_t size, uint64_t address,
                         int (*put)(void *ctx, uint32_t offset, const char *name,
                                    const char *operands, uint64_t target), void *ctx);

/* Of group.c. */
int jit_is_compare(const struct jit_unit *u);
/* A value is put into its slot on the C stack. */
int jit_is_spill(const struct jit_unit *u);
/* A value that was spilled, a constant, or the Lua stack's base comes back into a register. The
 * assembler works backwards: it emits this when an instruction needs the register, so it stands
 * behind that one. */
int jit_is_reload(const struct jit_unit *u);
/* Marks what belongs together. */
void jit_mark(struct jit_unit *u, uint32_t n);
/* Makes units of the n marked instructions of in; returns how many are in out, which has room for
 * n. */
uint32_t jit_group(const struct jit_unit *in, uint32_t n, struct jit_unit *out);

/* The trace that is being worked on. */
struct jit_trace {
        const struct ls_rec_jittrace *head;
        const struct ls_jit_snapshot *snapshots;
        const uint8_t *code;
        const struct jit_ir *ir;
        struct jit_ops ops;
        uint32_t loop;                  /* reference of LOOP, 0 = none */
        uint32_t code_size;             /* of the part that is looked at */
        uint32_t cells;                 /* of JIT_MAX_CELLS that are left */
        unsigned doubt;                 /* enum ls_jit_doubt */
        uint16_t *at;                   /* reference of each offset, code_size of them */
        uint16_t *origin;               /* of each reference, head->nir of them */
        uint8_t *calls;                 /* of each reference: 1 = its code calls */
};

/* Of score.c. How well a unit fits an instruction; what it costs that u follows before on the same
 * one; what it costs that an instruction gets no unit. */
float jit_score(const struct jit_trace *t, const struct jit_unit *u, uint32_t ref);
float jit_stay_cost(const struct jit_trace *t, const struct jit_unit *before,
                    const struct jit_unit *u, uint32_t ref);
float jit_skip_cost(const struct jit_trace *t, uint32_t ref);

/* Sets origin: which instruction each copy that the loop optimisation made stems from. 0 or
 * -ENOMEM. */
int jit_loop_origins(struct jit_trace *t);
/* Sets at. 0 or -ENOMEM. */
int jit_align(struct jit_trace *t);

#endif
