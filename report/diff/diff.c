/* The command luasample diff: what changed between two recordings, or between several of each side,
 * and what of it may be chance. */
#include "report/diff/diff.h"

#include "report/diff/command.h"
#include "report/options/range.h"
#include "report/view/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAID_MOST 20                    /* rows above --fail-above that are named */

/* popt stores here; one command line is read in a process. */
static struct {
        char *output, *by, *normalize, *test, *alpha, *min, *format, *fail_above, *color, *before;
        int tree, inverse, total, full_path, no_pager, json, html;
} raw;

#define FLAG(name, help) POPT_ARG_NONE, &raw.name, 0, help, NULL
#define TEXT(name, arg, help) POPT_ARG_STRING, &raw.name, 0, help, arg

static const struct poptOption options[] = {
        { "output", 'o', TEXT(output, "FILE", "write to FILE, which appears when it is whole") },
        { "by", 0,
          TEXT(by,
               "function|module-function|line|module|vmstate|zone|zone-path|process|thread|vm|"
               "coroutine|"
               "jit-trace|type|label",
               "compare by this (function)") },
        { "total", 0, FLAG(total, "compare functions with what they call, not just themselves") },
        { "tree", 0, FLAG(tree, "compare call paths: one call tree of all recordings") },
        { "inverse", 0, FLAG(inverse, "with --tree: callees as roots") },
        { "normalize", 0,
          TEXT(normalize, "share|time|none",
               "compare shares of the samples, seconds of a run, or ticks (share)") },
        { "test", 0,
          TEXT(test, "auto|counts|welch|mann-whitney",
               "how chance is told apart (auto: counts of samples; welch with two runs or more on "
               "each side)") },
        { "alpha", 0,
          TEXT(alpha, "PERCENT", "rate of false discoveries among the marked rows (5%)") },
        { "fail-above", 0,
          TEXT(fail_above, "PERCENT",
               "exit with 1 when a row grew, not by chance, by more than this much of the whole") },
        { "format", 0, TEXT(format, "text|markdown|json|csv", "how to write it (text)") },
        { "json", 0, FLAG(json, "the same as --format json") },
        { "html", 0,
          FLAG(html,
               "a page for the browser, with a flame graph in red and blue: --html -o diff.html") },
        { "min", 0,
          TEXT(min, "PERCENT",
               "hide rows with less on both sides that may be chance (1%; 0 with json and csv)") },
        { "full-path", 0, FLAG(full_path, "paths of sources, not just file names") },
        { "before", 0,
          TEXT(before, "TIME",
               "with --service: compare with the same time so long before, such as 24h") },
        { NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)ls_range_option_table, 0, NULL,
          NULL },
        { NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)ls_filter_option_table, 0, NULL,
          NULL },
        { "color", 0,
          TEXT(color, "auto|always|never",
               "colour (auto: on a terminal, unless NO_COLOR is set)") },
        { "no-pager", 0, FLAG(no_pager, "no pager") },
        POPT_TABLEEND
};

static const char *const norm_words[] = { "share", "time", "none", NULL };
static const char *const test_words[] = { "auto", "counts", "welch", "mann-whitney", NULL };
static const char *const format_words[] = { "text", "markdown", "json", "csv", NULL };
static const char *const color_words[] = { "auto", "always", "never", NULL };

static int read_words(struct ls_diff_options *o)
{
        int norm = LS_NORM_SHARE, test = LS_TEST_AUTO, color = LS_COLOR_AUTO;
        int format = raw.json ? LS_DIFF_JSON : LS_DIFF_TEXT;

        if ((raw.normalize && ls_options_one_of("--normalize", raw.normalize, norm_words, &norm)) ||
            (raw.test && ls_options_one_of("--test", raw.test, test_words, &test)) ||
            (raw.format && ls_options_one_of("--format", raw.format, format_words, &format)) ||
            (raw.color && ls_options_one_of("--color", raw.color, color_words, &color)))
                return -EINVAL;
        o->norm = (enum ls_diff_norm)norm;
        o->test = (enum ls_diff_test)test;
        o->format = (enum ls_diff_format)format;
        o->o.color = (enum ls_color_when)color;
        return 0;
}

