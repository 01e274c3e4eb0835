/* View "annotate": source listings with the share of each line, as -jp=a and -jp=A show them. */
#include "report/view.h"
#include "formats/escape.h"
#include "report/json.h"
#include "report/source.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXT 3                       /* lines around a hot one, as -jp=a */

struct line {
        uint32_t source, line;          /* line 0 = of this source, which has no line information */
        uint8_t noline;                 /* the line was not recorded (then line is 0) */
        uint64_t ticks;
};

struct file {                           /* the lines of one source */
        uint32_t source;
        size_t first, n;                /* in lines[] */
        uint64_t ticks, most;           /* sum, and the hottest line */
        uint64_t not_recorded;          /* ticks whose line was not recorded */
        uint64_t stripped;              /* ticks in functions without line information */
        uint32_t from, to;              /* lines wanted: of one function; 1 .. UINT32_MAX = all */
};

struct listing {
        const struct ls_report *r;
        struct line *lines;
        size_t n_lines;
        struct file *files;
        size_t n_files;
        uint8_t *wanted;                /* [n_functions] for --annotate=FUNCTION; NULL = all */
};

static int by_line(const void *a, const void *b)
{
        const struct line *x = a, *y = b;

        if (x->source != y->source)
                return x->source < y->source ? -1 : 1;
        if (x->line != y->line)
                return x->line < y->line ? -1 : 1;
        return x->noline < y->noline ? -1 : x->noline > y->noline;
}

static int hotter(const void *a, const void *b)
{
        const struct file *x = a, *y = b;

        if (x->ticks != y->ticks)
                return x->ticks > y->ticks ? -1 : 1;
        return x->source < y->source ? -1 : x->source > y->source;
}

/* A source is meant by its label, its path, the last part of that, or the name that Lua has. */
static int source_matches(const struct ls_report *r, uint32_t source, const char *what)
{
        struct ls_str path = ls_source_path(&r->profile->sources[source]);
        const char *slash = strrchr(path.s, '/');

        return fnmatch(what, r->labels->source[source], 0) == 0 || fnmatch(what, path.s, 0) == 0 ||
               (slash && fnmatch(what, slash + 1, 0) == 0) ||
               fnmatch(what, r->profile->sources[source].name.s + (r->profile->sources[source].name.len > 0), 0) == 0;
}

/* Which functions --annotate=WHAT means: those of matching files, else those with a matching name. Returns how many. */
static size_t choose_functions(struct listing *l, const char *what)
{
        const struct ls_profile *p = l->r->profile;
        size_t n = 0;

        for (uint32_t i = 1; i < p->n_functions; i++) {
                const struct ls_function *f = &p->functions[i];

                if (f->kind == LS_FUNC_LUA && f->source && source_matches(l->r, f->source, what))
                        n += l->wanted[i] = 1;
        }
        for (uint32_t i = 1; n == 0 && i < p->n_functions; i++) {
                const struct ls_function *f = &p->functions[i];

                if (f->kind == LS_FUNC_LUA && (fnmatch(what, l->r->labels->function[i], 0) == 0 ||
                                               (f->name.len && fnmatch(what, f->name.s, 0) == 0)))
                        l->wanted[i] = 2;
        }
        for (uint32_t i = 1; n == 0 && i < p->n_functions; i++)
                if (l->wanted[i])
                        return 1;
        return n;
}

/* Ticks by source and line, sorted and merged. */
static int collect(struct listing *l)
{
        const struct ls_profile *p = l->r->profile;
        const struct ls_aggregate *a = l->r->aggregate;
        size_t n = 0;

        l->lines = malloc((a->n_cells + 1) * sizeof(*l->lines));
        if (!l->lines)
                return -ENOMEM;
        for (size_t i = 0; i < a->n_cells; i++) {
                const struct ls_location *at = &p->locations[p->stacks[a->cells[i].stack].location];
                const struct ls_function *f = &p->functions[at->function];

                if (f->kind != LS_FUNC_LUA || !f->source || (l->wanted && !l->wanted[at->function]))
                        continue;
                l->lines[n++] = (struct line){ f->source, a->cells[i].noline ? 0 : at->line, a->cells[i].noline,
                                               a->cells[i].ticks };
        }
        qsort(l->lines, n, sizeof(*l->lines), by_line);
        for (size_t i = 0; i < n; i++) {
                if (l->n_lines && by_line(&l->lines[l->n_lines - 1], &l->lines[i]) == 0)
                        l->lines[l->n_lines - 1].ticks += l->lines[i].ticks;
                else
                        l->lines[l->n_lines++] = l->lines[i];
        }
        return 0;
}

