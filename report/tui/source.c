/* The source listing of the terminal browser: all lines of one source with the share of each.
 * Called through the table ls_tui_source and by the keys that open it. */
#include "report/model/lines.h"
#include "report/model/source.h"
#include "report/tui/tui.h"
#include "formats/escape.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BAR 6
#define LEGEND "N compiled, I interpreted, X given up"  /* by LuaJIT, for good */

struct listing {
        struct ls_tui_place place;      /* as asked for */
        char *name;                     /* label of its source: finds it again in a trace that has
                                         * grown */
        struct ls_source_text text;
        uint64_t *ticks;                /* [n_rows] of each row's line */
        uint64_t *totals;               /* [n_rows] the same with what the line called */
        uint32_t *lines;                /* [n_rows] their numbers, when there is no text; NULL = row
                                         * + 1 */
        struct ls_jit_lines marks;      /* what the JIT compiler made of them */
        int has_marks;                  /* some are of this source */
        uint64_t most, other;           /* of the hottest line; of lines that are not known */
        int shown_before;               /* the cursor was put on its line */
};

static const struct ls_line_file *find_file(const struct ls_lines *all, uint32_t source)
{
        for (size_t i = 0; i < all->n_files; i++)
                if (all->files[i].source == source)
                        return &all->files[i];
        return NULL;
}

static int take_lines(struct listing *l, struct ls_tui_view *v, const struct ls_lines *all,
                      const struct ls_line_file *file)
{
        size_t n = file ? file->n : 0, rows = l->text.lines ? l->text.n_lines : n;

        l->ticks = calloc(rows + 1, sizeof(*l->ticks));
        l->totals = calloc(rows + 1, sizeof(*l->totals));
        l->lines = l->text.lines ? NULL : calloc(rows + 1, sizeof(*l->lines));
        if (!l->ticks || !l->totals || (!l->lines && !l->text.lines))
                return -ENOMEM;
        l->most = 0;
        l->other = file ? file->not_recorded + file->stripped : 0;
        v->n_rows = l->text.lines ? rows : 0;
        for (size_t i = 0; i < n; i++) {
                const struct ls_line *line = &all->lines[file->first + i];

                if (!line->line || !(line->ticks || line->total))
                        continue;
                if (line->ticks > l->most)
                        l->most = line->ticks;
                if (!l->text.lines) {
                        l->lines[v->n_rows] = line->line;
                        l->totals[v->n_rows] = line->total;
                        l->ticks[v->n_rows++] = line->ticks;
                } else if (line->line <= l->text.n_lines) {
                        l->ticks[line->line - 1] = line->ticks;
                        l->totals[line->line - 1] = line->total;
                } else {
                        l->other += line->ticks;        /* the file has fewer lines by now */
                }
        }
        return 0;
}

static size_t row_of_line(const struct listing *l, const struct ls_tui_view *v, uint32_t line)
{
        size_t row = 0;

        if (!l->lines)
                return line && line <= v->n_rows ? line - 1 : 0;
        while (row + 1 < v->n_rows && l->lines[row] < line)
                row++;
        return row;
}

/* The hottest line of the function, or of all. */
static size_t hottest(const struct ls_tui *t, const struct listing *l, const struct ls_tui_view *v)
{
        const struct ls_function *f = &t->profile->functions[l->place.function];
        size_t from = 0, to = v->n_rows, best;

        if (l->place.function && !(f->flags & LS_FUNCF_MAIN) && f->first_line) {
                from = row_of_line(l, v, f->first_line);
                to = row_of_line(l, v, f->last_line) + 1;
        }
        best = from;
        for (size_t i = from; i < to && i < v->n_rows; i++)
                if (l->ticks[i] > l->ticks[best])
                        best = i;
        return best;
}

/* In a trace that was read again, ids may be others. */
static int find_source(const struct ls_tui *t, struct listing *l)
{
        if (l->place.source < t->profile->n_sources &&
            !strcmp(t->labels->source[l->place.source], l->name))
                return 0;
        for (uint32_t i = 1; i < t->profile->n_sources; i++) {
                if (!strcmp(t->labels->source[i], l->name)) {
                        l->place.source = i;
                        return 0;
                }
        }
        return -ENOENT;
}

