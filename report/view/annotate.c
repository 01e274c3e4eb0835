/* View "annotate": source listings with the shares of each line, as -jp=a and -jp=A show them: its
 * own, and with callees. */
#include "cli/command.h"
#include "formats/escape.h"
#include "formats/json.h"
#include "report/model/lines.h"
#include "report/model/source.h"
#include "report/view/view.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_WIDTH 9                   /* of a column of counts or times */
#define CONTEXT 3                       /* lines around a hot one, as -jp=a */

/* Of one event; the first one says which files and lines are shown. */
struct column {
        struct ls_report r;             /* with the event's aggregate */
        struct ls_lines l;
        int exact;                      /* it is counted */
        uint8_t amount;                 /* enum ls_event_kind, when it is of memory; else 0 */
        int width;
};

struct listing {
        struct column columns[LS_EVENTS_SHOWN];
        unsigned n;
};

static const struct ls_lines *first_of(const struct listing *a)
{
        return &a->columns[0].l;
}

static void listing_done(struct listing *a)
{
        for (unsigned e = 0; e < a->n; e++)
                ls_lines_done(&a->columns[e].l);
}

static int listing_init(struct listing *a, const struct ls_report *r)
{
        int error = 0;

        memset(a, 0, sizeof(*a));
        for (unsigned e = 0; !error && e < r->filter->choice.n; e++) {
                struct column *c = &a->columns[a->n++];

                c->r = *r;
                c->r.aggregate = r->events[e];
                c->width = (int)strlen(ls_event_name(r->filter->choice.id[e]));
                c->width = c->width > LEAST_WIDTH ? c->width : LEAST_WIDTH;
                c->amount = ls_event_is_amount(r->filter->choice.id[e]) ? r->filter->choice.id[e]
                                                                        : 0;
                c->exact = ls_event_is_exact(r->filter->choice.id[e]);
                error = ls_lines_init(&c->l, &c->r, r->o->annotate_what);
                if (e && error == -ENOENT)
                        error = 0;
        }
        if (error == -ENOENT)
                ls_error("report: --annotate='%s': no such file or function in this trace "
                         "(luasample report --by module lists files)", r->o->annotate_what);
        return error;
}

/* Every line that could be executed is shown of what is counted; of a time, those with enough of
 * it. */
static int is_hot(const struct ls_report *r, const struct ls_line *line)
{
        return line->line && (ls_events_count(&r->filter->choice) ||
                              !ls_below_min(r, line->ticks, r->aggregate->ticks) ||
                              !ls_below_min(r, line->total, r->aggregate->ticks));
}

/* Each line that is hot enough to be shown: by line number, NULL = not shown. */
static const struct ls_line **hot_lines(const struct ls_lines *l, const struct ls_line_file *f,
                                        uint32_t n_lines)
{
        const struct ls_line **hot = calloc((size_t)n_lines + 2, sizeof(*hot));

        for (size_t i = f->first; hot && i < f->first + f->n; i++) {
                const struct ls_line *line = &l->lines[i];

                if (line->line <= n_lines && is_hot(l->r, line))
                        hot[line->line] = line;
        }
        return hot;
}

/* The line in this column, NULL = there it has none. */
static const struct ls_line *find_line(const struct column *c, uint32_t source, uint32_t line)
{
        for (size_t i = 0; i < c->l.n_files; i++) {
                const struct ls_line_file *f = &c->l.files[i];

                if (f->source != source)
                        continue;
                for (size_t k = f->first; k < f->first + f->n; k++)
                        if (c->l.lines[k].line == line)
                                return &c->l.lines[k];
        }
        return NULL;
}

/* '.' is what could have been executed, and was not. */
static void put_count(const struct column *c, const struct ls_line *line)
{
        if (!line || !line->ticks)
                fprintf(c->r.out, "%*s | ", c->width, line ? "." : "");
        else
                fprintf(c->r.out, "%*" PRIu64 " | ", c->width, line->ticks);
}

#define SHARES 14                       /* columns of both shares and the bar */

/* One event's time is shown as shares. */
static int has_shares(const struct listing *a)
{
        return a->n == 1 && !a->columns[0].exact && !a->columns[0].amount;
}

static unsigned width_before(const struct listing *a)
{
        unsigned width = 0;

        for (unsigned e = 0; e < a->n; e++)
                width += (unsigned)a->columns[e].width + 3;
        return has_shares(a) ? SHARES : width;
}

static void put_share(const struct ls_report *r, uint64_t ticks)
{
        double share = ls_share(ticks, r->aggregate->ticks);

        if (!ticks || ls_below_min(r, ticks, r->aggregate->ticks))
                fprintf(r->out, "      ");
        else if (r->o->raw)
                fprintf(r->out, "%s%5" PRIu64 "%s ", ls_heat(r, share), ticks, ls_plain(r));
        else
                fprintf(r->out, "%s %3.0f%%%s ", ls_heat(r, share), floor(100 * share + 0.5),
                        ls_plain(r));
}

