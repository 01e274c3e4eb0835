/* Which x86 instructions LuaJIT's assembler always emits together: a call and its arguments, a
 * compare and its jump, the steps of loading a tagged value. They are aligned as one unit. Called
 * by align.c. */
#include "formats/jit/trace.h"

#define POINTER_SHIFT                                                                              \
        17 /* the tag's bits: what is left of a turned value without them is its pointer */
#define MAX_ARGUMENTS 6                 /* moves before a call that may be its arguments */
#define MAX_STORES 3                    /* stores to an argument in memory */
#define MAX_GC_STEPS 8 /* instructions from the threshold's compare to the collector's call */

int jit_is_compare(const struct jit_unit *u)
{
        return u->class == JIT_X_COMPARE || u->class == JIT_X_COMPARE_MEM ||
               u->class == JIT_X_COMPARE_NUM;
}

int jit_is_spill(const struct jit_unit *u)
{
        return u->class == JIT_X_STORE && u->base == JIT_REG_SP;
}

static int is_argument_register(int r)
{
        return r == 7 || r == 6 || r == 2 || r == 1 || r == 8 || r == 9;
}

static int is_arithmetic(const struct jit_unit *u)
{
        return (u->class >= JIT_X_ADD && u->class <= JIT_X_MAX) || u->class == JIT_X_BITS ||
               u->class == JIT_X_SHIFT || u->class == JIT_X_XOR_NUM || u->class == JIT_X_NEG;
}

/* A value that is stored where an argument of the call will point: lea, then stores. */
static int is_stored_argument(const struct jit_unit *u, uint32_t at)
{
        if ((u[at].class != JIT_X_STORE && u[at].class != JIT_X_STORE_IMM) ||
            !is_argument_register(u[at].base))
                return 0;
        for (uint32_t k = 1; k <= MAX_STORES && k <= at; k++) {
                if (u[at - k].class == JIT_X_LEA && u[at - k].dst == u[at].base)
                        return 1;
        }
        return 0;
}

/* Moves into the registers of arguments right before the call at i. */
static void glue_arguments(struct jit_unit *u, uint32_t i)
{
        for (uint32_t k = 1; k <= MAX_ARGUMENTS && k <= i; k++) {
                struct jit_unit *a = &u[i - k];
                int move = a->class == JIT_X_MOVE || a->class == JIT_X_LEA ||
                           (a->class == JIT_X_LOAD && a->base == JIT_REG_SP);

                if (!is_stored_argument(u, i - k) && !(move && is_argument_register(a->dst)) &&
                    a->class != JIT_X_XOR_NUM && a->class != JIT_X_BITS)
                        break;
                a->glued = 1;
        }
}

int jit_is_reload(const struct jit_unit *u)
{
        if (u->class == JIT_X_LOAD)
                return u->base == JIT_REG_SP || u->state;
        if (u->class == JIT_X_LOAD_NUM)
                return u->base == JIT_REG_SP || u->base == JIT_REG_DISPATCH;
        return u->class == JIT_X_LEA && u->base == JIT_REG_DISPATCH;
}

/* Behind the call at i its result is moved and kept, and registers that it has spoilt are filled
 * again. Not what the next call's arguments are. */
static void glue_reloads(struct jit_unit *u, uint32_t i, uint32_t n)
{
        for (; i + 1 < n && !u[i + 1].glued; i++) {
                const struct jit_unit *a = &u[i + 1];
                int spoilt = a->dst >= JIT_REG_XMM || a->dst <= JIT_REG_DX ||
                             (a->dst >= 6 && a->dst <= 11);
                int result = a->class == JIT_X_MOVE && a->src == 0;
                int spill = jit_is_spill(a) && !jit_is_reload(&u[i]);

                if (!(jit_is_reload(a) && spoilt) && !result && !spill)
                        break;
                u[i].glued = 1;
        }
}

