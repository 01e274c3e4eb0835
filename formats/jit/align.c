/* Which IR instruction each byte of a trace's machine code comes from. LuaJIT assembles backwards,
 * one IR instruction after the other, so the code is in the order of the IR; its snapshots tell
 * exact borders in both. Between two borders the x86 instructions are aligned with the IR
 * instructions that emit code by a monotone dynamic programme: every unit gets an IR instruction,
 * scored by how well it fits (score.c); leaving one out costs what its kind makes unlikely. Called
 * by map.c. */
#include "formats/jit/map.h"
#include "formats/jit/trace.h"

#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_STEP 0.05f                /* a unit more on the same instruction */

struct border {                         /* code from offset on belongs to references from ref on */
        uint32_t ref, offset;
};

struct region {
        struct jit_trace *t;
        const struct jit_unit *units;
        uint32_t nunits;
        const uint16_t *refs;           /* what can be the origin, ascending; HEAD and TAIL among
                                         * them */
        uint32_t nrefs;
};

static const struct jit_op *op_of(const struct jit_trace *t, uint32_t ref)
{
        return &t->ops.op[t->ir[ref].op];
}

static void set_at(struct jit_trace *t, uint32_t start, uint32_t end, uint32_t ref)
{
        for (; start < end && start < t->code_size; start++)
                t->at[start] = (uint16_t)ref;
}

/* Without a look at the code: each instruction gets an equal part of it. */
static void interpolate(struct jit_trace *t, uint32_t start, uint32_t end, const uint16_t *refs,
                        uint32_t nrefs)
{
        for (uint32_t k = 0; k < nrefs && end > start; k++) {
                uint64_t size = end - start;

                set_at(t, start + (uint32_t)(size * k / nrefs),
                       start + (uint32_t)(size * (k + 1) / nrefs), refs[k]);
        }
}

/* The dynamic programme. best[j] = the best sum when the unit is given to refs[j]; from[i * nrefs +
 * j] = where the unit before it was then. skipped[j] = sum of the costs of skipping refs before
 * j. */
static void fill(const struct region *r, float *best, float *next, const float *skipped,
                 uint16_t *from)
{
        for (uint32_t j = 0; j < r->nrefs; j++)
                best[j] = jit_score(r->t, &r->units[0], r->refs[j]) - skipped[j];
        for (uint32_t i = 1; i < r->nunits; i++) {
                float left = -FLT_MAX;
                uint32_t left_j = 0;

                for (uint32_t j = 0; j < r->nrefs; j++) {
                        float stay =
                                jit_stay_cost(r->t, &r->units[i - 1], &r->units[i], r->refs[j]);
                        float v = best[j] - SMALL_STEP - stay;
                        uint32_t f = j;

                        if (j > 0 && best[j - 1] + skipped[j] > left) {
                                left = best[j - 1] + skipped[j];
                                left_j = j - 1;
                        }
                        if (j > 0 && left - skipped[j] >= v) {
                                v = left - skipped[j];
                                f = left_j;
                        }
                        next[j] = v + jit_score(r->t, &r->units[i], r->refs[j]);
                        from[(size_t)i * r->nrefs + j] = (uint16_t)f;
                }
                memcpy(best, next, r->nrefs * sizeof(*best));
        }
}

static void trace_back(const struct region *r, const float *best, const float *skipped,
                       const uint16_t *from)
{
        float top = -FLT_MAX;
        uint32_t j = 0;

        for (uint32_t k = 0; k < r->nrefs; k++) {
                float v = best[k] - (skipped[r->nrefs] - skipped[k + 1]);

                if (v > top) {
                        top = v;
                        j = k;
                }
        }
        for (uint32_t i = r->nunits; i-- > 0;) {
                set_at(r->t, r->units[i].start, r->units[i].end, r->refs[j]);
                if (i > 0)
                        j = from[(size_t)i * r->nrefs + j];
        }
}

