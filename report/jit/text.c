/* The summary of luasample jit, and one trace by itself. Called by jit.c. */
#include "report/jit/jit.h"
#include "formats/escape.h"
#include "formats/wire/ring.h"
#include "report/model/keys_label.h"
#include "report/model/source.h"
#include "report/view/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[] = {
#define LS_VMSTATE(letter, NAME, name, label) [LS_VMSTATE_##NAME] = label,
#include "formats/wire/vmstates.def"
#undef LS_VMSTATE
};
static const char *const state_meanings[] = {
        [LS_VMSTATE_NATIVE] = "machine code that LuaJIT made of hot code",
        [LS_VMSTATE_INTERPRETED] = "bytecode, an instruction at a time",
        [LS_VMSTATE_C] = "builtins and C functions that were called",
        [LS_VMSTATE_GC] = "finding and freeing unused memory",
        [LS_VMSTATE_JIT] = "making machine code",
};
_Static_assert(sizeof(state_meanings) / sizeof(state_meanings[0]) == LS_NVMSTATES,
               "each VM state has its meaning");

char *ls_jit_start(const struct ls_jit *j, uint32_t trace)
{
        const struct ls_profile *p = j->r.profile;
        const struct ls_location *at = &p->locations[p->jittraces[trace].start];
        const char *function = j->r.labels->function[at->function];

        if (!p->jittraces[trace].start)
                return strdup("not known");
        return at->line ? ls_print("%s:%u", function, at->line) : strdup(function);
}

char *ls_jit_link(const struct ls_jit *j, uint32_t trace)
{
        const struct ls_jittrace *t = &j->r.profile->jittraces[trace];

        if (t->link && t->link == t->number)
                return strdup("itself");
        if (t->link)
                return ls_print("trace %u", t->link);
        if (t->link_kind.len)
                return ls_visible(t->link_kind.s, t->link_kind.len);
        return strdup("not known");
}

const char *ls_jit_state_meaning(unsigned vmstate)
{
        return vmstate < LS_NVMSTATES ? state_meanings[vmstate] : "";
}

char *ls_jit_name(const struct ls_jit *j, uint32_t trace)
{
        const struct ls_profile *p = j->r.profile;
        const struct ls_jittrace *t = &p->jittraces[trace];

        if (!t->number)
                return strdup("not recorded");
        if (t->parent)
                return ls_print("%u side of %u exit %u", t->number, p->jittraces[t->parent].number,
                                t->exit);
        return t->root ? ls_print("%u side of %u", t->number, t->root)
                       : ls_print("%u root", t->number);
}

/* Columns that are left of 80 behind a share and its margin. */
static int columns_left(const struct ls_jit *j)
{
        return 80 - (int)ls_number_width(&j->r) - 8;
}

static void put_share(const struct ls_jit *j, uint64_t ticks)
{
        const struct ls_aggregate *a = j->r.aggregate;

        ls_put_number(&j->r, ticks, a->ticks);
        ls_put_margin(&j->r, ls_share(ticks, a->ticks), a->effective, a->ticks);
}

static int put_row(const struct ls_jit *j, uint32_t trace)
{
        char *name = ls_jit_name(j, trace), *start = ls_jit_start(j, trace),
             *link = ls_jit_link(j, trace);
        int error = name && start && link ? 0 : -ENOMEM;

        if (!error) {
                put_share(j, j->ticks[trace]);
                fputs("  ", j->r.out);
                ls_put_fit(j->r.out, name, 22, 1);
                fputc(' ', j->r.out);
                ls_put_fit(j->r.out, start, (size_t)columns_left(j) - 38, 1);
                fputc(' ', j->r.out);
                ls_put_fit(j->r.out, link, 12, 0);
                fputc('\n', j->r.out);
        }
        free(name);
        free(start);
        free(link);
        return error;
}