/* A barrier: the table is marked and put into the collector's list. */
static void glue_barrier(struct jit_unit *u, uint32_t i, uint32_t n)
{
        if (i + 3 >= n || u[i].class != JIT_X_BITS || !u[i].memory ||
            u[i + 1].class != JIT_X_LOAD || u[i + 1].base != JIT_REG_DISPATCH ||
            u[i + 2].class != JIT_X_STORE || u[i + 2].base != JIT_REG_DISPATCH ||
            u[i + 2].disp != u[i + 1].disp || u[i + 3].class != JIT_X_STORE)
                return;
        u[i].glued = u[i + 1].glued = u[i + 2].glued = 1;
        if (i > 0 && u[i - 1].class == JIT_X_INNER)
                u[i - 1].glued = 1;
}

/* A move whose register the next instruction changes: the copy is what that needs, or what it must
 * not lose. A constant that the next instruction wants in a register. */
static void glue_move(struct jit_unit *u, uint32_t i, uint32_t n)
{
        const struct jit_unit *next = &u[i + 1];

        if (i + 1 >= n || u[i].class != JIT_X_MOVE)
                return;
        if (!u[i].constant && is_arithmetic(next) &&
            (next->dst == u[i].dst || next->dst == u[i].src))
                u[i].glued = 1;
        if (jit_is_compare(next) && i + 2 < n && u[i + 2].class == JIT_X_SELECT &&
            u[i + 2].dst == u[i].dst)
                u[i].glued = 1;
        if (u[i].constant && next->src == u[i].dst &&
            (jit_is_compare(next) || next->class == JIT_X_STORE))
                u[i].glued = 1;
}

/* A tagged value is loaded turned, its tag compared, and shifted to be a pointer. */
static void glue_tagged(struct jit_unit *u, uint32_t i, uint32_t n)
{
        uint32_t shift = i + 1;

        if (!u[i].turns)
                return;
        if (i > 0 && u[i].class == JIT_X_SHIFT && u[i - 1].class == JIT_X_LOAD &&
            u[i - 1].dst == u[i].dst)
                u[i - 1].glued = 1;
        if (i + 2 < n && u[i + 1].class == JIT_X_COMPARE && u[i + 2].class == JIT_X_EXIT) {
                u[i].glued = u[i + 1].glued = 1;
                shift = i + 3;
        }
        if (shift < n && u[shift].class == JIT_X_SHIFT && u[shift].dst == u[i].dst &&
            u[shift].constant && u[shift].imm == POINTER_SHIFT)
                u[shift - 1].glued = 1;
}

/* The tag of a number is compared in memory before the number is loaded. */
static void glue_number(struct jit_unit *u, uint32_t i, uint32_t n)
{
        if (i + 2 < n && u[i].class == JIT_X_COMPARE_MEM && (uint32_t)u[i].imm == JIT_NUM_TAG &&
            u[i + 1].class == JIT_X_EXIT &&
            (u[i + 2].class == JIT_X_LOAD_NUM ||
             (u[i + 2].class == JIT_X_CONVERT && u[i + 2].memory)) &&
            u[i + 2].base == u[i].base && u[i + 2].disp + 4 == u[i].disp)
                u[i + 1].glued = 1;
}

