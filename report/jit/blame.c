/* Why code was not compiled: see blame.h.
 *
 * From the innermost Lua function of a tick to the outermost, the smallest loop or function around
 * the line that LuaJIT has tried to compile has the reason: code that it calls would have been
 * compiled with it. What was given up has the reason that most attempts there had; what was
 * compiled was left by an exit, and an attempt that began at an exit in it and was given up has the
 * reason. A builtin or C function that a trace ends at is itself the reason. */
#include "report/jit/blame.h"

#include <errno.h>
#include <stdlib.h>

struct place {                          /* a loop or function that LuaJIT has tried to compile */
        uint32_t function, first_line, last_line;
        uint64_t compiled, aborted;     /* attempts */
        uint32_t attempt, side;         /* most frequent of those that were given up, at it and at
                                         * exits in it; LS_NO_ATTEMPT = none */
        int blacklisted, is_loop;
};

struct work {
        const struct ls_profile *p;
        struct place *places;           /* by function */
        uint32_t n_places;
        uint32_t *first;                /* [n_functions + 1] of a function's */
        uint32_t *at;                   /* by location: 0 = not looked up, 1 = no place, else its
                                         * index + 2 */
        uint32_t *stitch;               /* by function: attempt of a trace that ends at its call,
                                         * LS_NO_ATTEMPT = none */
        uint64_t flushes;
        int off, recorded;              /* 1 = the compiler was off; its attempts are known, */
        int partly;                     /* but of more than a tenth only the number */
        struct ls_blame *b;
};

static int by_function(const void *a, const void *b)
{
        const struct place *x = a, *y = b;

        if (x->function != y->function)
                return x->function < y->function ? -1 : 1;
        if (x->first_line != y->first_line)
                return x->first_line < y->first_line ? -1 : 1;
        if (x->last_line != y->last_line)
                return x->last_line < y->last_line ? -1 : 1;
        return x->is_loop - y->is_loop;
}

static uint64_t count_of(const struct work *w, uint32_t attempt)
{
        return attempt == LS_NO_ATTEMPT ? 0 : w->p->attempts[attempt].count;
}

/* Of two places that are one: the sum, in the first. */
static void join(const struct work *w, struct place *to, const struct place *from)
{
        to->compiled += from->compiled;
        to->aborted += from->aborted;
        to->blacklisted |= from->blacklisted;
        if (count_of(w, from->attempt) > count_of(w, to->attempt))
                to->attempt = from->attempt;
}

static int make_places(struct work *w)
{
        const struct ls_profile *p = w->p;
        uint32_t n = 0;

        w->places = calloc((size_t)p->n_attempts + 1, sizeof(*w->places));
        w->first = calloc((size_t)p->n_functions + 2, sizeof(*w->first));
        if (!w->places || !w->first)
                return -ENOMEM;
        for (uint32_t i = 0; i < p->n_attempts; i++) {
                const struct ls_attempt *a = &p->attempts[i];

                if (!a->start || !a->first_line || a->flags & LS_ATTEMPT_SIDE)
                        continue;
                w->places[n++] =
                        (struct place){ .function = p->locations[a->start].function,
                                        .first_line = a->first_line,
                                        .last_line = a->last_line,
                                        .compiled = a->flags & LS_ATTEMPT_COMPILED ? a->count : 0,
                                        .aborted = a->flags & LS_ATTEMPT_COMPILED ? 0 : a->count,
                                        .attempt = a->flags & LS_ATTEMPT_COMPILED ? LS_NO_ATTEMPT
                                                                                  : i,
                                        .side = LS_NO_ATTEMPT,
                                        .blacklisted = (a->flags & LS_ATTEMPT_BLACKLISTED) != 0,
                                        .is_loop = (a->flags & LS_ATTEMPT_LOOP) != 0 };
        }
        qsort(w->places, n, sizeof(*w->places), by_function);
        for (uint32_t i = 0; i < n; i++) {
                if (w->n_places && !by_function(&w->places[w->n_places - 1], &w->places[i]))
                        join(w, &w->places[w->n_places - 1], &w->places[i]);
                else
                        w->places[w->n_places++] = w->places[i];
        }
        for (uint32_t f = 0, i = 0; f <= p->n_functions; f++) {
                while (i < w->n_places && w->places[i].function < f)
                        i++;
                w->first[f] = i;
        }
        w->first[p->n_functions + 1] = w->n_places;
        return 0;
}

