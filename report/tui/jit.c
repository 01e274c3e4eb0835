/* The JIT compiler in the terminal browser: the states over time and what luasample jit says, of
 * all or of one line of source; rows of traces open to their listings. Called through the table
 * ls_tui_jit and by the keys that open it. */
#include "report/tui/tui.h"
#include "cli/command.h"
#include "formats/escape.h"
#include "report/model/filter_text.h"
#include "report/model/keys_label.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct panel {
        char *line;                     /* "FILE:N" as --line takes it; NULL = of all */
        uint32_t attempt;               /* that began at the line and was given up for good;
                                         * LS_NO_ATTEMPT = none */
        char *trace;                    /* what the trace that is listed is called; NULL = none */
        char **rows;
        char **opens;                   /* [n_rows] what the row's trace is called; NULL = none */
        size_t capacity;
        double share;                   /* the line's, of all time */
};

static const char letters[LS_NVMSTATES] = {
#define LS_VMSTATE(l, NAME, name, label) [LS_VMSTATE_##NAME] = l,
#include "formats/wire/vmstates.def"
#undef LS_VMSTATE
};

static int add_row(struct ls_tui_view *v, char *row, char *opens)
{
        struct panel *x = v->data;

        if (v->n_rows == x->capacity) {
                size_t capacity = x->capacity ? x->capacity * 2 : 64;
                char **rows = realloc(x->rows, capacity * sizeof(*rows)), **more;

                x->rows = rows ? rows : x->rows;
                more = rows ? realloc(x->opens, capacity * sizeof(*more)) : NULL;
                x->opens = more ? more : x->opens;
                x->capacity = more ? capacity : x->capacity;
        }
        if (!row || v->n_rows == x->capacity) {
                free(row);
                free(opens);
                return -ENOMEM;
        }
        x->rows[v->n_rows] = row;
        x->opens[v->n_rows++] = opens;
        return 0;
}

/* "2 root, at sum:3": in a trace that has grown, ids may be others. To be freed. */
static char *name_of(const struct ls_jit *j, uint32_t trace)
{
        char *name = ls_jit_name(j, trace), *start = ls_jit_start(j, trace), *text = NULL;

        if (name && start)
                text = ls_print("%s, at %s", name, start);
        free(name);
        free(start);
        return text;
}

static uint32_t find_trace(const struct ls_jit *j, const char *wanted)
{
        for (uint32_t i = 0; i < j->n_order; i++) {
                char *name = name_of(j, j->order[i]);
                int is = name && !strcmp(name, wanted);

                free(name);
                if (is)
                        return j->order[i];
        }
        return 0;
}

/* A row for a state: how much of each part of the time it had, by height. */
static char *state_row(const struct ls_jit_times *times, unsigned state)
{
        static const char *const heights[2][9] = {
                { " ", ".", ":", "-", "=", "+", "*", "#", "@" },
                { " ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587",
                  "\u2588" },
        };
        char text[LS_JIT_PARTS * 3 + 8];
        int n = snprintf(text, sizeof(text), "    %c  ", letters[state]);

        for (unsigned i = 0; i < LS_JIT_PARTS; i++) {
                uint64_t sum = 0, ticks = times->ticks[i][state];
                unsigned height;

                for (unsigned k = 0; k < LS_NVMSTATES; k++)
                        sum += times->ticks[i][k];
                height = sum ? (unsigned)(8 * ls_share(ticks, sum) + 0.5) : 0;
                n += snprintf(text + n, sizeof(text) - (size_t)n, "%s",
                              heights[ls_screen_utf8()][ticks && !height ? 1 : height]);
        }
        return strdup(text);
}

