/* What is known of LuaJIT's IR instructions, by name: their numbers differ between versions, so
 * they come from the names of the VM that compiled the trace. Called by map.c. */
#include "formats/jit/trace.h"

#include <string.h>

#define NAME_SIZE 6 /* bytes of a name in jit.vmdef.irnames, padded with spaces */

static const struct {
        char name[NAME_SIZE + 1];
        uint32_t flags;
        uint8_t class, skip;
} known[] = {
        { "LT", JIT_OP_COMPARE | JIT_OP_ORDER, 0, 18 },
        { "GE", JIT_OP_COMPARE | JIT_OP_ORDER, 0, 18 },
        { "LE", JIT_OP_COMPARE | JIT_OP_ORDER, 0, 18 },
        { "GT", JIT_OP_COMPARE | JIT_OP_ORDER, 0, 18 },
        { "ULT", JIT_OP_COMPARE | JIT_OP_ORDER, 0, 18 },
        { "UGE", JIT_OP_COMPARE | JIT_OP_ORDER, 0, 18 },
        { "ULE", JIT_OP_COMPARE | JIT_OP_ORDER, 0, 18 },
        { "UGT", JIT_OP_COMPARE | JIT_OP_ORDER, 0, 18 },
        { "EQ", JIT_OP_COMPARE, 0, 18 },
        { "NE", JIT_OP_COMPARE, 0, 18 },
        { "ABC", JIT_OP_COMPARE, 0, 18 },
        { "RETF", JIT_OP_EFFECT, 0, 16 },
        { "NOP", JIT_OP_NOCODE | JIT_OP_RENAME, 0, 0 },
        { "BASE", JIT_OP_NOCODE, 0, 0 },
        { "PVAL", 0, 0, 6 },
        { "GCSTEP", JIT_OP_GC | JIT_OP_UNCHECKED | JIT_OP_EFFECT | JIT_OP_CALL | JIT_OP_JUMPS, 0,
          6 },
        { "HIOP", JIT_OP_NOCODE, 0, 0 },
        { "LOOP", JIT_OP_UNCHECKED | JIT_OP_EFFECT | JIT_OP_LOOP | JIT_OP_JUMPS, 0, 6 },
        { "USE", JIT_OP_NOCODE, 0, 0 },
        { "PHI", JIT_OP_NOCODE | JIT_OP_RENAME, 0, 0 },
        { "RENAME", JIT_OP_NOCODE | JIT_OP_RENAME, 0, 0 },
        { "PROF", JIT_OP_EFFECT, 0, 6 },
        { "BNOT", 0, JIT_X_BITS, 14 },
        { "BSWAP", 0, JIT_X_BITS, 14 },
        { "BAND", 0, JIT_X_BITS, 14 },
        { "BOR", 0, JIT_X_BITS, 14 },
        { "BXOR", 0, JIT_X_BITS, 14 },
        { "BSHL", 0, JIT_X_SHIFT, 14 },
        { "BSHR", 0, JIT_X_SHIFT, 14 },
        { "BSAR", 0, JIT_X_SHIFT, 14 },
        { "BROL", 0, JIT_X_SHIFT, 14 },
        { "BROR", 0, JIT_X_SHIFT, 14 },
        { "ADD", 0, JIT_X_ADD, 14 },
        { "SUB", 0, JIT_X_SUB, 14 },
        { "MUL", 0, JIT_X_MUL, 14 },
        { "DIV", 0, JIT_X_DIV, 14 },
        { "MOD", JIT_OP_CALL | JIT_OP_SURE_CALL, 0, 28 },
        { "POW", JIT_OP_CALL | JIT_OP_SURE_CALL, 0, 20 },
        { "NEG", 0, JIT_X_XOR_NUM, 14 },
        { "ABS", 0, JIT_X_XOR_NUM, 14 },
        { "LDEXP", JIT_OP_CALL, 0, 14 },
        { "MIN", 0, JIT_X_MIN, 14 },
        { "MAX", 0, JIT_X_MAX, 14 },
        { "FPMATH", JIT_OP_CALL, JIT_X_ROUND, 14 },
        { "ADDOV", JIT_OP_WEAK, JIT_X_ADD, 14 },
        { "SUBOV", JIT_OP_WEAK, JIT_X_SUB, 14 },
        { "MULOV", JIT_OP_WEAK, JIT_X_MUL, 14 },
        { "AREF", 0, JIT_X_LEA, 14 },
        { "HREFK", JIT_OP_LINK, 0, 16 },
        { "HREF", JIT_OP_HASH | JIT_OP_JUMPS, 0, 2 },
        { "NEWREF", JIT_OP_CALL | JIT_OP_JUMPS | JIT_OP_SURE_CALL, 0, 28 },
        { "UREFO", JIT_OP_RARE_EXIT | JIT_OP_LOAD | JIT_OP_WEAK, 0, 10 },
        { "UREFC", JIT_OP_LOAD | JIT_OP_WEAK, 0, 10 },
        { "FREF", 0, JIT_X_LEA, 14 },
        { "TMPREF", 0, JIT_X_LEA, 14 },
        { "STRREF", 0, JIT_X_LEA, 14 },
        { "LREF", JIT_OP_LOAD, 0, 10 },
        { "ALOAD", JIT_OP_LOAD, 0, 10 },
        { "HLOAD", JIT_OP_LOAD, 0, 10 },
        { "ULOAD", JIT_OP_LOAD, 0, 10 },
        { "FLOAD", JIT_OP_LOAD, 0, 10 },
        { "XLOAD", JIT_OP_LOAD, 0, 10 },
        { "SLOAD", JIT_OP_LOAD | JIT_OP_SLOT, 0, 10 },
        { "VLOAD", JIT_OP_LOAD, 0, 10 },
        { "ALEN", JIT_OP_LOAD | JIT_OP_CALL | JIT_OP_SURE_CALL, 0, 14 },
        { "ASTORE", JIT_OP_STORE | JIT_OP_EFFECT, 0, 18 },
        { "HSTORE", JIT_OP_STORE | JIT_OP_EFFECT, 0, 18 },
        { "USTORE", JIT_OP_STORE | JIT_OP_EFFECT, 0, 18 },
        { "FSTORE", JIT_OP_STORE | JIT_OP_EFFECT, 0, 18 },
        { "XSTORE", JIT_OP_STORE | JIT_OP_EFFECT, 0, 18 },
        { "SNEW", JIT_OP_CALL | JIT_OP_SURE_CALL, 0, 28 },
        { "XSNEW", JIT_OP_CALL | JIT_OP_SURE_CALL, 0, 28 },
        { "TNEW", JIT_OP_CALL | JIT_OP_WEAK | JIT_OP_NOEXIT | JIT_OP_SURE_CALL | JIT_OP_NEW, 0,
          28 },
        { "TDUP", JIT_OP_CALL | JIT_OP_WEAK | JIT_OP_NOEXIT | JIT_OP_SURE_CALL | JIT_OP_NEW, 0,
          28 },
        { "CNEW", JIT_OP_CALL | JIT_OP_WEAK | JIT_OP_NOEXIT | JIT_OP_SURE_CALL | JIT_OP_NEW, 0,
          28 },
        { "CNEWI", JIT_OP_CALL | JIT_OP_WEAK | JIT_OP_NOEXIT | JIT_OP_NEW, 0, 6 },
        { "BUFHDR", JIT_OP_JUMPS, 0, 6 },
        { "BUFPUT",
          JIT_OP_EFFECT | JIT_OP_CALL | JIT_OP_JUMPS | JIT_OP_WEAK | JIT_OP_NOEXIT |
                  JIT_OP_SURE_CALL | JIT_OP_NEW,
          0, 28 },
        { "BUFSTR", JIT_OP_CALL | JIT_OP_WEAK | JIT_OP_NOEXIT | JIT_OP_SURE_CALL | JIT_OP_NEW, 0,
          28 },
        { "TBAR", JIT_OP_EFFECT | JIT_OP_BARRIER | JIT_OP_JUMPS, 0, 6 },
        { "OBAR", JIT_OP_EFFECT | JIT_OP_BARRIER | JIT_OP_JUMPS | JIT_OP_CALL, 0, 6 },
        { "XBAR", JIT_OP_NOCODE, 0, 0 },
        { "CONV", JIT_OP_JUMPS, JIT_X_CONVERT, 14 },
        { "TOBIT", 0, JIT_X_CONVERT, 14 },
        { "TOSTR", JIT_OP_CALL | JIT_OP_SURE_CALL, 0, 28 },
        { "STRTO", JIT_OP_CALL | JIT_OP_SURE_CALL, 0, 20 },
        { "CALLN", JIT_OP_CALL | JIT_OP_WEAK | JIT_OP_NOEXIT | JIT_OP_SURE_CALL | JIT_OP_NEW, 0,
          28 },
        { "CALLA", JIT_OP_CALL | JIT_OP_WEAK | JIT_OP_NOEXIT | JIT_OP_SURE_CALL | JIT_OP_NEW, 0,
          28 },
        { "CALLL", JIT_OP_CALL | JIT_OP_WEAK | JIT_OP_NOEXIT | JIT_OP_SURE_CALL | JIT_OP_NEW, 0,
          28 },
        { "CALLS", JIT_OP_CALL | JIT_OP_EFFECT | JIT_OP_SURE_CALL, 0, 28 },
        { "CALLXS", JIT_OP_CALL | JIT_OP_EFFECT | JIT_OP_SURE_CALL, 0, 28 },
        { "CARG", JIT_OP_NOCODE, 0, 0 },
};