static int put_traces(const struct ls_jit *j)
{
        const struct ls_report *r = &j->r;
        uint64_t hidden_ticks = 0;
        uint32_t hidden = 0;
        int error = 0;

        fprintf(r->out, "\n== Traces, by time ==\n"
                "A trace is one path through the program, compiled as a whole, calls included.\n"
                "A root trace begins at a hot loop or function. It has exits, for what turns\n"
                "out otherwise than when it was recorded; a side trace begins at an exit that\n"
                "was taken often. A trace goes on to another, to itself (a loop), or ends:\n"
                "stitch = at a call that is not compiled, and a new one begins behind it;\n"
                "return, interpreter = in code that is not compiled.\n"
                "--trace N shows one, --tree how they hang together.\n\n");
        if (!j->n_order) {
                fprintf(r->out, "[No sample is in a trace that is known]\n");
                return 0;
        }
        fprintf(r->out, "%s%*s %7s  %-22s %-*s %s%s\n", ls_dim(r), (int)ls_number_width(r),
                ls_number_title(r, "Time"), "+-95%", "Trace", columns_left(j) - 38, "Starts at",
                "Goes on to", ls_plain(r));
        for (uint32_t i = 0; !error && i < j->n_order; i++) {
                uint64_t ticks = j->ticks[j->order[i]];
                int is_hidden = ls_below_min(r, ticks, r->aggregate->ticks);

                if (j->row_at)
                        j->row_at[i] = is_hidden ? -1 : ftell(r->out);
                if (!is_hidden) {
                        error = put_row(j, j->order[i]);
                        continue;
                }
                hidden++;
                hidden_ticks += ticks;
        }
        if (hidden)
                fprintf(r->out,
                        "%s# %u more trace%s below %g%% with %.2f%% in all (--min 0 shows all)%s\n",
                        ls_dim(r), hidden, hidden == 1 ? "" : "s", r->o->min,
                        100 * ls_share(hidden_ticks, r->aggregate->ticks), ls_plain(r));
        return error;
}

int ls_jit_summary(const struct ls_jit *j)
{
        fprintf(j->r.out, "== Where the time goes ==\n");
        for (unsigned i = 0; i < LS_NVMSTATES; i++) {
                put_share(j, j->states[i]);
                fprintf(j->r.out, "  %-18s ", state_names[i]);
                ls_put_fit(j->r.out, state_meanings[i], (size_t)columns_left(j) - 21, 0);
                fputc('\n', j->r.out);
        }
        return ls_jit_why(j) || ls_jit_advice(j) ? -ENOMEM : put_traces(j);
}

/* The size of a trace, when the recording has its map. */
static void put_size(const struct ls_jit *j, const struct ls_jittrace *t)
{
        struct ls_rec_jittrace head;

        fprintf(j->r.out, "  machine code  %" PRIu64 " bytes", t->size);
        if (t->map && t->map_len >= sizeof(head)) {
                memcpy(&head, t->map, sizeof(head));
                fprintf(j->r.out, ", of %u instructions of LuaJIT's own, with %u exits", head.nir,
                        head.nsnapshots);
        }
        fputc('\n', j->r.out);
}

/* Side traces that begin at its exits. */
static int put_exits(const struct ls_jit *j, uint32_t trace)
{
        const struct ls_profile *p = j->r.profile;
        int error = 0;

        for (uint32_t i = 1; !error && i < p->n_jittraces; i++) {
                const struct ls_jittrace *t = &p->jittraces[i];
                char *start;

                if (t->parent != trace || !t->number)
                        continue;
                start = ls_jit_start(j, i);
                if (start)
                        fprintf(j->r.out, "  exit %-8u side trace %u at %s, %.2f%% of all time\n",
                                t->exit, t->number, start,
                                100 * ls_share(j->ticks[i], j->r.aggregate->ticks));
                error = start ? 0 : -ENOMEM;
                free(start);
        }
        return error;
}

/* Listings have the lines of one source after the other. */
static int read_source(const struct ls_jit *j, uint32_t source)
{
        int error;

        if (j->text->source == source)
                return 0;
        ls_source_done(&j->text->t);
        *j->text = (struct ls_jit_text){ 0 };
        error = ls_source_read(j->r.profile, source, j->r.o, &j->text->t);
        if (!error)
                j->text->source = source;
        return error;
}

static int may_show(const struct ls_jit *j, const struct ls_source_text *t)
{
        return t->lines && !(j->only_recorded && (t->problem == LS_SOURCE_CHANGED ||
                                                  t->problem == LS_SOURCE_UNKNOWN));
}