static int align_region(const struct region *r)
{
        uint32_t start, end;
        float *sums;
        uint16_t *from;
        int ret = 0;

        if (!r->nunits || !r->nrefs)
                return 0;
        start = r->units[0].start;
        end = r->units[r->nunits - 1].end;
        if (r->nrefs == 1) {
                set_at(r->t, start, end, r->refs[0]);
                return 0;
        }
        if (r->nunits > r->t->cells / r->nrefs) {
                r->t->doubt |= LS_JIT_TOO_LARGE;
                interpolate(r->t, start, end, r->refs, r->nrefs);
                return 0;
        }
        r->t->cells -= r->nunits * r->nrefs;
        sums = calloc(3 * (size_t)r->nrefs + 1, sizeof(*sums));
        from = calloc((size_t)r->nunits * r->nrefs, sizeof(*from));
        if (sums && from) {
                float *skipped = sums + 2 * (size_t)r->nrefs;

                for (uint32_t j = 0; j < r->nrefs; j++)
                        skipped[j + 1] = skipped[j] + jit_skip_cost(r->t, r->refs[j]);
                fill(r, sums, sums + r->nrefs, skipped, from);
                trace_back(r, sums, skipped, from);
        } else {
                ret = -ENOMEM;
        }
        free(sums);
        free(from);
        return ret;
}

static void add_border(struct border *b, uint32_t *n, uint32_t ref, uint32_t offset)
{
        if (ref >= b[*n - 1].ref && offset >= b[*n - 1].offset)
                b[(*n)++] = (struct border){ ref, offset };
}

/* The borders that the trace tells, ascending in both; room for nsnapshots + 3. Returns how
 * many. */
static uint32_t find_borders(const struct jit_trace *t, struct border *b)
{
        const struct ls_rec_jittrace *h = t->head;
        int loop = t->loop && h->mcode_loop;
        uint32_t n = 0;

        b[n++] = (struct border){ 1, 0 };
        for (uint32_t i = 1; i < h->nsnapshots; i++) {
                const struct ls_jit_snapshot *s = &t->snapshots[i];

                if (loop && s->ref > t->loop) {
                        add_border(b, &n, t->loop, h->mcode_loop);
                        loop = 0;
                }
                /* 0 = never reached; more than the code has been seen in traces whose end was
                 * patched. */
                if (s->mcofs && s->mcofs <= t->code_size && s->ref < h->nir)
                        add_border(b, &n, s->ref, s->mcofs);
        }
        if (loop)
                add_border(b, &n, t->loop, h->mcode_loop);
        while (n > 1 && b[n - 1].offset > t->code_size)
                n--;
        b[n++] = (struct border){ h->nir, t->code_size };
        return n;
}

/* What can have emitted the code of the k-th of n regions. */
static uint32_t find_refs(const struct jit_trace *t, const struct border *b, uint32_t k, uint32_t n,
                          uint16_t *refs)
{
        uint32_t found = 0;

        if (k == 0)
                refs[found++] = LS_JIT_REF_HEAD;
        for (uint32_t ref = b[k].ref; ref < b[k + 1].ref; ref++) {
                if (jit_ir_emits(&t->ops, &t->ir[ref]))
                        refs[found++] = (uint16_t)ref;
        }
        if (k + 1 == n)
                refs[found++] = LS_JIT_REF_TAIL;
        if (!found)
                refs[found++] = (uint16_t)(b[k].ref < t->head->nir ? b[k].ref : t->head->nir - 1);
        return found;
}

/* In the first region and the loop's, all up to the end of the collector's check stands before the
 * instructions, unless it is an instruction of its own. */
static uint32_t skip_gc_check(struct jit_trace *t, const struct jit_unit *u, uint32_t first,
                              uint32_t end, uint32_t ref)
{
        uint32_t behind = first;

        for (uint32_t i = first; i < end; i++) {
                if (u[i].gc)
                        behind = i + 1;
        }
        for (uint32_t i = first; i < behind; i++)
                set_at(t, u[i].start, u[i].end, ref);
        return behind;
}

static int has_gc_step(const struct jit_trace *t, const uint16_t *refs, uint32_t n)
{
        for (uint32_t k = 0; k < n; k++) {
                if (refs[k] != LS_JIT_REF_HEAD && refs[k] != LS_JIT_REF_TAIL &&
                    (op_of(t, refs[k])->flags & JIT_OP_GC))
                        return 1;
        }
        return 0;
}

static int align_regions(struct jit_trace *t, const struct jit_unit *all, uint32_t nall,
                         const struct border *b, uint32_t n, uint16_t *refs, struct jit_unit *units)
{
        uint32_t at = 0;

        for (uint32_t k = 0; k < n; k++) {
                struct region r = { .t = t, .units = units, .refs = refs };
                uint32_t first, end;
                int ret;

                r.nrefs = find_refs(t, b, k, n, refs);
                while (at < nall && all[at].start < b[k].offset)
                        at++;
                for (first = end = at; end < nall && all[end].start < b[k + 1].offset;)
                        end++;
                at = end;
                if (!all) {
                        interpolate(t, b[k].offset, b[k + 1].offset, refs, r.nrefs);
                        continue;
                }
                if ((k == 0 || (t->loop && b[k].ref == t->loop)) && !has_gc_step(t, refs, r.nrefs))
                        first = skip_gc_check(t, all, first, end,
                                              k == 0 ? LS_JIT_REF_HEAD : t->loop);
                r.nunits = jit_group(all + first, end - first, units);
                ret = align_region(&r);
                if (ret < 0)
                        return ret;
        }
        return 0;
}