static int source_build(struct ls_tui *t, struct ls_tui_view *v)
{
        struct listing *l = v->data;
        struct ls_lines all;
        int r = find_source(t, l);

        if (!r)
                r = ls_lines_init(&all, &t->report, NULL);
        if (r)
                return r;
        r = ls_source_read(t->profile, l->place.source, t->o, &l->text);
        if (!r)
                r = take_lines(l, v, &all, find_file(&all, l->place.source));
        ls_lines_done(&all);
        if (!r)
                r = ls_tui_jit_marks(t, &l->marks);
        for (size_t i = 0; !r && !l->has_marks && i < l->marks.n; i++)
                l->has_marks = l->marks.lines[i].source == l->place.source;
        if (r || l->shown_before)
                return r;
        l->shown_before = 1;
        v->cursor = l->place.line ? row_of_line(l, v, l->place.line) : hottest(t, l, v);
        v->top = v->cursor > (size_t)ls_tui_body_rows(t) / 3
                         ? v->cursor - (size_t)ls_tui_body_rows(t) / 3
                         : 0;
        return 0;
}

static void source_forget(struct ls_tui_view *v)
{
        struct listing *l = v->data;

        ls_source_done(&l->text);
        ls_jit_lines_done(&l->marks);
        l->has_marks = 0;
        free(l->ticks);
        free(l->totals);
        free(l->lines);
        l->ticks = l->totals = NULL;
        l->lines = NULL;
        v->n_rows = 0;
}

static void source_close(struct ls_tui_view *v)
{
        free(((struct listing *)v->data)->name);
        free(v->data);
}

static void source_title(const struct ls_tui *t, const struct ls_tui_view *v, char *buf,
                         size_t size)
{
        (void)t;
        snprintf(buf, size, "%s", ((const struct listing *)v->data)->name);
}

/* Draws where the text is from, and what is wrong with it. */
static void source_head(const struct ls_tui *t, const struct ls_tui_view *v, int y)
{
        const struct listing *l = v->data;
        char *path = l->text.path ? ls_visible(l->text.path, strlen(l->text.path)) : NULL,
             other[64] = "";
        const char *problem = ls_source_problem_text(l->text.problem);
        unsigned look = l->text.problem ? LS_LOOK_ERROR : LS_LOOK_HEAD;
        int width = ls_screen_columns(),
            has_legend = l->has_marks && width >= 80 && !l->text.problem;
        int legend = has_legend ? (int)strlen(LEGEND) + 1 : 0;

        if (l->other)
                snprintf(other, sizeof(other), "  %.2f%% without a line",
                         100 * ls_share(l->other, t->aggregate->ticks));
        if (l->text.problem == LS_SOURCE_UNREADABLE)
                ls_screen_printf(y, 0, width, look, "%s: %s (--source-dir names other places)%s",
                                 path ? path : "", strerror(l->text.error), other);
        else
                ls_screen_printf(y, 0, width - legend, look, "%s%s%s%s",
                                 *problem ? problem : path ? path : l->name,
                                 *problem && path ? " " : "", *problem && path ? path : "", other);
        if (has_legend)
                ls_screen_put(y, width - legend + 1, legend - 1, LS_LOOK_HEAD, LEGEND);
        free(path);
}

static const struct { const char *sign; unsigned look; } marks[] = {
        [LS_JIT_NO_MARK] = { " ", LS_LOOK_DIM }, [LS_JIT_COMPILED] = { "N", LS_LOOK_DIM },
        [LS_JIT_INTERPRETED] = { "I", LS_LOOK_BOLD }, [LS_JIT_BLACKLISTED] = { "X", LS_LOOK_ERROR },
};

/* Returns columns. */
static int put_mark(const struct listing *l, unsigned line, int y, int x, int selected)
{
        const struct ls_jit_line *at = ls_jit_line_of(&l->marks, l->place.source, line);
        enum ls_jit_mark mark = at ? at->mark : LS_JIT_NO_MARK;

        if (!l->has_marks)
                return 0;
        ls_screen_put(y, x, 1, selected ? LS_LOOK_SELECTED : marks[mark].look, marks[mark].sign);
        return 2;
}