/* A wanted function limits its file's listing to its lines. */
static void limit_to_functions(struct listing *l, struct file *f)
{
        const struct ls_profile *p = l->r->profile;
        uint32_t from = UINT32_MAX, to = 0;

        for (uint32_t i = 1; l->wanted && i < p->n_functions; i++) {
                const struct ls_function *function = &p->functions[i];

                if (l->wanted[i] != 2 || function->source != f->source)
                        continue;
                if (function->flags & LS_FUNCF_MAIN) {
                        from = 1;
                        to = UINT32_MAX;
                }
                from = function->first_line < from ? function->first_line : from;
                to = function->last_line > to ? function->last_line : to;
        }
        f->from = to ? from : 1;
        f->to = to ? to : UINT32_MAX;
}

static int make_files(struct listing *l)
{
        size_t n = 0;

        for (size_t i = 0; i < l->n_lines; i++)
                n += i == 0 || l->lines[i].source != l->lines[i - 1].source;
        l->files = calloc(n + 1, sizeof(*l->files));
        if (!l->files)
                return -ENOMEM;
        for (size_t i = 0; i < l->n_lines; i++) {
                const struct line *line = &l->lines[i];
                struct file *f;

                if (i == 0 || line->source != l->lines[i - 1].source) {
                        l->files[l->n_files++] = (struct file){ .source = line->source, .first = i };
                        limit_to_functions(l, &l->files[l->n_files - 1]);
                }
                f = &l->files[l->n_files - 1];
                f->n++;
                f->ticks += line->ticks;
                if (line->noline)
                        f->not_recorded += line->ticks;
                else if (line->line == 0)
                        f->stripped += line->ticks;
                else if (line->ticks > f->most)
                        f->most = line->ticks;
        }
        qsort(l->files, l->n_files, sizeof(*l->files), hotter);
        return 0;
}

static int prepare(struct listing *l)
{
        const char *what = l->r->o->annotate_what;
        int error;

        if (what) {
                l->wanted = calloc((size_t)l->r->profile->n_functions + 1, 1);
                if (!l->wanted)
                        return -ENOMEM;
                if (!choose_functions(l, what)) {
                        ls_error("report: --annotate='%s': no such file or function in this trace "
                                 "(luasample report --by module lists files)", what);
                        return -ENOENT;
                }
        }
        error = collect(l);
        return error ? error : make_files(l);
}

static void done(struct listing *l)
{
        free(l->lines);
        free(l->files);
        free(l->wanted);
}

/* Ticks of each line that is hot enough to be shown: by line number, 0 = not shown. */
static uint64_t *hot_lines(const struct listing *l, const struct file *f, uint32_t n_lines)
{
        uint64_t *hot = calloc((size_t)n_lines + 2, sizeof(*hot));

        for (size_t i = f->first; hot && i < f->first + f->n; i++) {
                const struct line *line = &l->lines[i];

                if (line->line && line->line <= n_lines && !ls_below_min(l->r, line->ticks, l->r->aggregate->ticks))
                        hot[line->line] = line->ticks;
        }
        return hot;
}

static void put_share(const struct ls_report *r, uint64_t ticks)
{
        double share = ls_share(ticks, r->aggregate->ticks);

        if (!ticks)
                fprintf(r->out, r->o->raw ? "      | " : "      | ");
        else if (r->o->raw)
                fprintf(r->out, "%s%5" PRIu64 "%s | ", ls_heat(r, share), ticks, ls_plain(r));
        else
                fprintf(r->out, "%s %3.0f%%%s | ", ls_heat(r, share), floor(100 * share + 0.5), ls_plain(r));
}

/* Tabs are kept as Lua programmers have them: eight columns from the bar on. */
static void put_source_line(const struct ls_report *r, struct ls_str line)
{
        char *expanded, *visible;
        size_t n = 0, tabs = 0;

        for (uint32_t i = 0; i < line.len; i++)
                tabs += line.s[i] == '\t';
        expanded = malloc(line.len + tabs * 8 + 1);
        if (!expanded)
                return;
        for (uint32_t i = 0; i < line.len; i++) {
                if (line.s[i] != '\t') {
                        expanded[n++] = line.s[i];
                        continue;
                }
                do
                        expanded[n++] = ' ';
                while (n % 8);
        }
        visible = ls_visible(expanded, n);
        if (visible)
                ls_put_fit(r->out, visible, r->width > 20 ? r->width - 8 : 0, 0);
        fputc('\n', r->out);
        free(visible);
        free(expanded);
}