/* What a line has itself, and with what it called; NULL = nothing to show. */
static void put_shares(const struct ls_report *r, const struct ls_line *line)
{
        put_share(r, line ? line->ticks : 0);
        put_share(r, line ? line->total : 0);
        fputs("| ", r->out);
}

static void put_time(const struct column *c, uint64_t ticks)
{
        char amount[LS_AMOUNT];

        if (ticks && c->amount)
                fprintf(c->r.out, "%*s | ", c->width,
                        ls_amount_text(c->amount, (double)ticks, amount));
        else if (ticks)
                fprintf(c->r.out, "%*.3fs | ", c->width - 1,
                        (double)ticks * (double)c->r.profile->interval_ns / 1e9);
        else
                fprintf(c->r.out, "%*s | ", c->width, "");
}

/* first: of the first event, NULL = nothing is shown. */
static void put_columns(const struct listing *a, const struct ls_line_file *f, uint32_t n,
                        const struct ls_line *first)
{
        if (has_shares(a)) {
                put_shares(&a->columns[0].r, first);
                return;
        }
        for (unsigned e = 0; e < a->n; e++) {
                const struct column *c = &a->columns[e];
                const struct ls_line *line = e ? find_line(c, f->source, n) : first;

                if (c->exact)
                        put_count(c, line);
                else
                        put_time(c, line ? line->ticks : 0);
        }
}

/* before: columns that stand before it. */
static void put_source_line(const struct ls_report *r, struct ls_str line, unsigned before)
{
        char *visible = ls_line_visible(line);

        if (visible)
                ls_put_fit(r->out, visible, r->width > before + 12 ? r->width - before : 0, 0);
        fputc('\n', r->out);
        free(visible);
}

/* Hunks around hot lines, or all lines. A line is shown when a hot one is at most CONTEXT away. */
static int put_lines(const struct listing *a, const struct ls_line_file *f,
                     const struct ls_source_text *t)
{
        const struct ls_lines *l = first_of(a);
        const struct ls_report *r = l->r;
        const struct ls_line **hot = hot_lines(l, f, t->n_lines);
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
                put_columns(a, f, n, hot[n]);
                put_source_line(r, t->lines[n - 1], width_before(a));
        }
        free((void *)hot);
        return 0;
}

/* The hot lines of a source whose text there is not. */
static void put_bare_lines(const struct listing *a, const struct ls_line_file *f)
{
        const struct ls_lines *l = first_of(a);

        for (size_t i = f->first; i < f->first + f->n; i++) {
                const struct ls_line *line = &l->lines[i];

                if (!is_hot(l->r, line))
                        continue;
                put_columns(a, f, line->line, line);
                fprintf(l->r->out, "line %u\n", line->line);
        }
}

/* Ticks that no line can have. */
static void put_without_line(const struct ls_lines *l, const struct ls_line_file *f)
{
        const struct ls_report *r = l->r;
        struct ls_str scope = ls_profile_str(r->profile, LS_INFO_SCOPE);
        char *text = ls_visible(scope.s, scope.len);

        if (text && f->not_recorded && !ls_below_min(r, f->not_recorded, r->aggregate->ticks)) {
                put_shares(r, &(struct ls_line){ .ticks = f->not_recorded });
                fprintf(r->out, "[line not recorded%s%s]\n", *text ? ": --scope " : "", text);
        }
        if (f->stripped && !ls_below_min(r, f->stripped, r->aggregate->ticks)) {
                put_shares(r, &(struct ls_line){ .ticks = f->stripped });
                fprintf(r->out, "[no line: the bytecode is stripped of its lines]\n");
        }
        free(text);
}

static int put_file(const struct listing *a, const struct ls_line_file *f)
{
        const struct ls_lines *l = first_of(a);
        const struct ls_report *r = l->r;
        const char *name = r->labels->source[f->source];
        struct ls_source_text t;
        char *path;
        int error = ls_source_read(r->profile, f->source, r->o, &t);

        if (error)
                return error;
        path = t.path ? ls_visible(t.path, strlen(t.path)) : NULL;
        if (t.problem == LS_SOURCE_UNREADABLE)
                fprintf(r->out, "\n====== ERROR: %s: %s (--source-dir names other places) ======\n",
                        path ? path : name, strerror(t.error));
        else
                fprintf(r->out, "\n====== %s ======\n", path ? path : name);
        if (*ls_source_problem_text(t.problem)) {
                ls_put_fit(r->out, ls_source_problem_text(t.problem), r->width, 0);
                fputc('\n', r->out);
        }
        if (has_shares(a))
                fprintf(r->out, "%s Self Total |%s\n", ls_dim(r), ls_plain(r));
        put_without_line(l, f);
        if (t.lines)
                error = put_lines(a, f, &t);
        else
                put_bare_lines(a, f);
        free(path);
        ls_source_done(&t);
        return error;
}

