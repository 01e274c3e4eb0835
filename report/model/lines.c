/* Ticks by line of each source, hottest source first. Called by report/view/annotate.c and the
 * terminal browser. */
#include "report/model/lines.h"
#include "formats/escape.h"
#include "formats/export/calltree.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static int by_line(const void *a, const void *b)
{
        const struct ls_line *x = a, *y = b;

        if (x->source != y->source)
                return x->source < y->source ? -1 : 1;
        if (x->line != y->line)
                return x->line < y->line ? -1 : 1;
        return x->stripped - y->stripped;
}

static int hotter(const void *a, const void *b)
{
        const struct ls_line_file *x = a, *y = b;

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
               fnmatch(what,
                       r->profile->sources[source].name.s +
                               (r->profile->sources[source].name.len > 0),
                       0) == 0;
}

/* Which functions --annotate=WHAT means: those of matching files, else those with a matching name.
 * Returns how many. */
static size_t choose_functions(struct ls_lines *l, const char *what)
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

/* Whether a location is in a source, and wanted. */
static int is_wanted(const struct ls_lines *l, const struct ls_location *at)
{
        const struct ls_function *f = &l->r->profile->functions[at->function];

        return f->kind == LS_FUNC_LUA && f->source && (!l->wanted || l->wanted[at->function]);
}

/* Ticks with callees, each line once; what is not wanted goes to a label of its own. Adds to
 * lines[0 .. *n). */
static int collect_totals(struct ls_lines *l, const struct ls_grouping *g, size_t *n)
{
        const struct ls_profile *p = l->r->profile;
        uint64_t *sums = ls_stack_totals(p, l->r->aggregate->self);
        uint64_t *total = calloc((size_t)g->n_groups + 1, sizeof(*total));
        uint32_t *label = malloc(((size_t)p->n_locations + 1) * sizeof(*label));
        int error = sums && total && label ? 0 : -ENOMEM;

        for (uint32_t i = 0; !error && i < p->n_locations; i++)
                label[i] = is_wanted(l, &p->locations[i]) && p->locations[i].line ? g->group_of[i]
                                                                                  : g->n_groups;
        if (!error)
                error = ls_label_totals(p, sums, label, g->n_groups + 1, total);
        for (uint32_t i = 0; !error && i < p->n_locations; i++) {
                const struct ls_location *at = &p->locations[i];

                if (label[i] == g->n_groups || !total[label[i]])
                        continue;
                l->lines[(*n)++] = (struct ls_line){ .source = p->functions[at->function].source,
                                                     .line = at->line,
                                                     .total = total[label[i]] };
                total[label[i]] = 0;
        }
        free(label);
        free(total);
        free(sums);
        return error;
}

static void collect_own(struct ls_lines *l, const struct ls_grouping *g, size_t *n)
{
        const struct ls_profile *p = l->r->profile;
        const struct ls_aggregate *a = l->r->aggregate;

        for (size_t i = 0; i < a->n_cells; i++) {
                const struct ls_location *at =
                        &p->locations[p->stacks[g->paying[a->cells[i].stack]].location];
                const struct ls_function *f = &p->functions[at->function];

                if (is_wanted(l, at))
                        l->lines[(*n)++] = (struct ls_line){ f->source, at->line,
                                                             !at->line && !f->last_line,
                                                             a->cells[i].ticks, 0 };
        }
}

/* Lines without ticks: those that could have been executed, and were not. */
static void collect_others(struct ls_lines *l, size_t *n)
{
        const struct ls_profile *p = l->r->profile;
        const uint8_t *could = l->r->aggregate->could;

        for (uint32_t i = 0; could && i < p->n_stacks; i++) {
                const struct ls_location *at = &p->locations[p->stacks[i].location];
                const struct ls_function *f = &p->functions[at->function];

                if (could[i] && is_wanted(l, at))
                        l->lines[(*n)++] = (struct ls_line){ f->source, at->line,
                                                             !at->line && !f->last_line, 0, 0 };
        }
}

/* Ticks by source and line, sorted and merged. */
static int collect(struct ls_lines *l)
{
        const struct ls_profile *p = l->r->profile;
        const struct ls_aggregate *a = l->r->aggregate;
        struct ls_grouping *g = NULL;
        size_t n = 0;
        int error = ls_grouping_new(ls_key_find("line", 4), p, l->r->labels, &g);

        if (error)
                return error;
        l->lines = malloc((a->n_cells + (a->could ? p->n_stacks : 0) + (size_t)p->n_locations + 1) *
                          sizeof(*l->lines));
        if (l->lines) {
                collect_own(l, g, &n);
                collect_others(l, &n);
        }
        error = l->lines ? collect_totals(l, g, &n) : -ENOMEM;
        ls_grouping_free(g);
        if (error)
                return error;
        qsort(l->lines, n, sizeof(*l->lines), by_line);
        for (size_t i = 0; i < n; i++) {
                if (l->n_lines && by_line(&l->lines[l->n_lines - 1], &l->lines[i]) == 0) {
                        l->lines[l->n_lines - 1].ticks += l->lines[i].ticks;
                        l->lines[l->n_lines - 1].total += l->lines[i].total;
                } else {
                        l->lines[l->n_lines++] = l->lines[i];
                }
        }
        return 0;
}

/* A wanted function limits its file's listing to its lines. */
static void limit_to_functions(struct ls_lines *l, struct ls_line_file *f)
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

static int make_files(struct ls_lines *l)
{
        size_t n = 0;

        for (size_t i = 0; i < l->n_lines; i++)
                n += i == 0 || l->lines[i].source != l->lines[i - 1].source;
        l->files = calloc(n + 1, sizeof(*l->files));
        if (!l->files)
                return -ENOMEM;
        for (size_t i = 0; i < l->n_lines; i++) {
                const struct ls_line *line = &l->lines[i];
                struct ls_line_file *f;

                if (i == 0 || line->source != l->lines[i - 1].source) {
                        l->files[l->n_files++] =
                                (struct ls_line_file){ .source = line->source, .first = i };
                        limit_to_functions(l, &l->files[l->n_files - 1]);
                }
                f = &l->files[l->n_files - 1];
                f->n++;
                f->ticks += line->ticks;
                if (line->line == 0)
                        *(line->stripped ? &f->stripped : &f->not_recorded) += line->ticks;
                else if (line->ticks > f->most)
                        f->most = line->ticks;
        }
        qsort(l->files, l->n_files, sizeof(*l->files), hotter);
        return 0;
}

int ls_lines_init(struct ls_lines *l, const struct ls_report *r, const char *what)
{
        int error;

        memset(l, 0, sizeof(*l));
        l->r = r;
        if (what) {
                l->wanted = calloc((size_t)l->r->profile->n_functions + 1, 1);
                if (!l->wanted)
                        return -ENOMEM;
                if (!choose_functions(l, what)) {
                        ls_lines_done(l);
                        return -ENOENT;
                }
        }
        error = collect(l);
        if (!error)
                error = make_files(l);
        if (error)
                ls_lines_done(l);
        return error;
}

void ls_lines_done(struct ls_lines *l)
{
        free(l->lines);
        free(l->files);
        free(l->wanted);
        memset(l, 0, sizeof(*l));
}

char *ls_line_visible(struct ls_str line)
{
        char *expanded, *visible;
        size_t n = 0, tabs = 0;

        for (uint32_t i = 0; i < line.len; i++)
                tabs += line.s[i] == '\t';
        expanded = malloc(line.len + tabs * 8 + 1);
        if (!expanded)
                return NULL;
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
        free(expanded);
        return visible;
}