/* The smallest place around a line, NULL = none. A function without lines is all of it. */
static struct place *around(const struct work *w, uint32_t location)
{
        const struct ls_location at = w->p->locations[location];
        struct place *best = NULL;

        if (w->at[location])
                return w->at[location] == 1 ? NULL : &w->places[w->at[location] - 2];
        for (uint32_t i = w->first[at.function]; i < w->first[at.function + 1]; i++) {
                struct place *c = &w->places[i];

                if (at.line < c->first_line || at.line > c->last_line)
                        continue;
                if (!best || c->last_line - c->first_line < best->last_line - best->first_line ||
                    (c->last_line - c->first_line == best->last_line - best->first_line &&
                     c->is_loop > best->is_loop))
                        best = c;
        }
        w->at[location] = best ? (uint32_t)(best - w->places) + 2 : 1;
        return best;
}

/* Attempts at exits belong to the places that they begin in. */
static int find_sides(struct work *w)
{
        w->at = calloc((size_t)w->p->n_locations + 1, sizeof(*w->at));
        w->stitch = malloc(((size_t)w->p->n_functions + 1) * sizeof(*w->stitch));
        if (!w->at || !w->stitch)
                return -ENOMEM;
        for (uint32_t i = 0; i <= w->p->n_functions; i++)
                w->stitch[i] = LS_NO_ATTEMPT;
        for (uint32_t i = 0; i < w->p->n_attempts; i++) {
                const struct ls_attempt *a = &w->p->attempts[i];
                struct place *at;

                if (a->flags & LS_ATTEMPT_STITCHED && a->about)
                        w->stitch[a->about] = i;
                at = a->flags & LS_ATTEMPT_SIDE && !(a->flags & LS_ATTEMPT_COMPILED) && a->start
                                           ? around(w, a->start) : NULL;

                if (at && count_of(w, i) > count_of(w, at->side))
                        at->side = i;
        }
        return 0;
}

static enum ls_reason reason_at(const struct work *w, const struct place *at, uint32_t *ret_attempt)
{
        *ret_attempt = at->attempt;
        if (at->blacklisted)
                return LS_REASON_BLACKLISTED;
        if (!at->compiled)
                return LS_REASON_ABORTED;
        *ret_attempt = at->side;
        if (at->side != LS_NO_ATTEMPT)
                return LS_REASON_EXIT_ABORTED;
        return at->compiled > 1 && w->flushes ? LS_REASON_FLUSH : LS_REASON_EXIT;
}

static enum ls_reason reason_of(const struct work *w, uint32_t stack, uint32_t *ret_attempt)
{
        const struct ls_profile *p = w->p;
        uint32_t leaf = p->locations[p->stacks[stack].location].function;

        *ret_attempt = LS_NO_ATTEMPT;
        if (w->off)
                return LS_REASON_OFF;
        if (!w->recorded)
                return LS_REASON_UNKNOWN;
        if (p->functions[leaf].kind == LS_FUNC_BUILTIN || p->functions[leaf].kind == LS_FUNC_C) {
                *ret_attempt = w->stitch[leaf];
                if (*ret_attempt != LS_NO_ATTEMPT)
                        return LS_REASON_STITCH;
        }
        for (uint32_t s = stack; s; s = p->stacks[s].parent) {
                uint32_t location = p->stacks[s].location;
                const struct place *at = around(w, location);

                if (p->functions[p->locations[location].function].flags & LS_FUNCF_NOJIT)
                        return LS_REASON_OFF;
                if (at)
                        return reason_at(w, at, ret_attempt);
        }
        return w->partly ? LS_REASON_UNKNOWN : LS_REASON_SELDOM;
}

static int more_ticks(const void *a, const void *b)
{
        const struct ls_blame_row *x = a, *y = b;

        if (x->ticks != y->ticks)
                return x->ticks > y->ticks ? -1 : 1;
        if (x->reason != y->reason)
                return x->reason < y->reason ? -1 : 1;
        return x->attempt < y->attempt ? -1 : x->attempt > y->attempt;
}

/* Places in the table of all reasons and attempts to those in rows. table: [n * LS_REASONS], by
 * reason; is overwritten. */