static int add_times(struct ls_tui_view *v, const struct ls_jit *j)
{
        static const char *const words[] = {
                "    N compiled, I interpreted, C code in C, G garbage collector, J compiler:",
                "    the share that each had of a part of the time. Explained below.", "",
        };
        struct ls_jit_times times;
        double from, to;
        int error = ls_jit_times_read(j, &times);

        if (!error)
                error = add_row(v, strdup("== Over time =="), NULL);
        for (unsigned i = 0; !error && i < LS_NVMSTATES; i++)
                error = add_row(v, state_row(&times, i), NULL);
        from = (double)(times.from_ns - times.start_ns) / 1e9;
        to = (double)(times.to_ns - times.start_ns) / 1e9;
        if (!error)
                error = add_row(v, ls_print("       %.2f s%*.2f s", from, 50, to), NULL);
        for (size_t i = 0; !error && i < sizeof(words) / sizeof(*words); i++)
                error = add_row(v, strdup(words[i]), NULL);
        return error;
}

/* The lines of text, each with the trace whose row it is. */
static int add_text(struct ls_tui_view *v, const struct ls_jit *j, const char *text)
{
        const char *at = text;
        uint32_t next = 0;
        int error = 0;

        while (!error && *at) {
                size_t len = strcspn(at, "\n");
                char *row = strndup(at, len), *opens = NULL;

                while (j->row_at && next < j->n_order && j->row_at[next] < at - text)
                        next++;
                if (j->row_at && next < j->n_order && j->row_at[next] == at - text)
                        opens = name_of(j, j->order[next]);
                error = add_row(v, row, opens);
                at += len + (at[len] == '\n');
        }
        return error;
}

static int write_text(struct ls_tui_view *v, struct ls_jit *j)
{
        const struct panel *x = v->data;
        uint32_t trace = x->trace ? find_trace(j, x->trace) : 0;
        char *text = NULL;
        size_t size = 0;
        int error = -ENOENT;

        j->r.out = open_memstream(&text, &size);
        if (!j->r.out)
                return -ENOMEM;
        if (!x->trace)
                error = ls_jit_summary(j);
        else if (trace)
                error = ls_jit_one_trace(j, trace);
        if (fclose(j->r.out) && !error)
                error = -ENOMEM;
        if (!error)
                error = add_text(v, j, text);
        free(text);
        return error;
}

/* For what has no time: a loop that was given up before it had any has its reason. */
static int add_nothing(struct ls_tui_view *v, const struct ls_jit *j)
{
        const struct panel *x = v->data;
        char *why, *where, *row = NULL;

        if (x->trace || x->attempt >= j->r.profile->n_attempts)
                return add_row(v, ls_print("This %s has no time.", x->trace ? "trace" : "line"),
                               NULL);
        why = ls_jit_because(j, LS_REASON_BLACKLISTED, x->attempt);
        where = ls_jit_where(j, x->attempt);
        if (why && where)
                row = ls_print("No time is here; %s, %s", why, where);
        free(why);
        free(where);
        return add_row(v, row, NULL);
}

static int jit_build(struct ls_tui *t, struct ls_tui_view *v)
{
        struct panel *x = v->data;
        struct ls_report_options o = *t->o;
        struct ls_jit j = { .r = t->report };
        int error;

        o.min = 1;                      /* as luasample jit; here it is the tree's */
        j.r.o = &o;
        j.r.color = 0;
        j.r.width = 0;
        error = ls_jit_init(&j, x->line);
        x->share = error ? 0 : ls_share(j.own->ticks, j.ticks_before);
        j.row_at = error || x->trace ? NULL : calloc((size_t)j.n_order + 1, sizeof(*j.row_at));
        if (!error && !j.row_at && !x->trace)
                error = -ENOMEM;
        if (!error && !x->line && !x->trace)
                error = add_times(v, &j);
        if (!error)
                error = write_text(v, &j);
        if (error == -ENOENT)
                error = add_nothing(v, &j);
        free(j.row_at);
        ls_jit_done(&j);
        return error;
}

static void jit_forget(struct ls_tui_view *v)
{
        struct panel *x = v->data;

        while (v->n_rows) {
                free(x->rows[--v->n_rows]);
                free(x->opens[v->n_rows]);
        }
}

static void jit_close(struct ls_tui_view *v)
{
        struct panel *x = v->data;

        free(x->line);
        free(x->trace);
        free(x->rows);
        free(x->opens);
        free(x);
}

static void jit_title(const struct ls_tui *t, const struct ls_tui_view *v, char *buf, size_t size)
{
        (void)t;
        snprintf(buf, size, "%s", ((const struct panel *)v->data)->trace ? "trace" : "JIT");
}