static int read_values(struct ls_diff_options *o)
{
        double alpha = 5;

        o->fail_above = -1;
        o->o.by[0] = &ls_keys[0];
        o->o.depth = 1;
        if (read_words(o))
                return -EINVAL;
        o->o.min = o->format == LS_DIFF_TEXT || o->format == LS_DIFF_MARKDOWN ? 1 : 0;
        if ((raw.by && ls_options_by(raw.by, &o->o)) || ls_options_filters(&o->o.want) ||
            (raw.min && ls_options_percent("--min", raw.min, &o->o.min)) ||
            (raw.alpha && ls_options_percent("--alpha", raw.alpha, &alpha)) ||
            (raw.fail_above && ls_options_percent("--fail-above", raw.fail_above, &o->fail_above)))
                return -EINVAL;
        if (o->o.want.events.n && !ls_events_time(&o->o.want.events) && !raw.normalize)
                o->norm = LS_NORM_NONE;
        o->moments = o->o.want.events.n == 1 && o->o.want.time &&
                     (o->o.want.events.id[0] == LS_EVENT_LIVE ||
                      o->o.want.events.id[0] == LS_EVENT_LIVE_OBJECTS);
        o->alpha = alpha / 100;
        o->total = raw.total || (ls_events_wait(&o->o.want.events) && o->o.by[0]->is_frame &&
                                 !raw.tree && !raw.html);
        o->html = raw.html;
        o->o.tree = raw.tree;
        o->o.inverse = raw.inverse;
        o->o.full_path = raw.full_path;
        o->o.no_pager = raw.no_pager;
        o->o.output = raw.output;
        return 0;
}

/* Options that contradict each other. */
static int settle(const struct ls_diff_options *o)
{
        const char *wrong = NULL;

        if (o->o.by[1])
                wrong = "--by takes one level here";
        else if (o->o.want.events.n > 1)
                wrong = "--event: one event at a time here";
        else if (o->o.want.events.n && !ls_events_time(&o->o.want.events) &&
                 (o->norm == LS_NORM_TIME || o->html))
                wrong = o->html ? "--event: counts and memory have no time, which the page shows"
                                : "--event: counts and memory are no time: leave --normalize out";
        else if ((o->total || o->o.tree) && !o->o.by[0]->is_frame)
                wrong = "--total and --tree follow calls: give --by one of function, "
                        "module-function, line or module";
        else if (o->total && o->o.tree)
                wrong = "--tree shows what functions have with what they call: leave --total out";
        else if (o->o.inverse && !o->o.tree)
                wrong = "--inverse goes with --tree";
        else if (o->html && (raw.format || raw.json || raw.by || o->total || o->o.tree))
                wrong = "--html excludes --format, --by, --total and --tree: the page has all of "
                        "it";
        else if (o->html && (!o->o.output || !strcmp(o->o.output, "-")) && isatty(STDOUT_FILENO))
                wrong = "--html writes a page, and stdout is a terminal: name a file, such as -o "
                        "diff.html";
        else if (o->fail_above >= 0 && o->o.tree)
                wrong = "--fail-above judges rows that stand for themselves: leave --tree out";
        else if (o->test > LS_TEST_COUNTS && (o->n_files[0] < 2 || o->n_files[1] < 2))
                wrong = "this --test compares runs: give two recordings or more on each side, 'A1 "
                        "A2 -- B1 B2'";
        if (wrong)
                ls_error("diff: %s", wrong);
        return wrong ? -EINVAL : 0;
}

/* "A B", or "A1 A2 ... -- B1 B2 ...": after is what follows "--", NULL without one. */
static int read_files(struct ls_diff_options *o, poptContext ctx, const char **after,
                      unsigned n_after)
{
        const char **files = poptGetArgs(ctx);
        unsigned n = 0;

        while (files && files[n])
                n++;
        if (!after && n == 2) {
                after = files + 1;
                n = n_after = 1;
        }
        if (!after && n == 1 && o->moments) {
                after = files;
                n_after = 1;
        }
        if (n < 1 || n_after < 1) {
                ls_error(n > 2 ? "diff: which of the %u recordings are of which side? Give 'A1 A2 "
                                 "... -- B1 B2 ...'"
                               : "diff: give two recordings, 'A B', or several of each side, 'A1 "
                                 "A2 ... -- B1 B2 ...'",
                         n);
                return -EINVAL;
        }
        o->files[0] = calloc(n, sizeof(*o->files[0]));
        o->files[1] = calloc(n_after, sizeof(*o->files[1]));
        if (!o->files[0] || !o->files[1])
                return -ENOMEM;
        for (unsigned i = 0; i < n; i++)        /* popt frees its own */
                o->files[0][i] = strdup(files[i]);
        for (unsigned i = 0; i < n_after; i++)
                o->files[1][i] = strdup(after[i]);
        o->moments = o->moments && after == files;
        o->n_files[0] = n;
        o->n_files[1] = n_after;
        return 0;
}

