/* How well a piece of machine code fits an IR instruction: what align.c's dynamic programme adds
 * up. The figures were set by hand and tried against what LuaJIT logs of itself (tests/jit); they
 * only need to be right in their order. */
#include "formats/jit/map.h"
#include "formats/jit/trace.h"

/* Conditions of a rule; all that are set must hold. */
enum {
        IS_NUM = 1,                     /* the IR instruction gives a floating-point number */
        NOT_NUM = 2,
        IS_GUARD = 4,
        SAME = 8,                       /* its opcode is done by the unit's class of instruction */
        FITS = 16,                      /* floating-point registers for numbers, others for
                                         * others */
        TO_XMM = 32,                    /* the unit writes a floating-point register */
        TO_SP = 64,
        TO_DX = 128,
        OF_SP = 256,                    /* its memory operand's base */
        OF_DX = 512,
        OF_DISPATCH = 1024,
        IN_MEMORY = 2048,
        OWN_NUMBER = 4096,              /* its immediate is the trace's number */
        NUM_TAG = 8192,                 /* its immediate is the tag that numbers are below */
};

struct rule {
        uint8_t first, last;            /* classes of units that it is for */
        uint8_t class;                  /* of the opcode, 0 = any */
        uint16_t when;
        uint32_t flags;                 /* one of them must be the opcode's, 0 = any */
        float score;
};
#define ON(x) JIT_X_##x, JIT_X_##x
#define FROM_TO(a, b) JIT_X_##a, JIT_X_##b
#define INNER_LOOPS (JIT_OP_JUMPS | JIT_OP_HASH)

/* The first rule that holds counts; none = 0. */
static const struct rule rules[] = {
        /* the value's tag is compared, then it is loaded */
        { ON(COMPARE_MEM), 0, NUM_TAG | IS_NUM | IS_GUARD, JIT_OP_LOAD, 6 },
        { ON(COMPARE_MEM), 0, NUM_TAG, JIT_OP_HASH, -2 },
        { ON(COMPARE_MEM), 0, NUM_TAG, 0, -7 },
        { ON(CALL), 0, 0, JIT_OP_SURE_CALL, 8 },
        { ON(CALL), 0, 0, JIT_OP_CALL, 4 },
        { ON(CALL), 0, 0, 0, -8 },
        { ON(INNER), 0, 0, INNER_LOOPS, 3 },
        { ON(INNER), 0, 0, 0, -2 },
        { ON(CONVERT), 0, NOT_NUM, JIT_OP_SLOT, 4 },    /* a stack slot's number as an integer */
        { ON(CONVERT), 0, SAME, 0, 5 },
        { ON(ROUND), 0, SAME, 0, 5 },
        { FROM_TO(ADD, MAX), 0, SAME | FITS, 0, 5 },
        { FROM_TO(ADD, MAX), 0, SAME, 0, 1 },
        { FROM_TO(ADD, MAX), 0, TO_XMM, 0, -3 },
        { FROM_TO(ADD, MAX), 0, TO_SP, 0, 0 },
        { FROM_TO(ADD, MAX), 0, 0, 0, -1 },
        { ON(SQRT), JIT_X_ROUND, 0, 0, 4 },
        { ON(SQRT), 0, 0, 0, -3 },
        { ON(SELECT), JIT_X_MIN, 0, 0, 5 },
        { ON(SELECT), JIT_X_MAX, 0, 0, 5 },
        { ON(SELECT), 0, 0, 0, -1 },
        { ON(LEA), JIT_X_ADD, 0, 0, 3 },
        { ON(LEA), JIT_X_LEA, 0, 0, 3 },
        { ON(LEA), JIT_X_SHIFT, 0, 0, 0 },
        { ON(LEA), 0, 0, 0, -0.5f },
        { ON(BITS), JIT_X_BITS, 0, 0, 4 },
        { ON(BITS), 0, 0, JIT_OP_BARRIER | JIT_OP_JUMPS, 1 },
        { ON(BITS), 0, 0, 0, -0.5f },
        { ON(SHIFT), JIT_X_SHIFT, 0, 0, 4 },
        { ON(SHIFT), 0, 0, JIT_OP_LOAD | JIT_OP_STORE | JIT_OP_COMPARE | JIT_OP_LINK, 1 },
        { ON(SHIFT), JIT_X_LEA, 0, 0, 1 },
        { ON(SHIFT), 0, 0, 0, -0.5f },
        { ON(XOR_NUM), JIT_X_XOR_NUM, 0, 0, 4 },
        { ON(XOR_NUM), JIT_X_CONVERT, 0, 0, 1.5f },
        { ON(LOAD_NUM), 0, OF_DX, JIT_OP_SLOT, 2 },
        { ON(LOAD_NUM), 0, IS_NUM, JIT_OP_LOAD, 2 },
        { ON(LOAD), 0, NOT_NUM, JIT_OP_LOAD, 1.5f },
        { ON(LOAD), 0, 0, JIT_OP_CALL, 0.5f },
        { FROM_TO(STORE, STORE_IMM), 0, 0, JIT_OP_STORE, 4 },
        { ON(STORE), 0, 0, JIT_OP_BARRIER | JIT_OP_JUMPS | JIT_OP_NEW, 1.5f },
        { ON(STORE), 0, 0, JIT_OP_CALL, 0 },
        { ON(STORE_IMM), 0, 0, JIT_OP_BARRIER | JIT_OP_NEW, 1 },
        { FROM_TO(STORE, STORE_IMM), 0, 0, 0, -1 },
        { ON(COMPARE_NUM), 0, IS_NUM, JIT_OP_COMPARE, 5 },
        { ON(COMPARE_NUM), JIT_X_CONVERT, IS_GUARD, 0, 3 },
        { ON(COMPARE_NUM), 0, 0, 0, -3 },
        { ON(COMPARE_MEM), 0, 0, JIT_OP_LINK, 3 },
        { ON(COMPARE_MEM), 0, 0, JIT_OP_COMPARE, 2.5f },
        { ON(COMPARE_MEM), 0, IS_GUARD, JIT_OP_LOAD, 2.5f },
        { ON(COMPARE_MEM), 0, 0, JIT_OP_BARRIER | INNER_LOOPS, 2 },
        { ON(COMPARE_MEM), 0, 0, 0, -2 },
        { ON(COMPARE), 0, 0, JIT_OP_COMPARE, 3 },
        { ON(COMPARE), 0, IS_GUARD, JIT_OP_LOAD, 2 },
        { ON(COMPARE), 0, 0, JIT_OP_LINK | JIT_OP_BARRIER | JIT_OP_LOOP | INNER_LOOPS, 1.5f },
        { ON(COMPARE), 0, 0, 0, -2 },
};