static void source_draw(const struct ls_tui *t, const struct ls_tui_view *v, size_t row, int y,
                        int selected)
{
        const struct listing *l = v->data;
        int width = ls_screen_columns(), x = 0, number = (int)ls_number_width(&t->report);
        unsigned line = l->lines ? l->lines[row] : (uint32_t)row + 1,
                 look = selected ? LS_LOOK_SELECTED : LS_LOOK_PLAIN;
        unsigned heat = ls_tui_heat(t, l->ticks[row], selected);
        char text[32], *code;

        ls_tui_number(t, text, sizeof(text), l->ticks[row]);
        if (l->ticks[row])
                ls_screen_put(y, x, number, heat, text);
        x += number + 1;
        if (width >= 60) {
                ls_tui_number(t, text, sizeof(text), l->totals[row]);
                if (l->totals[row])
                        ls_screen_put(y, x, number, selected ? look : LS_LOOK_DIM, text);
                x += number + 1;
        }
        if (width >= 60 && l->most) {
                if (l->ticks[row])
                        ls_screen_bar(y, x, BAR, (double)l->ticks[row] / (double)l->most, heat);
                x += BAR + 1;
        }
        if (width >= 60)
                x += put_mark(l, line, y, x, selected);
        if (width >= 40)
                x += ls_screen_printf(y, x, 8, selected ? look : LS_LOOK_DIM, "%5u | ", line);
        else
                x += ls_screen_put(y, x, 2, selected ? look : LS_LOOK_DIM, "| ");
        code = l->text.lines ? ls_line_visible(l->text.lines[row]) : NULL;
        if (code)
                ls_screen_put_found(y, x, width - x, look, code + ls_fit(code, v->left), t->search);
        else
                ls_screen_printf(y, x, width - x, look, "line %u", line);
        free(code);
}

static char *source_text(const struct ls_tui *t, const struct ls_tui_view *v, size_t row)
{
        const struct listing *l = v->data;

        (void)t;
        return l->text.lines ? ls_line_visible(l->text.lines[row]) : NULL;
}

static uint64_t source_identity(const struct ls_tui_view *v, size_t row)
{
        const struct listing *l = v->data;

        return l->lines ? l->lines[row] : row + 1;
}

static void source_open(struct ls_tui *t, struct ls_tui_view *v, size_t row)
{
        const struct listing *l = v->data;
        uint32_t line = l->lines ? l->lines[row] : (uint32_t)row + 1;
        const struct ls_jit_line *at = ls_jit_line_of(&l->marks, l->place.source, line);

        if (at)
                ls_tui_open_jit_line(t, at);
        else
                ls_tui_say(t, "nothing is known of what the JIT compiler made of this line");
}

const struct ls_tui_view_ops ls_tui_source = {
        .name = "source",
        .bit = LS_TUI_IN_SOURCE,
        .needs = LS_TUI_NEEDS_PROFILE,
        .build = source_build,
        .forget = source_forget,
        .close = source_close,
        .title = source_title,
        .head = source_head,
        .draw = source_draw,
        .text = source_text,
        .identity = source_identity,
        .open_row = source_open,
};

void ls_tui_open_source(struct ls_tui *t, const struct ls_tui_place *place)
{
        struct listing *l;

        if (!place->source) {
                if (place->function)
                        ls_tui_fail(t, "%.200s is not Lua: it has no source here",
                                    t->labels->function[place->function]);
                else
                        ls_tui_fail(t, "this row has no source");
                return;
        }
        l = calloc(1, sizeof(*l));
        if (l)
                l->name = strdup(t->labels->source[place->source]);
        if (!l || !l->name) {
                free(l);
                ls_tui_fail(t, "out of memory");
                return;
        }
        l->place = *place;
        ls_tui_push(t, &ls_tui_source, l);
}

/* The next line with ticks, in the direction of step. */
void ls_tui_hot_line(struct ls_tui *t, int step)
{
        struct ls_tui_view *v = ls_tui_top(t);
        const struct listing *l = v->data;
        size_t row = v->cursor;

        while (step > 0 ? row + 1 < v->n_rows : row > 0) {
                row += (size_t)step;
                if (l->ticks[row]) {
                        ls_tui_goto(t, row);
                        return;
                }
        }
        ls_tui_say(t, step > 0 ? "no line with ticks below" : "no line with ticks above");
}