static void jit_head(const struct ls_tui *t, const struct ls_tui_view *v, int y)
{
        const struct panel *x = v->data;
        int width = ls_screen_columns();

        (void)t;
        if (x->trace)
                ls_screen_printf(y, 0, width, LS_LOOK_HEAD, "Trace %s: what LuaJIT compiled",
                                 x->trace);
        else if (x->line)
                ls_screen_printf(y, 0, width, LS_LOOK_HEAD,
                                 "%s, %.2f%% of the time; shares are of it", x->line,
                                 100 * x->share);
        else
                ls_screen_put(y, 0, width, LS_LOOK_HEAD, "The JIT compiler (NYI = LuaJIT cannot "
                              "compile it; Enter opens a trace)");
}

static void jit_draw(const struct ls_tui *t, const struct ls_tui_view *v, size_t row, int y,
                     int selected)
{
        const struct panel *x = v->data;
        const char *text = x->rows[row];
        unsigned look = selected ? LS_LOOK_SELECTED
                        : strncmp(text, "== ", 3) ? LS_LOOK_PLAIN : LS_LOOK_BOLD;

        ls_screen_put_found(y, 0, ls_screen_columns(), look, text + ls_fit(text, v->left),
                            t->search);
}

static char *jit_text(const struct ls_tui *t, const struct ls_tui_view *v, size_t row)
{
        (void)t;
        return strdup(((const struct panel *)v->data)->rows[row]);
}

static uint64_t jit_identity(const struct ls_tui_view *v, size_t row)
{
        (void)v;
        return row + 1;
}

static void push(struct ls_tui *t, char *line, uint32_t attempt, char *trace)
{
        struct panel *x = calloc(1, sizeof(*x));

        if (x) {
                *x = (struct panel){ .line = line, .attempt = attempt, .trace = trace };
                ls_tui_push(t, &ls_tui_jit, x);
                return;
        }
        free(line);
        free(trace);
        ls_tui_fail(t, "out of memory");
}

static void jit_open(struct ls_tui *t, struct ls_tui_view *v, size_t row)
{
        const struct panel *x = v->data;

        if (x->opens[row])
                push(t, NULL, LS_NO_ATTEMPT, strdup(x->opens[row]));
        else
                ls_tui_say(t, "rows of traces open, below: Traces, by time");
}

const struct ls_tui_view_ops ls_tui_jit = {
        .name = "jit", .bit = LS_TUI_IN_TEXT | LS_TUI_IN_LIST, .needs = LS_TUI_NEEDS_PROFILE,
        .build = jit_build, .forget = jit_forget, .close = jit_close, .title = jit_title,
        .head = jit_head, .draw = jit_draw, .text = jit_text, .identity = jit_identity,
        .open_row = jit_open,
};

static int has_jit(const struct ls_tui *t)
{
        return ls_events_time(&t->filter.choice);
}

void ls_tui_open_jit(struct ls_tui *t)
{
        if (has_jit(t))
                push(t, NULL, LS_NO_ATTEMPT, NULL);
        else
                ls_tui_fail(t, "this event has no time: the compiler is shown by CPU time "
                            "(--event cpu)");
}

void ls_tui_open_jit_line(struct ls_tui *t, const struct ls_jit_line *at)
{
        char *pattern = ls_filter_literal(t->labels->source[at->source]), *text = NULL;

        if (pattern)
                text = ls_print("%s:%u", pattern, at->line);
        free(pattern);
        if (text)
                push(t, text, at->attempt, NULL);
        else
                ls_tui_fail(t, "out of memory");
}

int ls_tui_jit_marks(const struct ls_tui *t, struct ls_jit_lines *ret)
{
        struct ls_jit j = { .r = t->report };
        int error;

        *ret = (struct ls_jit_lines){ 0 };
        if (!has_jit(t))
                return 0;
        error = ls_jit_init(&j, NULL);
        if (!error)
                error = ls_jit_lines_new(&j, ret);
        ls_jit_done(&j);
        return error;
}