/* What stands before the first instruction: the number of the trace is stored, room is made on the
 * C stack, values are taken over from the parent. */
static const struct rule head_rules[] = {
        { ON(STORE_IMM), 0, OF_DISPATCH | OWN_NUMBER, 0, 12 },
        { FROM_TO(ADD, SUB), 0, TO_SP, 0, 10 },
        { ON(LEA), 0, OF_DISPATCH, 0, 1.5f },
        { ON(MOVE), 0, 0, 0, 0.7f },
        { FROM_TO(LOAD_NUM, LOAD), 0, OF_SP, 0, 0.7f },
        { FROM_TO(LOAD_NUM, LOAD), 0, OF_DISPATCH, 0, 0.7f },
        { FROM_TO(LOAD_NUM, LOAD), 0, 0, 0, 0 },
        { ON(LEA), 0, 0, 0, 0 },
        { ON(STORE), 0, OF_SP, 0, 1 },
        { ON(CALL), 0, 0, 0, -8 },
        { ON(EXIT), 0, 0, 0, -6 },
        { FROM_TO(OTHER, LAST), 0, 0, 0, -1 },
};

/* What stands after the last one: slots are stored, the Lua stack's base moves, the next trace is
 * entered. */
static const struct rule tail_rules[] = {
        { ON(JUMP), 0, 0, 0, 8 },
        { FROM_TO(ADD, SUB), 0, TO_SP, 0, 8 },
        { FROM_TO(STORE, STORE_IMM), 0, OF_DX, 0, 3.5f },
        { FROM_TO(STORE, STORE_IMM), 0, OF_DISPATCH, 0, 2 },
        { FROM_TO(STORE, STORE_IMM), 0, 0, 0, -1 },
        { FROM_TO(ADD, SUB), 0, 0, 0, -1 },
        { ON(LEA), 0, TO_DX, 0, 4 },
        { ON(MOVE), 0, 0, 0, 0.5f },
        { ON(BITS), 0, IN_MEMORY, 0, 3 },
        { ON(CALL), 0, 0, 0, -8 },
        { ON(EXIT), 0, 0, 0, -6 },
};

static const struct jit_op *op_of(const struct jit_trace *t, uint32_t ref)
{
        return &t->ops.op[t->ir[ref].op];
}

static int is_end(uint32_t ref)
{
        return ref == LS_JIT_REF_HEAD || ref == LS_JIT_REF_TAIL;
}

static unsigned conditions_of_unit(const struct jit_trace *t, const struct jit_unit *u)
{
        return (u->dst >= JIT_REG_XMM ? TO_XMM : 0) | (u->dst == JIT_REG_SP ? TO_SP : 0) |
               (u->dst == JIT_REG_DX ? TO_DX : 0) |
               (u->base == JIT_REG_SP ? OF_SP : 0) | (u->base == JIT_REG_DX ? OF_DX : 0) |
               (u->base == JIT_REG_DISPATCH ? OF_DISPATCH : 0) | (u->memory ? IN_MEMORY : 0) |
               ((uint64_t)u->imm == t->head->number ? OWN_NUMBER : 0) |
               ((uint32_t)u->imm == JIT_NUM_TAG && u->base >= 0 ? NUM_TAG : 0);
}