void jit_ops_init(struct jit_ops *ops, const char *irnames, size_t len)
{
        memset(ops, 0, sizeof(*ops));
        for (size_t o = 0; o < 256; o++) {
                const char *name = irnames + o * NAME_SIZE;
                struct jit_op *op = &ops->op[o];

                op->skip = 6;
                if (len < (o + 1) * NAME_SIZE)
                        continue;
                for (size_t k = 0; k < sizeof(known) / sizeof(*known); k++) {
                        size_t n = strlen(known[k].name);

                        if (memcmp(name, known[k].name, n) || (n < NAME_SIZE && name[n] != ' '))
                                continue;
                        *op = (struct jit_op){ known[k].flags, known[k].class, known[k].skip };
                        break;
                }
        }
}

int jit_ir_emits(const struct jit_ops *ops, const struct jit_ir *ir)
{
        uint32_t flags = ops->op[ir->op].flags;

        if ((flags & JIT_OP_NOCODE) || ir->reg == JIT_REG_SUNK || ir->reg == JIT_REG_SUNK - 1)
                return 0;
        if ((ir->type & JIT_IR_GUARD) && !(flags & JIT_OP_WEAK))
                return 1;
        return !(ir->reg & JIT_REG_NONE) || ir->spill || (flags & JIT_OP_EFFECT);
}
