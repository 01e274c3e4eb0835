/* The end of luasample jit --trace: source lines, LuaJIT's instructions and machine code of a
 * trace, in the order of the code. Called by text.c. */
#include "report/jit/jit.h"
#include "formats/jit/listing.h"
#include "formats/escape.h"
#include "report/view/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define IR_MOST 29                      /* columns of LuaJIT's instruction, with its number */
#define CODE_MOST (80 - IR_MOST - 4)

struct line { uint32_t function, line; uint64_t ticks; };

static int by_place(const void *a, const void *b)
{
        const struct line *x = a, *y = b;

        if (x->function != y->function)
                return x->function < y->function ? -1 : 1;
        return x->line < y->line ? -1 : x->line > y->line;
}

/* Ticks of the trace by innermost function and line, in order; to be freed, NULL = no memory. */
static struct line *sum_lines(const struct ls_jit *j, uint32_t trace, size_t *ret_n)
{
        const struct ls_aggregate *a = j->r.aggregate;
        const struct ls_profile *p = j->r.profile;
        struct line *lines = calloc(a->n_cells + 1, sizeof(*lines));
        size_t n = 0, last = 0;

        for (size_t i = 0; lines && i < a->n_cells; i++) {
                const struct ls_location *at = &p->locations[p->stacks[a->cells[i].stack].location];

                if (a->cells[i].trace == trace)
                        lines[n++] = (struct line){ at->function, at->line, a->cells[i].ticks };
        }
        if (lines)
                qsort(lines, n, sizeof(*lines), by_place);
        for (size_t i = 1; i < n; i++) {
                if (by_place(&lines[last], &lines[i]))
                        lines[++last] = lines[i];
                else
                        lines[last].ticks += lines[i].ticks;
        }
        *ret_n = n ? last + 1 : 0;
        return lines;
}

struct listing {
        const struct ls_jit *j;
        uint32_t trace;
        const struct ls_jittrace *t;
        struct ls_jit_input in;
        struct line *lines;
        size_t n_lines;
};

static int put_heading(const struct listing *l, const struct ls_jit_row *row)
{
        const struct ls_report *r = &l->j->r;
        struct line key = { row->function, row->line, 0 }, *hot;
        uint32_t f = row->function < r->profile->n_functions ? row->function : 0;
        const char *function = r->labels->function[f];
        char *place = f && row->line ? ls_print("%s:%u", function, row->line)
                      : strdup(f ? function : "a place that is not known");
        int error;

        if (!place)
                return -ENOMEM;
        hot = bsearch(&key, l->lines, l->n_lines, sizeof(*l->lines), by_place);
        ls_put_number(r, hot ? hot->ticks : 0, l->j->ticks[l->trace]);
        fputs("  ", r->out);
        ls_put_fit(r->out, place, 24, 1);
        fputc(' ', r->out);
        error = ls_jit_source(l->j, r->profile->functions[f].source, row->line, 44);
        fputc('\n', r->out);
        free(place);
        return error;
}

static void put_row(const struct listing *l, const struct ls_jit_row *row, int first)
{
        char ir[64], numbered[72] = "";

        ls_jit_ir_text(&l->in, l->t->irnames.s, l->t->irnames.len, row->ref, ir, sizeof(ir));
        if (*ir && first)
                snprintf(numbered, sizeof(numbered), "%04u %s", row->ref, ir);
        fputs("  ", l->j->r.out);
        ls_put_fit(l->j->r.out, numbered, IR_MOST, 1);
        fputs("  ", l->j->r.out);
        if (row->exit != LS_JIT_NO_EXIT)
                fprintf(l->j->r.out, "%.*s exit %u", (int)strcspn(row->text, " "), row->text,
                        row->exit);
        else
                ls_put_fit(l->j->r.out, row->text, CODE_MOST, 0);
        fputc('\n', l->j->r.out);
}

static int put_rows(const struct listing *l, const struct ls_jit_listing *code)
{
        const struct ls_report *r = &l->j->r;
        int error = 0;

        fprintf(r->out, "\nMachine code in its order, by line; on the left the instruction of "
                "LuaJIT's own\n"
                "(IR) that it is of: number, > where it may leave by an exit, type, name, what it\n"
                "takes: 0012 = the result of that one, k1 = a constant, #1 = part of it.\n"
                "The share is the line's, of the trace's time, wherever its code stands.\n\n"
                "%s%*s  %-24s %s%s\n", ls_dim(r), (int)ls_number_width(r),
                ls_number_title(r, "Time"), "Line", "Source", ls_plain(r));
        for (uint32_t i = 0; !error && i < code->n; i++) {
                const struct ls_jit_row *row = &code->rows[i], *before = i ? row - 1 : NULL;
                int moved = !before || before->function != row->function ||
                            before->line != row->line;

                if (l->in.head->mcode_loop && row->offset == l->in.head->mcode_loop)
                        fprintf(r->out, "%s-- from here on again and again: the loop --%s\n",
                                ls_dim(r), ls_plain(r));
                if (moved)
                        error = put_heading(l, row);
                put_row(l, row, moved || before->ref != row->ref);
        }
        return error;
}

static const char *why_not(int error)
{
        return error == -ENOTSUP ? "there is no disassembler for it"
                                 : "the recording's description of it is damaged";
}

int ls_jit_listing(const struct ls_jit *j, uint32_t trace)
{
        struct listing l = { .j = j, .trace = trace, .t = &j->r.profile->jittraces[trace] };
        struct ls_jit_listing code;
        int error = l.t->map ? ls_jit_input_parse(l.t->map, l.t->map_len, &l.in) : -ENODATA;

        if (!error)
                error = ls_jit_listing_new(&l.in, l.t->irnames.s, l.t->irnames.len, &code);
        if (error == -ENOMEM)
                return error;
        if (error) {
                fprintf(j->r.out, "\n[No machine code is shown: %s]\n", error == -ENODATA
                        ? "the recording has none of this trace" : why_not(error));
                return 0;
        }
        l.lines = sum_lines(j, trace, &l.n_lines);
        error = l.lines ? put_rows(&l, &code) : -ENOMEM;
        free(l.lines);
        ls_jit_listing_done(&code);
        return error;
}