int ls_jit_source(const struct ls_jit *j, uint32_t source, uint32_t line, size_t columns)
{
        const struct ls_source_text *t = &j->text->t;
        int error = source && line ? read_source(j, source) : -ENODATA;
        struct ls_str s;
        char *text;

        if (error || !may_show(j, t) || line > t->n_lines)
                return error == -ENODATA ? 0 : error;
        s = t->lines[line - 1];
        for (; s.len && (*s.s == ' ' || *s.s == '\t'); s.len--)
                s.s++;
        text = ls_visible(s.s, s.len);
        if (text)
                ls_put_fit(j->r.out, text, columns, 0);
        free(text);
        return 0;
}

struct line { uint64_t ticks; uint32_t group; };

static int hotter(const void *a, const void *b)
{
        const struct line *x = a, *y = b;

        if (x->ticks != y->ticks)
                return x->ticks > y->ticks ? -1 : 1;
        return x->group < y->group ? -1 : x->group > y->group;
}

static int put_line_rows(const struct ls_jit *j, const struct ls_grouping *g, uint32_t trace,
                         struct line *lines)
{
        const struct ls_aggregate *a = j->r.aggregate;
        int error = 0;

        for (uint32_t i = 0; i < g->n_groups; i++)
                lines[i].group = i;
        for (size_t i = 0; i < a->n_cells; i++)
                if (a->cells[i].trace == trace)
                        lines[ls_group_of_cell(g, &a->cells[i])].ticks += a->cells[i].ticks;
        qsort(lines, g->n_groups, sizeof(*lines), hotter);
        for (uint32_t i = 0; !error && i < g->n_groups && lines[i].ticks; i++) {
                if (ls_below_min(&j->r, lines[i].ticks, j->ticks[trace]))
                        break;
                ls_put_number(&j->r, lines[i].ticks, j->ticks[trace]);
                fputs("  ", j->r.out);
                ls_put_fit(j->r.out, ls_group_text(g, lines[i].group), 24, 1);
                fputc(' ', j->r.out);
                error = ls_jit_source(j, g->key->source(g, lines[i].group),
                                      g->key->line(g, lines[i].group), 44);
                fputc('\n', j->r.out);
        }
        return error;
}

/* Shares of the trace's time, by line. */
static int put_lines(const struct ls_jit *j, uint32_t trace)
{
        struct ls_grouping *g = NULL;
        struct line *lines = NULL;
        int error = ls_grouping_new(ls_key_find("line", 4), j->r.profile, j->r.labels, &g);

        if (!error) {
                lines = calloc((size_t)g->n_groups + 1, sizeof(*lines));
                error = lines ? put_line_rows(j, g, trace, lines) : -ENOMEM;
        }
        free(lines);
        ls_grouping_free(g);
        return error;
}

int ls_jit_one_trace(const struct ls_jit *j, uint32_t trace)
{
        const struct ls_jittrace *t = &j->r.profile->jittraces[trace];
        char *name = ls_jit_name(j, trace), *start = ls_jit_start(j, trace),
             *link = ls_jit_link(j, trace);
        int error = name && start && link ? 0 : -ENOMEM;

        if (!error) {
                fprintf(j->r.out, "== Trace %s ==\n", name);
                put_share(j, j->ticks[trace]);
                fprintf(j->r.out, " of all time\n  starts at     %s\n  goes on to    %s\n", start,
                        link);
                put_size(j, t);
                error = put_exits(j, trace);
        }
        if (!error) {
                fprintf(j->r.out, "\nLines in it, by share of its time (functions that it calls "
                                  "are part of it)\n");
                error = put_lines(j, trace);
        }
        if (!error)
                error = ls_jit_listing(j, trace);
        free(name);
        free(start);
        free(link);
        return error;
}

int ls_jit_trace(const struct ls_jit *j, uint32_t number)
{
        int error = 0, shown = 0;

        for (uint32_t i = 0; !error && i < j->n_order; i++) {
                if (j->r.profile->jittraces[j->order[i]].number != number)
                        continue;
                if (shown++)
                        fputc('\n', j->r.out);
                error = ls_jit_one_trace(j, j->order[i]);
        }
        return error ? error : shown ? 0 : -ENOENT;
}
