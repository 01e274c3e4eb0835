/* What became of each line of source: compiled, interpreted and why, given up for good. For the
 * source views of the page and the terminal browser. A line has the time of the builtins and C
 * functions that it called, as with --line. */
#include "report/jit/jit.h"
#include "report/model/keys.h"

#include <errno.h>
#include <stdlib.h>

enum kind { COMPILED, UNCOMPILED, GIVEN_UP };   /* GIVEN_UP: an attempt that began there */

struct part {                           /* of the time of a line */
        uint32_t source, line;
        enum kind kind;
        uint32_t id;                    /* trace, row of the blame, attempt */
        uint64_t ticks;
};

static int by_line(const void *a, const void *b)
{
        const struct part *x = a, *y = b;

        if (x->source != y->source)
                return x->source < y->source ? -1 : 1;
        if (x->line != y->line)
                return x->line < y->line ? -1 : 1;
        if (x->kind != y->kind)
                return x->kind < y->kind ? -1 : 1;
        return x->id < y->id ? -1 : x->id > y->id;
}

/* Puts the part there when its place is a line of source. Returns how many it is. */
static size_t add(const struct ls_profile *p, struct part *to, uint32_t location, struct part part)
{
        const struct ls_location *at = &p->locations[location];

        part.source = p->functions[at->function].source;
        part.line = at->line;
        *to = part;
        return part.source && part.line;
}

static size_t list_parts(const struct ls_jit *j, const uint32_t *pays, struct part *parts)
{
        const struct ls_profile *p = j->r.profile;
        const struct ls_aggregate *a = j->r.aggregate;
        size_t n = 0;

        for (size_t i = 0; i < a->n_cells; i++) {
                const struct ls_cell *c = &a->cells[i];
                int is_compiled = c->trace || c->vmstate == LS_VMSTATE_NATIVE;
                uint32_t row = j->blame.row_of[i];

                if (!c->ticks || (!is_compiled && row == LS_NO_ROW))
                        continue;
                n += add(p, &parts[n], p->stacks[pays[c->stack]].location,
                         (struct part){ .kind = is_compiled ? COMPILED : UNCOMPILED,
                                        .id = is_compiled ? c->trace : row, .ticks = c->ticks });
        }
        for (uint32_t i = 0; i < p->n_attempts; i++)
                if (p->attempts[i].flags & LS_ATTEMPT_BLACKLISTED && p->attempts[i].start)
                        n += add(p, &parts[n], p->attempts[i].start,
                                 (struct part){ .kind = GIVEN_UP, .id = i });
        return n;
}

/* The line of parts from, .. to - 1, which are sorted: by kind, too. */
static struct ls_jit_line make_line(const struct ls_jit *j, const struct part *parts, size_t from,
                                    size_t to)
{
        struct ls_jit_line l = { .source = parts[from].source, .line = parts[from].line,
                                 .row = LS_NO_ROW, .attempt = LS_NO_ATTEMPT };
        uint64_t most[GIVEN_UP] = { 0 }, sum = 0;

        for (size_t i = from; i < to; i++) {
                const struct part *x = &parts[i];

                if (x->kind == GIVEN_UP) {
                        l.attempt = x->id;
                        continue;
                }
                sum = i > from && by_line(x - 1, x) == 0 ? sum + x->ticks : x->ticks;
                *(x->kind == COMPILED ? &l.compiled : &l.uncompiled) += x->ticks;
                if (sum <= most[x->kind])
                        continue;
                most[x->kind] = sum;
                *(x->kind == COMPILED ? &l.trace : &l.row) = x->id;
        }
        if (l.compiled && l.compiled >= l.uncompiled)
                l.mark = LS_JIT_COMPILED;
        else if (l.row == LS_NO_ROW || j->blame.rows[l.row].reason == LS_REASON_BLACKLISTED)
                l.mark = LS_JIT_BLACKLISTED;
        else
                l.mark = LS_JIT_INTERPRETED;
        return l;
}

int ls_jit_lines_new(const struct ls_jit *j, struct ls_jit_lines *ret)
{
        size_t room = j->r.aggregate->n_cells + j->r.profile->n_attempts + 1, n = 0, to;
        struct part *parts = calloc(room, sizeof(*parts));
        uint32_t *pays = ls_paying_stacks(j->r.profile);
        int error;

        *ret = (struct ls_jit_lines){ .lines = calloc(room, sizeof(*ret->lines)) };
        error = parts && pays && ret->lines ? 0 : -ENOMEM;
        if (!error) {
                n = list_parts(j, pays, parts);
                qsort(parts, n, sizeof(*parts), by_line);
        }
        for (size_t from = 0; from < n; from = to) {
                for (to = from + 1; to < n && parts[to].source == parts[from].source &&
                     parts[to].line == parts[from].line; to++)
                        ;
                ret->lines[ret->n++] = make_line(j, parts, from, to);
        }
        free(parts);
        free(pays);
        if (error)
                ls_jit_lines_done(ret);
        return error;
}

void ls_jit_lines_done(struct ls_jit_lines *l)
{
        free(l->lines);
        *l = (struct ls_jit_lines){ 0 };
}

const struct ls_jit_line *ls_jit_line_of(const struct ls_jit_lines *l, uint32_t source,
                                         uint32_t line)
{
        size_t low = 0, high = l->n;

        while (low < high) {
                size_t mid = low + (high - low) / 2;
                const struct ls_jit_line *at = &l->lines[mid];

                if (at->source < source || (at->source == source && at->line < line))
                        low = mid + 1;
                else
                        high = mid;
        }
        return low < l->n && l->lines[low].source == source && l->lines[low].line == line
                       ? &l->lines[low] : NULL;
}
