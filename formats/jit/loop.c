/* The second half of a loop's trace is a copy of the first, made instruction by instruction when
 * the loop was optimised: what does not change in the loop is left out, the rest goes through
 * LuaJIT's folding again and may come out as something else, or not at all. Nothing tells which
 * instruction a copy was made from, but their order is kept: a dynamic programme over both halves
 * finds out, by opcode, type, operands, and the bytecode that the snapshot before each goes back
 * to. A second round knows from the first what the operands were copied from. Called by map.c. */
#include "formats/jit/map.h"
#include "formats/jit/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a pair is worth when its opcodes agree. */
#define SAME_OP 2.0f
#define OTHER_ORDER 0.5f                /* LT for GE and the like */
#define SAME_TYPE 1.0f
#define SAME_OPERAND 2.0f
#define LIKE_OPERAND 1.5f /* another reference of the same opcode: a copy itself, most likely */
#define SAME_PLACE 3.0f
/* Of operands, when a first round has told what was copied from what. */
#define COPIED_OPERAND 2.5f             /* the copy of the original's */
#define KEPT_OPERAND 2.0f               /* the same, and it has no copy */
#define STALE_OPERAND 0.5f /* the same, though it has a copy; or another of the same opcode */
#define EXTRA_COPIES 64    /* copies that may stand before the original of as many: conversions */

enum { FROM_NONE, FROM_SKIP_ORIGINAL, FROM_SKIP_COPY, FROM_PAIR };

struct halves {
        struct jit_trace *t;
        uint32_t n1, n2;                /* instructions in the first half and in the copy */
        uint32_t end;                   /* of the copy */
        uint16_t *snap;                 /* snapshot that each reference follows */
        uint8_t *copied;                /* of each original: it has a copy, after the first round */
        int again;                      /* the second round: origin and copied are set */
        float *sums;                    /* two rows of n2 + 1 */
        uint8_t *from;                  /* (n1 + 1) * (n2 + 1) */
};

/* a of the original, b of the copy. */
static float score_known_operand(const struct halves *h, uint32_t a, uint32_t b)
{
        uint32_t nir = h->t->head->nir;

        if (a >= nir || b >= nir)
                return 0;
        if (b > h->t->loop && h->t->origin[b] == a)
                return COPIED_OPERAND;
        if (a == b)
                return h->copied[a] ? STALE_OPERAND : KEPT_OPERAND;
        return h->t->ir[a].op == h->t->ir[b].op ? STALE_OPERAND : 0;
}

static float score_operand(const struct halves *h, uint16_t original, uint16_t copied)
{
        uint32_t nir = h->t->head->nir;
        uint32_t a, b;

        if (original < JIT_OPERAND_BIAS || copied < JIT_OPERAND_BIAS)
                return original == copied ? SAME_OPERAND : 0;
        a = original - JIT_OPERAND_BIAS;
        b = copied - JIT_OPERAND_BIAS;
        if (h->again)
                return score_known_operand(h, a, b);
        if (a == b)
                return SAME_OPERAND;
        return a < nir && b < nir && h->t->ir[a].op == h->t->ir[b].op ? LIKE_OPERAND : 0;
}

static int same_place(const struct ls_jit_snapshot *a, const struct ls_jit_snapshot *b)
{
        return a->function == b->function && a->pos == b->pos;
}

/* What it is worth that copy stems from original; negative = it cannot. */
static float score_pair(const struct halves *h, uint32_t original, uint32_t copy)
{
        const struct jit_trace *t = h->t;
        const struct jit_ir *o = &t->ir[original], *c = &t->ir[copy];
        uint32_t so = h->snap[original], sc = h->snap[copy];
        float s;

        if (o->op == c->op)
                s = SAME_OP;
        else if (t->ops.op[o->op].flags & t->ops.op[c->op].flags & JIT_OP_ORDER)
                s = OTHER_ORDER;
        else
                return -1;
        s += (o->type & JIT_IR_TYPE) == (c->type & JIT_IR_TYPE) ? SAME_TYPE : 0;
        s += score_operand(h, o->op1, c->op1) + score_operand(h, o->op2, c->op2);
        if (so > 0 && sc > 0 && t->snapshots[sc].ref > t->loop)
                s += same_place(&t->snapshots[so], &t->snapshots[sc]) ? SAME_PLACE : -SAME_PLACE;
        return s;
}