/* Both sides are times of the store. Returns 0 or the status to exit with. */
static int read_ranges(struct ls_diff_options *o, poptContext ctx, int has_after)
{
        const char *names[2] = { NULL, NULL };
        int status;

        if (!raw.before || has_after || poptPeekArg(ctx)) {
                ls_error(raw.before ? "diff: recordings and --service exclude each other"
                                    : "diff: --service: give --before TIME, such as 24h: what is "
                                      "compared with");
                return LS_EXIT_USAGE;
        }
        if (o->o.want.from.kind != LS_BOUND_OPEN || o->o.want.to.kind != LS_BOUND_OPEN) {
                ls_error("diff: --time is for files; --since and --until say which time of the "
                         "store");
                return LS_EXIT_USAGE;
        }
        status = ls_range_open("diff", raw.before, &names[LS_BEFORE]);
        if (!status)
                status = ls_range_open("diff", NULL, &names[LS_AFTER]);
        if (!status)
                status = ls_range_read("diff");
        for (int side = 0; side < 2 && !status; side++) {
                o->files[side] = calloc(1, sizeof(*o->files[side]));
                if (!o->files[side])
                        return LS_EXIT_FAIL;
                o->files[side][0] = strdup(names[side]);
                o->n_files[side] = 1;
        }
        return status;
}

static void done_options(struct ls_diff_options *o)
{
        for (int side = 0; side < 2; side++) {
                for (unsigned i = 0; o->files[side] && i < o->n_files[side]; i++)
                        free((char *)(uintptr_t)o->files[side][i]);
                free(o->files[side]);
        }
}

/* Returns LS_GO_ON, else the status to exit with. */
static int read_options(int argc, const char **argv, struct ls_diff_options *o)
{
        const char **after = NULL;
        unsigned n_after = 0;
        poptContext ctx;
        int val, r = 0;

        for (int i = 1; i < argc && !after; i++) {
                if (strcmp(argv[i], "--"))
                        continue;
                after = argv + i + 1;
                n_after = (unsigned)(argc - i - 1);
                argc = i;
        }
        memset(o, 0, sizeof(*o));
        ls_options_of("diff");
        ctx = ls_options_begin(&ls_cmd_diff, argc, argv, 0);
        while (!r && (val = ls_options_next(&ls_cmd_diff, ctx)) > 0)
                r = ls_options_value(&o->o, val, poptGetOptArg(ctx));
        r = r ? LS_EXIT_USAGE : ls_options_status(val);
        if (r == LS_GO_ON && read_values(o))
                r = LS_EXIT_USAGE;
        if (r == LS_GO_ON && (ls_range_wanted() || raw.before)) {
                int status = read_ranges(o, ctx, after != NULL);

                r = status ? status : LS_GO_ON;
        } else if (r == LS_GO_ON && read_files(o, ctx, after, n_after)) {
                r = LS_EXIT_USAGE;
        }
        if (r == LS_GO_ON && settle(o))
                r = LS_EXIT_USAGE;
        poptFreeContext(ctx);
        return r;
}

/* Sources whose lines are not matched by their numbers. */
static int count_changed(struct ls_diff *d)
{
        uint8_t *seen = calloc((size_t)d->n_sources + 1, 1);

        if (!seen)
                return -ENOMEM;
        for (unsigned k = 0; k < d->n_runs; k++) {
                const struct ls_grouping *g = d->runs[k].grouping;

                for (uint32_t i = 0; i < g->n_groups; i++) {
                        uint32_t source = g->key->source ? g->key->source(g, i) : 0,
                                 at = d->runs[k].source_of[source];

                        if (!source || !d->changed[at] || seen[at])
                                continue;
                        seen[at] = 1;
                        d->n_changed += d->changed[at] == LS_CHANGED;
                        d->n_mapped += d->changed[at] == LS_MAPPED;
                }
        }
        free(seen);
        return 0;
}