/* Hunks around hot lines, or all lines. A line is shown when a hot one is at most CONTEXT away. */
static int put_lines(const struct listing *l, const struct file *f, const struct ls_source_text *t)
{
        const struct ls_report *r = l->r;
        uint64_t *hot = hot_lines(l, f, t->n_lines);
        uint32_t last_shown = 0, to = f->to < t->n_lines ? f->to : t->n_lines;
        uint32_t shown_to = 0;          /* context after the hot lines so far */

        if (!hot)
                return -ENOMEM;
        for (uint32_t n = f->from; n <= to; n++) {
                uint32_t ahead = n;

                if (!r->o->whole_file) {
                        while (ahead <= to && ahead <= n + CONTEXT && !hot[ahead])
                                ahead++;
                        if (ahead <= to && ahead <= n + CONTEXT && ahead + CONTEXT > shown_to)
                                shown_to = ahead + CONTEXT;
                        if (n > shown_to)
                                continue;
                        if (n != last_shown + 1 || last_shown == 0)
                                fprintf(r->out, "%s@@ %u @@%s\n", ls_dim(r), n, ls_plain(r));
                }
                last_shown = n;
                put_share(r, hot[n]);
                put_source_line(r, t->lines[n - 1]);
        }
        free(hot);
        return 0;
}

/* The hot lines of a source whose text there is not. */
static void put_bare_lines(const struct listing *l, const struct file *f)
{
        for (size_t i = f->first; i < f->first + f->n; i++) {
                const struct line *line = &l->lines[i];

                if (!line->line || ls_below_min(l->r, line->ticks, l->r->aggregate->ticks))
                        continue;
                put_share(l->r, line->ticks);
                fprintf(l->r->out, "line %u\n", line->line);
        }
}

/* Ticks that no line can have. */
static void put_without_line(const struct listing *l, const struct file *f)
{
        const struct ls_report *r = l->r;
        struct ls_str scope = ls_profile_str(r->profile, "scope");
        char *text = ls_visible(scope.s, scope.len);

        if (text && f->not_recorded && !ls_below_min(r, f->not_recorded, r->aggregate->ticks)) {
                put_share(r, f->not_recorded);
                fprintf(r->out, "[line not recorded%s%s]\n", *text ? ": --scope " : "", text);
        }
        if (f->stripped && !ls_below_min(r, f->stripped, r->aggregate->ticks)) {
                put_share(r, f->stripped);
                fprintf(r->out, "[no line: the bytecode is stripped of its lines]\n");
        }
        free(text);
}

static const char *problem_text(enum ls_source_problem problem)
{
        static const char *const texts[] = {
                [LS_SOURCE_OK] = "",
                [LS_SOURCE_CHANGED] = "[Warning: the file has changed since it was recorded; lines may be off]",
                [LS_SOURCE_NOT_A_FILE] = "[Cannot annotate non-file]",
                [LS_SOURCE_BYTECODE] = "[Cannot annotate bytecode file]",
                [LS_SOURCE_UNREADABLE] = "",
        };

        return texts[problem];
}

static int put_file(const struct listing *l, const struct file *f)
{
        const struct ls_report *r = l->r;
        const char *name = r->labels->source[f->source];
        struct ls_source_text t;
        char *path;
        int error = ls_source_read(r->profile, f->source, r->o, &t);

        if (error)
                return error;
        path = t.path ? ls_visible(t.path, strlen(t.path)) : NULL;
        if (t.problem == LS_SOURCE_UNREADABLE)
                fprintf(r->out, "\n====== ERROR: %s: %s (--source-dir names other places) ======\n", path ? path : name,
                        strerror(t.error));
        else
                fprintf(r->out, "\n====== %s ======\n", path ? path : name);
        if (*problem_text(t.problem)) {
                ls_put_fit(r->out, problem_text(t.problem), r->width, 0);
                fputc('\n', r->out);
        }
        put_without_line(l, f);
        if (t.lines)
                error = put_lines(l, f, &t);
        else
                put_bare_lines(l, f);
        free(path);
        ls_source_done(&t);
        return error;
}