/* Whether a file has a line to show. */
static int has_hot_line(const struct ls_lines *l, const struct ls_line_file *f)
{
        if ((f->not_recorded && !ls_below_min(l->r, f->not_recorded, l->r->aggregate->ticks)) ||
            (f->stripped && !ls_below_min(l->r, f->stripped, l->r->aggregate->ticks)))
                return 1;
        for (size_t i = f->first; i < f->first + f->n; i++)
                if (is_hot(l->r, &l->lines[i]))
                        return 1;
        return 0;
}

static int annotate_text(const struct ls_report *r)
{
        struct listing a;
        int error = listing_init(&a, r), shown = 0;
        const struct ls_lines *l = first_of(&a);
        size_t hidden = 0;
        uint64_t hidden_ticks = 0;

        if (!error && !has_shares(&a)) {
                fputs(ls_dim(r), r->out);
                for (unsigned e = 0; e < a.n; e++)
                        fprintf(r->out, "%*s | ", a.columns[e].width,
                                ls_event_name(r->filter->choice.id[e]));
                fprintf(r->out, "%s\n", ls_plain(r));
        }
        for (size_t i = 0; !error && i < l->n_files; i++) {
                if (!has_hot_line(l, &l->files[i]) && !r->o->annotate_what) {
                        hidden++;
                        hidden_ticks += l->files[i].ticks;
                        continue;
                }
                error = put_file(&a, &l->files[i]);
                shown++;
        }
        if (!error && hidden)
                fprintf(r->out,
                        "\n%s# %zu more file%s without a line of %g%%, with %.2f%% in all (--min 0 "
                        "shows all)%s\n",
                        ls_dim(r), hidden, hidden == 1 ? "" : "s", r->o->min,
                        100 * ls_share(hidden_ticks, r->aggregate->ticks), ls_plain(r));
        else if (!error && !shown)
                fprintf(r->out, "[No samples in Lua source; --by line --sort total shows the lines "
                                "that called what ran]\n");
        listing_done(&a);
        return error;
}

static int json_file(const struct listing *a, struct ls_js *g, const struct ls_line_file *f)
{
        const struct ls_lines *l = first_of(a);
        const struct ls_report *r = l->r;
        struct ls_source_text t;
        int error = ls_source_read(r->profile, f->source, r->o, &t);

        if (error)
                return error;
        ls_js_open(g, '{');
        ls_js_key_string(g, "source", r->labels->source[f->source]);
        ls_js_key_string(g, "path", t.path ? t.path : "");
        ls_js_key_string(g, "notice",
                         t.problem == LS_SOURCE_UNREADABLE ? strerror(t.error)
                                                           : ls_source_problem_text(t.problem));
        ls_js_key_share(g, "self", ls_share(f->ticks, r->aggregate->ticks));
        ls_js_key_u64(g, "self_ticks", f->ticks);
        ls_js_key_u64(g, "line_not_recorded_ticks", f->not_recorded);
        ls_js_key_u64(g, "no_line_ticks", f->stripped);
        ls_js_key_open(g, "lines", '[');
        for (size_t i = f->first; i < f->first + f->n; i++) {
                const struct ls_line *line = &l->lines[i];
                double share = ls_share(line->ticks, r->aggregate->ticks);

                if (!is_hot(r, line))
                        continue;
                ls_js_open(g, '{');
                ls_js_key_u64(g, "line", line->line);
                ls_js_key_share(g, "self", share);
                ls_js_key_u64(g, "self_ticks", line->ticks);
                ls_js_key_share(g, "margin", ls_margin(share, r->aggregate->effective));
                ls_js_key_share(g, "total", ls_share(line->total, r->aggregate->ticks));
                ls_js_key_u64(g, "total_ticks", line->total);
                for (unsigned e = 1; e < a->n; e++) {
                        const struct ls_line *other =
                                find_line(&a->columns[e], f->source, line->line);

                        ls_js_key_u64(g, ls_event_name(r->filter->choice.id[e]),
                                      other ? other->ticks : 0);
                }
                if (t.lines && line->line <= t.n_lines)
                        ls_js_key_text(g, "text", t.lines[line->line - 1]);
                ls_js_close(g, '}');
        }
        ls_js_close(g, ']');
        ls_js_close(g, '}');
        ls_source_done(&t);
        return 0;
}

static int annotate_json(const struct ls_report *r, struct ls_js *g)
{
        struct listing a;
        int error = listing_init(&a, r);

        if (!error) {
                ls_js_key_open(g, "files", '[');
                for (size_t i = 0; !error && i < first_of(&a)->n_files; i++)
                        error = json_file(&a, g, &first_of(&a)->files[i]);
                ls_js_close(g, ']');
        }
        listing_done(&a);
        return error;
}

static int annotate_chosen(const struct ls_report_options *o)
{
        return o->annotate;
}

const struct ls_view ls_view_annotate = {
        .name = "annotate",
        .chosen = annotate_chosen,
        .text = annotate_text,
        .json = annotate_json,
};