static int compare(struct ls_diff *d)
{
        int r = ls_diff_names(d);

        d->test = d->o->test;
        if (d->test == LS_TEST_AUTO)
                d->test = d->n_side[0] > 1 && d->n_side[1] > 1 ? LS_TEST_WELCH : LS_TEST_COUNTS;
        if (!r && !d->o->moments && !strcmp(d->o->o.by[0]->name, "line"))
                r = count_changed(d);
        if (!r)
                r = d->o->o.tree ? ls_diff_tree_rows(d) : ls_diff_rows(d);
        return r;
}

static int write_diff(const struct ls_diff *d, const struct ls_output *out)
{
        if (d->o->html)
                return ls_diff_html(d, out->file);
        switch (d->o->format) {
        case LS_DIFF_MARKDOWN:
                return ls_diff_markdown(d, out->file);
        case LS_DIFF_JSON:
                return ls_diff_json(d, out->file);
        case LS_DIFF_CSV:
                return ls_diff_csv(d, out->file);
        default:
                return ls_diff_text(d, out->file, out->color, out->width);
        }
}

static void say_growth(const struct ls_diff *d, const struct ls_diff_row *row, const char *name)
{
        char before[32], after[32];

        ls_diff_value(d, row->before, 0, before, sizeof(before));
        ls_diff_value(d, row->after, 0, after, sizeof(after));
        ls_error("diff: %s grew from %s to %s, by %.2f%% of the whole: above --fail-above %g%%",
                 name, before, after, row->growth, d->o->fail_above);
}

/* The exit status that --fail-above asks for. Rows are sorted by size: all that count are said, up
 * to SAID_MOST. */
static int judge(const struct ls_diff *d)
{
        uint32_t n = 0;

        if (d->o->fail_above < 0)
                return 0;
        if (d->whole.significant && d->whole.growth > d->o->fail_above) {
                say_growth(d, &d->whole, "the whole");
                n++;
        }
        for (uint32_t i = 0; i < d->n_rows; i++) {
                const struct ls_diff_row *row = &d->rows[i];

                if (!row->significant || !(row->growth > d->o->fail_above))
                        continue;
                if (n++ < SAID_MOST)
                        say_growth(d, row, d->items[row->item].name);
        }
        if (n > SAID_MOST)
                ls_error("diff: %u more grew by more than %g%%", n - SAID_MOST, d->o->fail_above);
        return n ? LS_EXIT_FAIL : 0;
}

/* Everything between the options and the exit status. */
static int run_diff(struct ls_diff *d)
{
        const struct ls_report_options *o = &d->o->o;
        struct ls_output out = { .file = NULL };
        int status = ls_diff_open(d), r, end;

        if (status)
                return status;
        r = compare(d);
        if (r) {
                ls_error("diff: %s", strerror(-r));
                return LS_EXIT_FAIL;
        }
        r = ls_output_open(&out, o->output, o->color,
                           !o->no_pager && d->o->format == LS_DIFF_TEXT && !d->o->html);
        if (r) {
                ls_error("diff: cannot write %s: %s", o->output ? o->output : "stdout",
                         strerror(-r));
                return LS_EXIT_FAIL;
        }
        r = write_diff(d, &out);
        if (r)
                ls_error("diff: %s", strerror(-r));
        end = ls_output_close(&out, r != 0);
        if (end)
                ls_error("diff: cannot write %s: %s", o->output, strerror(-end));
        return r || end ? LS_EXIT_FAIL : judge(d);
}

static int diff_run(int argc, const char **argv)
{
        struct ls_diff_options o;
        struct ls_diff d = { .o = &o };
        int status = read_options(argc, argv, &o);

        status = status == LS_GO_ON ? run_diff(&d) : status;
        ls_diff_done(&d);
        done_options(&o);
        return status;
}

const struct ls_command ls_cmd_diff = {
        .name = "diff",
        .summary = "show what changed between recordings, and what of it may be chance",
        .usage = "[OPTION...] A B | A... -- B...",
        .options = options,
        .run = diff_run,
        .shows = 1,
};
