/* Values of the DWARF expressions that call frame information uses: entries of a PLT, frames of
 * signals, functions that align their stack. Declared in cfi.h, called by native/unwind.c for the
 * few rows that need it. */
#include <dwarf.h>
#include <errno.h>
#include <stdint.h>

#include "record/worker/cfi_eval.h"

#define STACK_MAX 16
#define OPS_MAX 64

struct machine {
        uint64_t stack[STACK_MAX];
        unsigned depth;
};

static int push(struct machine *m, uint64_t value)
{
        if (m->depth == STACK_MAX)
                return -EINVAL;
        m->stack[m->depth++] = value;
        return 0;
}

static int push_register(struct machine *m, const struct ls_cfi_values *v, uint64_t reg,
                         uint64_t offset)
{
        if (reg >= LS_NREGS || !(v->known >> reg & 1))
                return -EINVAL;
        return push(m, v->reg[reg] + offset);
}

/* Operations on the two topmost values, a under b. */
static int binary(unsigned op, uint64_t a, uint64_t b, uint64_t *ret)
{
        switch (op) {
        case DW_OP_and:   *ret = a & b; return 0;
        case DW_OP_or:    *ret = a | b; return 0;
        case DW_OP_xor:   *ret = a ^ b; return 0;
        case DW_OP_plus:  *ret = a + b; return 0;
        case DW_OP_minus: *ret = a - b; return 0;
        case DW_OP_mul:   *ret = a * b; return 0;
        case DW_OP_shl:   *ret = b < 64 ? a << b : 0; return 0;
        case DW_OP_shr:   *ret = b < 64 ? a >> b : 0; return 0;
        case DW_OP_eq:    *ret = a == b; return 0;
        case DW_OP_ne:    *ret = a != b; return 0;
        case DW_OP_lt:    *ret = (int64_t)a < (int64_t)b; return 0;
        case DW_OP_le:    *ret = (int64_t)a <= (int64_t)b; return 0;
        case DW_OP_gt:    *ret = (int64_t)a > (int64_t)b; return 0;
        case DW_OP_ge:    *ret = (int64_t)a >= (int64_t)b; return 0;
        default:          return -EINVAL;
        }
}

static int apply(struct machine *m, const Dwarf_Op *op, const struct ls_cfi_values *v)
{
        uint64_t *top = m->depth ? &m->stack[m->depth - 1] : NULL;

        if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
                return push(m, op->atom - DW_OP_lit0);
        if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
                return push_register(m, v, op->atom - DW_OP_breg0, op->number);
        if (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts) /* libdw has extended the sign */
                return push(m, op->number);
        switch (op->atom) {
        case DW_OP_bregx:          return push_register(m, v, op->number, op->number2);
        case DW_OP_call_frame_cfa: return push(m, v->cfa);
        case DW_OP_nop:            return 0;
        case DW_OP_dup:            return top ? push(m, *top) : -EINVAL;
        case DW_OP_deref:          return top ? v->read(v->ctx, *top, top) : -EINVAL;
        case DW_OP_drop:
                m->depth -= top ? 1 : 0;
                return top ? 0 : -EINVAL;
        case DW_OP_plus_uconst:
                if (top)
                        *top += op->number;
                return top ? 0 : -EINVAL;
        default:
                if (m->depth < 2)
                        return -EINVAL;
                m->depth--;
                return binary(op->atom, top[-1], top[0], top - 1);
        }
}

int ls_cfi_eval(const Dwarf_Op *ops, size_t n, const struct ls_cfi_values *v, uint64_t *ret)
{
        struct machine m = { .depth = 0 };

        if (n > OPS_MAX)
                return -EINVAL;
        for (size_t i = 0; i < n; i++) {
                int err = apply(&m, &ops[i], v);

                if (err < 0)
                        return err;
        }
        if (!m.depth)
                return -EINVAL;
        *ret = m.stack[m.depth - 1];
        return 0;
}