/* A compare with its jump, and the shifts that bring a type tag down for it. */
static void glue_compare(struct jit_unit *u, uint32_t i, uint32_t n)
{
        if (i + 1 >= n)
                return;
        if (u[i].class == JIT_X_SHIFT && u[i].constant && u[i].imm == JIT_TAG_BITS &&
            u[i + 1].class == JIT_X_COMPARE)
                u[i].glued = 1;
        if (is_arithmetic(&u[i]) && u[i + 1].overflow)
                u[i].glued = 1;
        if (jit_is_compare(&u[i]) && u[i + 1].class == JIT_X_SELECT)
                u[i].glued = 1;
        if (u[i].class == JIT_X_ADD && u[i].dst >= JIT_REG_XMM && u[i + 1].class == JIT_X_CONVERT &&
            u[i + 1].dst < JIT_REG_XMM && u[i + 1].src == u[i].dst)
                u[i].glued = 1;         /* a number made an integer by its low bits */
        if (!jit_is_compare(&u[i]) || !u[i + 1].jump)
                return;
        u[i].glued = 1;
        if (u[i + 1].class == JIT_X_EXIT && i + 2 < n && u[i + 2].class == JIT_X_EXIT)
                u[i + 1].glued = 1;     /* not ordered, then not equal */
        if (i > 1 && u[i].class == JIT_X_COMPARE && u[i - 1].class == JIT_X_SHIFT &&
            u[i - 2].class == JIT_X_MOVE && u[i - 2].dst == u[i - 1].dst)
                u[i - 2].glued = 1;
}

/* The check whether the collector has work: compare with the threshold, jump over the call of the
 * step, an exit. */
static void mark_gc_check(struct jit_unit *u, uint32_t i, uint32_t n)
{
        uint32_t k = i + 2;

        if (u[i].class != JIT_X_COMPARE_MEM || u[i].base != JIT_REG_DISPATCH || k >= n ||
            u[i + 1].class != JIT_X_INNER)
                return;
        while (k < n && k < i + MAX_GC_STEPS && u[k].class != JIT_X_CALL)
                k++;
        if (k + 2 >= n || u[k].class != JIT_X_CALL || u[k + 1].class != JIT_X_COMPARE ||
            u[k + 2].class != JIT_X_EXIT)
                return;
        if (i > 0 && u[i - 1].class == JIT_X_LOAD && u[i - 1].base == JIT_REG_DISPATCH)
                i--;
        for (; i <= k + 2; i++) {
                u[i].gc = 1;
                u[i].glued = i < k + 2;
        }
}

/* A value and its tag: the tag is set in the upper half of the value's slot. */
static void glue_store(struct jit_unit *u, uint32_t i, uint32_t n)
{
        const struct jit_unit *next = &u[i + 1];

        if (i + 1 >= n || (u[i].class != JIT_X_STORE && u[i].class != JIT_X_STORE_IMM) ||
            u[i].base != next->base || !next->memory)
                return;
        if ((next->class == JIT_X_BITS && next->constant && next->disp == u[i].disp + 4) ||
            (u[i].class == JIT_X_STORE_IMM && next->class == JIT_X_STORE_IMM &&
             (next->disp == u[i].disp + 4 || next->disp == u[i].disp - 4)))
                u[i].glued = 1;
}

/* The hash of a key in a register, made from a string's own: the beginning of a search in a
 * table. */
static void glue_hash(struct jit_unit *u, uint32_t i, uint32_t n)
{
        static const uint8_t steps[] = { JIT_X_LOAD, JIT_X_BITS, JIT_X_LEA, JIT_X_SHIFT,
                                         JIT_X_ADD };
        uint32_t count = sizeof(steps);

        if (i + count > n)
                return;
        for (uint32_t k = 0; k < count; k++) {
                if (u[i + k].class != steps[k] || u[i + k].dst != u[i].dst)
                        return;
        }
        for (uint32_t k = 0; k + 1 < count; k++)
                u[i + k].glued = 1;
}

/* A number made an integer, back a number, and compared: it must be the same. */
static void glue_conversion(struct jit_unit *u, uint32_t i, uint32_t n)
{
        uint32_t back = i + 1;

        if (u[i].class != JIT_X_CONVERT || u[i].dst < 0 || u[i].dst >= JIT_REG_XMM)
                return;
        if (back < n && u[back].class == JIT_X_XOR_NUM)
                back++;
        if (back + 2 >= n || u[back].class != JIT_X_CONVERT || u[back].src != u[i].dst ||
            u[back + 1].class != JIT_X_COMPARE_NUM || u[back + 2].class != JIT_X_EXIT)
                return;
        for (; i < back + 2; i++)
                u[i].glued = 1;
}