static void number_rows(struct ls_blame *b, const struct ls_aggregate *a, uint64_t *table,
                        uint32_t n)
{
        for (uint32_t i = 0; i < b->n_rows; i++) {
                const struct ls_blame_row *row = &b->rows[i];
                uint32_t attempt = row->attempt == LS_NO_ATTEMPT ? n - 1 : row->attempt;

                table[(size_t)row->reason * n + attempt] = i;
        }
        for (size_t i = 0; i < a->n_cells; i++)
                if (b->row_of[i] != LS_NO_ROW)
                        b->row_of[i] = a->cells[i].ticks ? (uint32_t)table[b->row_of[i]]
                                                         : LS_NO_ROW;
}

/* An attempt has one reason but for what its place is: rows are told apart by both. */
static int add_up(struct work *w, const struct ls_aggregate *a)
{
        struct ls_blame *b = w->b;
        uint32_t n = w->p->n_attempts + 1;
        uint64_t *ticks = calloc((size_t)n * LS_REASONS, sizeof(*ticks));

        b->rows = calloc((size_t)n * LS_REASONS, sizeof(*b->rows));
        b->row_of = calloc(a->n_cells + 1, sizeof(*b->row_of));
        if (!ticks || !b->rows || !b->row_of) {
                free(ticks);
                return -ENOMEM;
        }
        for (size_t i = 0; i < a->n_cells; i++) {
                const struct ls_cell *c = &a->cells[i];
                uint32_t attempt = LS_NO_ATTEMPT;
                enum ls_reason reason;

                b->row_of[i] = LS_NO_ROW;
                if (c->trace ||
                    (c->vmstate != LS_VMSTATE_INTERPRETED && c->vmstate != LS_VMSTATE_C))
                        continue;
                reason = reason_of(w, c->stack, &attempt);
                b->row_of[i] = reason * n + (attempt == LS_NO_ATTEMPT ? n - 1 : attempt);
                ticks[b->row_of[i]] += c->ticks;
                b->by_reason[reason] += c->ticks;
                b->ticks += c->ticks;
                if (attempt != LS_NO_ATTEMPT)
                        b->by_attempt[attempt] += c->ticks;
        }
        for (uint32_t reason = 0; reason < LS_REASONS; reason++)
                for (uint32_t i = 0; i < n; i++)
                        if (ticks[(size_t)reason * n + i])
                                b->rows[b->n_rows++] =
                                        (struct ls_blame_row){ reason,
                                                               i == n - 1 ? LS_NO_ATTEMPT : i,
                                                               ticks[(size_t)reason * n + i] };
        qsort(b->rows, b->n_rows, sizeof(*b->rows), more_ticks);
        number_rows(b, a, ticks, n);
        free(ticks);
        return 0;
}

int ls_blame_new(const struct ls_profile *p, const struct ls_aggregate *a, struct ls_blame *ret)
{
        struct work w = { .p = p, .b = ret };
        uint64_t off = ls_profile_u64(p, LS_INFO_JIT_OFF_TICKS, 0),
                 all = ls_profile_u64(p, LS_INFO_SAMPLE_TICKS, 0);
        int error;

        *ret = (struct ls_blame){ .by_attempt = calloc((size_t)p->n_attempts + 1,
                                                       sizeof(*ret->by_attempt)) };
        if (!ret->by_attempt)
                return -ENOMEM;
        w.flushes = ls_profile_u64(p, LS_INFO_JIT_FLUSH_TRACES, 0) +
                    ls_profile_u64(p, LS_INFO_JIT_FLUSH_CODE, 0) +
                    ls_profile_u64(p, LS_INFO_JIT_FLUSH_PROGRAM, 0) +
                    ls_profile_u64(p, LS_INFO_JIT_FLUSH_METATABLE, 0);
        w.off = all && off >= all - all / 100;
        w.recorded = ls_profile_u64(p, LS_INFO_JIT_ATTEMPTS, 0) > 0;
        ret->recorded = w.recorded;
        w.partly = ls_profile_u64(p, LS_INFO_JIT_UNTOLD, 0) >
                   ls_profile_u64(p, LS_INFO_JIT_ATTEMPTS, 0) / 10;
        error = make_places(&w);
        if (!error)
                error = find_sides(&w);
        if (!error)
                error = add_up(&w, a);
        free(w.places);
        free(w.first);
        free(w.at);
        free(w.stitch);
        if (error)
                ls_blame_done(ret);
        return error;
}

void ls_blame_done(struct ls_blame *b)
{
        free(b->rows);
        free(b->row_of);
        free(b->by_attempt);
        *b = (struct ls_blame){ 0 };
}