/* Whether a file has a line to show. */
static int has_hot_line(const struct listing *l, const struct file *f)
{
        if ((f->not_recorded && !ls_below_min(l->r, f->not_recorded, l->r->aggregate->ticks)) ||
            (f->stripped && !ls_below_min(l->r, f->stripped, l->r->aggregate->ticks)))
                return 1;
        for (size_t i = f->first; i < f->first + f->n; i++)
                if (l->lines[i].line && !ls_below_min(l->r, l->lines[i].ticks, l->r->aggregate->ticks))
                        return 1;
        return 0;
}

static int annotate_text(const struct ls_report *r)
{
        struct listing l = { .r = r };
        int error = prepare(&l), shown = 0;
        size_t hidden = 0;
        uint64_t hidden_ticks = 0;

        for (size_t i = 0; !error && i < l.n_files; i++) {
                if (!has_hot_line(&l, &l.files[i]) && !r->o->annotate_what) {
                        hidden++;
                        hidden_ticks += l.files[i].ticks;
                        continue;
                }
                error = put_file(&l, &l.files[i]);
                shown++;
        }
        if (!error && hidden)
                fprintf(r->out, "\n%s# %zu more file%s without a line of %g%%, with %.2f%% in all (--min 0 shows all)%s\n",
                        ls_dim(r), hidden, hidden == 1 ? "" : "s", r->o->min,
                        100 * ls_share(hidden_ticks, r->aggregate->ticks), ls_plain(r));
        else if (!error && !shown)
                fprintf(r->out, "[No samples in Lua source]\n");
        done(&l);
        return error;
}

static int json_file(const struct listing *l, yajl_gen g, const struct file *f)
{
        const struct ls_report *r = l->r;
        struct ls_source_text t;
        int error = ls_source_read(r->profile, f->source, r->o, &t);

        if (error)
                return error;
        yajl_gen_map_open(g);
        ls_json_str(g, "source", r->labels->source[f->source]);
        ls_json_str(g, "path", t.path ? t.path : "");
        ls_json_str(g, "notice", t.problem == LS_SOURCE_UNREADABLE ? strerror(t.error) : problem_text(t.problem));
        ls_json_double(g, "self", ls_share(f->ticks, r->aggregate->ticks));
        ls_json_u64(g, "self_ticks", f->ticks);
        ls_json_u64(g, "line_not_recorded_ticks", f->not_recorded);
        ls_json_u64(g, "no_line_ticks", f->stripped);
        ls_json_key(g, "lines");
        yajl_gen_array_open(g);
        for (size_t i = f->first; i < f->first + f->n; i++) {
                const struct line *line = &l->lines[i];
                double share = ls_share(line->ticks, r->aggregate->ticks);

                if (!line->line || ls_below_min(r, line->ticks, r->aggregate->ticks))
                        continue;
                yajl_gen_map_open(g);
                ls_json_u64(g, "line", line->line);
                ls_json_double(g, "self", share);
                ls_json_u64(g, "self_ticks", line->ticks);
                ls_json_double(g, "margin", ls_margin(share, r->aggregate->effective));
                if (t.lines && line->line <= t.n_lines)
                        ls_json_text(g, "text", t.lines[line->line - 1]);
                yajl_gen_map_close(g);
        }
        yajl_gen_array_close(g);
        yajl_gen_map_close(g);
        ls_source_done(&t);
        return 0;
}

static int annotate_json(const struct ls_report *r, yajl_gen g)
{
        struct listing l = { .r = r };
        int error = prepare(&l);

        if (!error) {
                ls_json_key(g, "files");
                yajl_gen_array_open(g);
                for (size_t i = 0; !error && i < l.n_files; i++)
                        error = json_file(&l, g, &l.files[i]);
                yajl_gen_array_close(g);
        }
        done(&l);
        return error;
}

static int annotate_chosen(const struct ls_report_options *o)
{
        return o->annotate;
}

static unsigned annotate_dims(const struct ls_report_options *o)
{
        (void)o;
        return LS_DIM_NOLINE;
}

const struct ls_view ls_view_annotate = {
        .name = "annotate",
        .chosen = annotate_chosen,
        .dims = annotate_dims,
        .text = annotate_text,
        .json = annotate_json,
};