static void find_snapshots(struct halves *h)
{
        const struct jit_trace *t = h->t;
        uint32_t s = 0;

        for (uint32_t ref = 0; ref < t->head->nir; ref++) {
                while (s + 1 < t->head->nsnapshots && t->snapshots[s + 1].ref <= ref)
                        s++;
                h->snap[ref] = (uint16_t)s;
        }
}

/* Row i: the best sums with the first i originals, for each number of copies. */
static void fill(struct halves *h)
{
        uint32_t width = h->n2 + 1;
        float *above = h->sums, *row = h->sums + width;

        for (uint32_t i = 1; i <= h->n1; i++) {
                uint32_t last = i + EXTRA_COPIES < h->n2 ? i + EXTRA_COPIES : h->n2;
                uint8_t *from = h->from + (size_t)i * width;
                float *swap = above;

                row[0] = 0;
                for (uint32_t j = 1; j <= last; j++) {
                        float pair = score_pair(h, i, h->t->loop + j);

                        row[j] = above[j];
                        from[j] = FROM_SKIP_ORIGINAL;
                        if (row[j - 1] > row[j]) {
                                row[j] = row[j - 1];
                                from[j] = FROM_SKIP_COPY;
                        }
                        if (pair >= 0 && above[j - 1] + pair > row[j]) {
                                row[j] = above[j - 1] + pair;
                                from[j] = FROM_PAIR;
                        }
                }
                for (uint32_t j = last + 1; j <= h->n2; j++) {
                        row[j] = row[last];
                        from[j] = FROM_SKIP_COPY;
                }
                above = row;
                row = swap;
        }
}

static void trace_back(struct halves *h)
{
        uint32_t i = h->n1, j = h->n2, current = h->n1;

        memset(h->copied, 0, h->t->head->nir);
        while (j > 0) {
                int from = i ? h->from[(size_t)i * (h->n2 + 1) + j] : FROM_SKIP_COPY;

                if (from == FROM_SKIP_ORIGINAL) {
                        i--;
                        continue;
                }
                if (from == FROM_PAIR) {
                        h->copied[i] = 1;
                        current = i--;
                }
                h->t->origin[h->t->loop + j--] = (uint16_t)current;
        }
}

/* Too much for the dynamic programme: as if copies were spread evenly. */
static void interpolate(struct halves *h)
{
        for (uint32_t j = 1; j <= h->n2; j++)
                h->t->origin[h->t->loop + j] = (uint16_t)(1 + (uint64_t)(j - 1) * h->n1 / h->n2);
        h->t->doubt |= LS_JIT_TOO_LARGE;
}

int jit_loop_origins(struct jit_trace *t)
{
        struct halves h = { .t = t, .end = t->head->nir };
        int r = 0;

        for (uint32_t ref = 0; ref < t->head->nir; ref++)
                t->origin[ref] = (uint16_t)ref;
        if (!t->loop)
                return 0;
        while (h.end > t->loop + 1 && (t->ops.op[t->ir[h.end - 1].op].flags & JIT_OP_RENAME))
                h.end--;
        h.n1 = t->loop - 1;
        h.n2 = h.end - t->loop - 1;
        if (!h.n1 || !h.n2)
                return 0;
        if (h.n1 + 1 > t->cells / 2 / (h.n2 + 1)) {
                interpolate(&h);
                return 0;
        }
        t->cells -= 2 * (h.n1 + 1) * (h.n2 + 1);
        h.snap = calloc(t->head->nir, sizeof(*h.snap));
        h.sums = calloc(2 * ((size_t)h.n2 + 1), sizeof(*h.sums));
        h.from = calloc((size_t)(h.n1 + 1) * (h.n2 + 1), 1);
        h.copied = calloc(t->head->nir, 1);
        if (h.snap && h.sums && h.from && h.copied) {
                find_snapshots(&h);
                for (h.again = 0; h.again < 2; h.again++) {
                        memset(h.sums, 0, 2 * ((size_t)h.n2 + 1) * sizeof(*h.sums));
                        fill(&h);
                        trace_back(&h);
                }
        } else {
                r = -ENOMEM;
        }
        free(h.snap);
        free(h.sums);
        free(h.from);
        free(h.copied);
        return r;
}