/* A value that is put into its spill slot as soon as it is there. */
static void glue_spill(struct jit_unit *u, uint32_t i, uint32_t n)
{
        if (i + 1 < n && u[i].dst >= 0 && jit_is_spill(&u[i + 1]) && u[i + 1].src == u[i].dst)
                u[i].glued = 1;
}

/* Loads of the Lua stack's base and of the coroutine, which stands before it in the global
 * state. */
static void mark_state(struct jit_unit *u, uint32_t n)
{
        int64_t base = 0;

        for (uint32_t i = 0; i < n && !base; i++) {
                if (u[i].class == JIT_X_LOAD && u[i].base == JIT_REG_DISPATCH &&
                    u[i].dst == JIT_REG_DX)
                        base = u[i].disp;
        }
        for (uint32_t i = 0; i < n; i++) {
                if (u[i].class == JIT_X_LOAD && u[i].base == JIT_REG_DISPATCH && base &&
                    (u[i].disp == base || u[i].disp == base - 8))
                        u[i].state = 1;
        }
}

void jit_mark(struct jit_unit *u, uint32_t n)
{
        mark_state(u, n);
        for (uint32_t i = 0; i < n; i++) {
                if (u[i].class == JIT_X_CALL)
                        glue_arguments(u, i);
        }
        for (uint32_t i = 0; i < n; i++) {
                if (u[i].class == JIT_X_CALL)
                        glue_reloads(u, i, n);
                glue_barrier(u, i, n);
                glue_move(u, i, n);
                glue_spill(u, i, n);
                glue_tagged(u, i, n);
                glue_number(u, i, n);
                glue_conversion(u, i, n);
                glue_store(u, i, n);
                glue_hash(u, i, n);
                glue_compare(u, i, n);
                mark_gc_check(u, i, n);
        }
}

/* The instruction that says most of a group: its call, its conversion, its first compare, its load,
 * else the last. */
static uint32_t speaker(const struct jit_unit *in, uint32_t first, uint32_t last)
{
        uint32_t what;

        while (last > first && jit_is_spill(&in[last]))
                last--;
        what = last;
        if (in[first].class == JIT_X_CONVERT && in[last].jump)
                return first;
        if (in[first].class == JIT_X_STORE || in[first].class == JIT_X_STORE_IMM)
                what = first;           /* unless it is an argument of a call */
        for (uint32_t i = last + 1; i-- > first;) {
                if (in[i].class == JIT_X_CALL)
                        return i;
                if (i < last && in[i + 1].jump && (jit_is_compare(&in[i]) || in[i + 1].overflow))
                        what = i;
                else if (in[i].turns && in[i].class == JIT_X_LOAD && what == last && !in[last].jump)
                        what = i;
        }
        return what;
}

uint32_t jit_group(const struct jit_unit *in, uint32_t n, struct jit_unit *out)
{
        uint32_t made = 0;

        for (uint32_t i = 0; i < n; i++) {
                uint32_t last = i, what;
                struct jit_unit u;

                while (last + 1 < n && in[last].glued)
                        last++;
                what = speaker(in, i, last);
                u = in[what];
                if (jit_is_compare(&u) && (in[i].class == JIT_X_SHIFT || in[i].class == JIT_X_LOAD))
                        u.dst = in[i].dst;      /* what was loaded; the compare is of its tag */
                for (uint32_t k = what + 1; jit_is_compare(&u) && k <= last; k++) {
                        if (in[k].class == JIT_X_LOAD_NUM || in[k].class == JIT_X_CONVERT)
                                u.dst = in[k].dst;
                }
                u.start = in[i].start;
                u.end = in[last].end;
                u.jump = 0;
                for (uint32_t k = i; k <= last && last > i; k++)
                        u.jump = in[k].jump ? in[k].jump : u.jump;
                out[made++] = u;
                i = last;
        }
        return made;
}