static unsigned conditions_of_ir(const struct jit_unit *u, const struct jit_ir *ir,
                                 const struct jit_op *op)
{
        int type = ir->type & JIT_IR_TYPE;
        int num = type == JIT_IR_NUM || type == JIT_IR_FLOAT;

        return (num ? IS_NUM : NOT_NUM) | (ir->type & JIT_IR_GUARD ? IS_GUARD : 0) |
               (op->class == u->class ? SAME : 0) |
               ((u->dst >= JIT_REG_XMM) == num ? FITS : 0);
}

static float apply(const struct rule *r, size_t n, const struct jit_unit *u,
                   const struct jit_op *op, unsigned conditions)
{
        for (; n > 0; n--, r++) {
                if (u->class >= r->first && u->class <= r->last &&
                    (r->when & conditions) == r->when && (!r->class || r->class == op->class) &&
                    (!r->flags || (r->flags & op->flags)))
                        return r->score;
        }
        return 0;
}
#define APPLY(table, ...) apply(table, sizeof(table) / sizeof(*(table)), __VA_ARGS__)

/* What an exit jump is worth on an instruction. */
static float score_exit(const struct jit_ir *ir, const struct jit_op *op)
{
        if (!(ir->type & JIT_IR_GUARD) || (op->flags & JIT_OP_NOEXIT))
                return -6;
        return op->flags & JIT_OP_RARE_EXIT ? 1 : 4;
}

static float score_register(const struct jit_unit *u, const struct jit_ir *ir)
{
        if (u->dst < 0 || (ir->reg & JIT_REG_NONE))
                return 0;
        if (u->dst == ir->reg)
                return 2;
        if (u->dst >= JIT_REG_XMM && ir->reg < JIT_REG_XMM)
                return -0.8f;
        return u->dst == JIT_REG_SP ? 0 : -0.3f;
}

static float score_gc_check(const struct jit_trace *t, uint32_t ref)
{
        if (is_end(ref))
                return ref == LS_JIT_REF_HEAD ? 6 : -8;
        return op_of(t, ref)->flags & JIT_OP_GC ? 12 : op_of(t, ref)->flags & JIT_OP_LOOP ? 6 : -8;
}

static int is_hash_step(const struct jit_unit *u)
{
        return u->class == JIT_X_BITS || u->class == JIT_X_LEA || u->class == JIT_X_SHIFT ||
               u->class == JIT_X_ADD || u->class == JIT_X_SUB || u->class == JIT_X_LOAD;
}

float jit_score(const struct jit_trace *t, const struct jit_unit *u, uint32_t ref)
{
        static const struct jit_op none;
        const struct jit_ir *ir = &t->ir[is_end(ref) ? 0 : ref];
        const struct jit_op *op = is_end(ref) ? &none : op_of(t, ref);
        unsigned conditions = conditions_of_unit(t, u);
        float s;

        if (u->gc)
                return score_gc_check(t, ref);
        if (ref == LS_JIT_REF_HEAD)
                return APPLY(head_rules, u, op, conditions);
        if (ref == LS_JIT_REF_TAIL)
                return APPLY(tail_rules, u, op, conditions);
        if (jit_is_reload(u)) {
                if (op->flags & JIT_OP_LOOP)
                        return 0.7f;
                /* a constant that is loaded right where its copy is changed */
                return u->dst == ir->reg && u->base == JIT_REG_DISPATCH ? 1 : 0;
        }
        if ((op->flags & JIT_OP_LOOP) && u->class == JIT_X_MOVE)
                return 0.7f;
        if (jit_is_spill(u))
                return score_register(u, ir);
        if ((op->flags & JIT_OP_HASH) && is_hash_step(u))
                return 2.5f;
        conditions |= conditions_of_ir(u, ir, op);
        s = score_register(u, ir) +
            (u->class == JIT_X_EXIT ? score_exit(ir, op) : APPLY(rules, u, op, conditions));
        if (u->jump == JIT_X_EXIT)
                s += score_exit(ir, op);
        else if (u->jump == JIT_X_INNER)
                s += op->flags & INNER_LOOPS ? 3 : -2;
        return s;
}

float jit_stay_cost(const struct jit_trace *t, const struct jit_unit *before,
                    const struct jit_unit *u, uint32_t ref)
{
        if (is_end(ref) || (op_of(t, ref)->flags & (JIT_OP_HASH | JIT_OP_LOOP | JIT_OP_BARRIER)))
                return 0;
        if (before->jump && u->jump && jit_is_compare(u))
                return 4;
        if (before->class == JIT_X_CALL && u->class == JIT_X_CALL)
                return 12;
        if (jit_is_spill(u))
                return -2;
        return jit_is_reload(u) ? -0.6f : 0;
}

float jit_skip_cost(const struct jit_trace *t, uint32_t ref)
{
        const struct jit_op *op;

        if (is_end(ref))
                return 0.3f;
        op = op_of(t, ref);
        return op->skip * 0.25f +
               ((op->flags & JIT_OP_LOAD) && (t->ir[ref].type & JIT_IR_GUARD) ? 1.5f : 0);
}