/* Exit jumps and calls that each reference got: got[2 * ref], got[2 * ref + 1]. */
static void count_jumps(const struct jit_trace *t, const struct jit_unit *all, uint32_t nall,
                        uint16_t *got)
{
        for (uint32_t i = 0; i < nall; i++) {
                uint32_t ref = t->at[all[i].start];
                /* not ordered or not equal: two jumps of one compare */
                int second = i > 0 && all[i - 1].class == JIT_X_EXIT && all[i - 1].glued;

                if (all[i].gc || ref == LS_JIT_REF_HEAD || ref >= t->head->nir)
                        continue;
                if (all[i].class == JIT_X_EXIT && !second && got[2 * ref] < UINT16_MAX)
                        got[2 * ref]++;
                if (all[i].class == JIT_X_CALL && got[2 * ref + 1] < UINT16_MAX)
                        got[2 * ref + 1]++;
        }
}

/* Which references call; checks of the collector are none's. */
static void note_calls(struct jit_trace *t, const struct jit_unit *all, uint32_t nall)
{
        for (uint32_t i = 0; i < nall; i++) {
                uint32_t ref = t->at[all[i].start];

                if (all[i].class == JIT_X_CALL && !all[i].gc && ref < t->head->nir)
                        t->calls[ref] = !(op_of(t, ref)->flags & JIT_OP_GC);
        }
}

/* The share of guards that have exactly one exit jump, and of calling instructions that have a
 * call, must be nearly all. A load of a number that must be an integer has two jumps, for its type
 * and its value. */
static int check_fails(const struct jit_trace *t, const struct jit_unit *all, uint32_t nall)
{
        uint32_t nir = t->head->nir, wanted = 0, right = 0;
        uint16_t *got = calloc(2 * (size_t)nir, sizeof(*got));

        if (!got)
                return 1;
        count_jumps(t, all, nall, got);
        for (uint32_t ref = 1; ref < nir; ref++) {
                const struct jit_op *op = op_of(t, ref);
                const struct jit_ir *ir = &t->ir[ref];

                if (!jit_ir_emits(&t->ops, ir) || (op->flags & JIT_OP_UNCHECKED))
                        continue;
                if ((ir->type & JIT_IR_GUARD) && !(op->flags & JIT_OP_WEAK)) {
                        wanted++;
                        right += got[2 * ref] == 1 ||
                                 (got[2 * ref] == 2 && (op->flags & JIT_OP_SLOT));
                }
                if (op->flags & JIT_OP_SURE_CALL) {
                        wanted++;
                        right += got[2 * ref + 1] == 1;
                }
        }
        free(got);
        /* one wrong in a short trace says nothing */
        return right + 1 < wanted && (uint64_t)right * 100 < (uint64_t)wanted * 95;
}

int jit_align(struct jit_trace *t)
{
        struct border *b = calloc(t->head->nsnapshots + 3, sizeof(*b));
        uint16_t *refs = calloc(t->head->nir + 2, sizeof(*refs));
        struct jit_unit *all = NULL, *units = NULL;
        uint32_t nall = 0, n;
        int r = -ENOMEM;

        if (!b || !refs)
                goto out;
        n = find_borders(t, b) - 1;
        r = jit_disassemble(t->code, t->code_size, t->head->mcode, t->head->mcode_loop, &all,
                            &nall);
        if (r == -ENOMEM)
                goto out;
        if (r < 0)
                t->doubt |= LS_JIT_NO_DISASSEMBLY;
        jit_mark(all, nall);
        units = calloc(nall + 1, sizeof(*units));
        r = units ? align_regions(t, all, nall, b, n, refs, units) : -ENOMEM;
        if (r == 0)
                note_calls(t, all, nall);
        if (r == 0 && all && check_fails(t, all, nall))
                t->doubt |= LS_JIT_CHECK_FAILED;
out:
        free(b);
        free(refs);
        free(all);
        free(units);
        return r;
}
