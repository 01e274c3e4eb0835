/* The option tables of luasample report, tui and export, and what their values mean; filters are in
 * filter.c. Called by the commands. */
#include "report/options/options.h"

#include "report/options/range.h"
#include "cli/suggest.h"
#include "formats/export/export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {                                  /* options that may come several times, or that need more
                                         * than a store */
        VAL_SOURCE_DIR = LS_VAL_REPORT, VAL_SPLIT, VAL_ANNOTATE,
};

/* popt stores flags where they are read from, and here words that are still to be understood. */
static struct ls_report_options given;
static struct raw {
        char *input, *output, *by, *depth, *format, *min, *sort, *color;
        char *words[64];                /* arguments of the VAL_ options: they live as long as the
                                         * process */
        unsigned n_words;
} raw;

#define FLAG(name, help) POPT_ARG_NONE, &given.name, 0, help, NULL
#define TEXT(name, arg, help) POPT_ARG_STRING, &raw.name, 0, help, arg

#define BY_OPTION(more)                                                                            \
        {                                                                                          \
                "by", 0,                                                                           \
                        TEXT(by,                                                                   \
                             "function|module-function|line|module|vmstate|zone|zone-path|"        \
                             "process|thread|vm|coroutine|"                                        \
                             "jit-trace|type|label" more,                                          \
                             "group by this; two levels with a comma: --by vmstate,function")      \
        }
#define RANGE_OPTIONS                                                                              \
        {                                                                                          \
                NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)ls_range_option_table, 0,      \
                        NULL, NULL                                                                 \
        }
#define FILTER_OPTIONS                                                                             \
        {                                                                                          \
                NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)ls_filter_option_table, 0,     \
                        NULL, NULL                                                                 \
        }

#define LS_EXPORTER(ident, name) "|" name
static const char report_formats[] = "text|json"
#include "formats/export/exporters.def"
        ;
static const char export_formats[] = "auto"
#include "formats/export/exporters.def"
        ;
#undef LS_EXPORTER

const struct poptOption ls_report_option_table[] = {
        { "input", 'i', TEXT(input, "FILE", "trace to read, - for stdin (luasample.data)") },
        RANGE_OPTIONS,
        { "output", 'o', TEXT(output, "FILE", "write to FILE, which appears when it is whole") },
        BY_OPTION("|gc"),
        { "depth", 0, TEXT(depth, "N", "group by N frames: callee < caller") },
        { "inverse", 0,
          FLAG(inverse, "with --depth: caller > callee; with --split: callees; with --tree: "
                        "callees as roots") },
        { "split", 0, POPT_ARG_STRING | POPT_ARGFLAG_OPTIONAL, NULL, VAL_SPLIT,
          "second level: callers of each function, or its callees", "callers|callees" },
        { "tree", 0, FLAG(tree, "call tree") },
        { "stacks", 0, FLAG(stacks, "each stack by itself, as luasample stack shows them") },
        { "annotate", 0, POPT_ARG_STRING | POPT_ARGFLAG_OPTIONAL, NULL, VAL_ANNOTATE,
          "source listing with the share of each line alone and with callees, of all hot files or "
          "of one file or function",
          "FILE|FUNCTION" },
        { "whole-file", 0,
          FLAG(whole_file, "with --annotate: all lines, not just those around hot ones") },
        { "source-dir", 0, POPT_ARG_STRING, NULL, VAL_SOURCE_DIR,
          "look for sources in DIR first (several times)", "DIR" },
        { "format", 0, TEXT(format, report_formats, "write for another tool") },
        { "json", 0, FLAG(json, "the view as JSON") },
        { "html", 0,
          FLAG(html, "a page for the browser, with flame graph, timeline and sources: --html -o "
                     "profile.html") },
        { "min", 0, TEXT(min, "PERCENT", "hide what has less (3%; 0 with --json)") },
        { "sort", 0,
          TEXT(sort, "self|total|name",
               "order of rows (self; total of suspended and ready time)") },
        { "raw", 0, FLAG(raw, "ticks in place of shares") },
        { "full-path", 0, FLAG(full_path, "paths of sources, not just file names") },
        { "inlined", 0,
          FLAG(inlined, "builtins that compiled code has inlined as rows of their own") },
        { "tui", 't', FLAG(tui, "browse on the terminal, as luasample tui does") },
        { "no-mouse", 0, FLAG(no_mouse, "with --tui: leave the mouse to the terminal") },
        FILTER_OPTIONS,
        { "color", 0,
          TEXT(color, "auto|always|never",
               "colour (auto: on a terminal, unless NO_COLOR is set)") },
        { "no-pager", 0, FLAG(no_pager, "no pager") },
        POPT_TABLEEND
};

#define TUI_LOOK                                                                                   \
        BY_OPTION(""),                                                                             \
                { "source-dir",                                                                    \
                  0,                                                                               \
                  POPT_ARG_STRING,                                                                 \
                  NULL,                                                                            \
                  VAL_SOURCE_DIR,                                                                  \
                  "look for sources in DIR first (several times)",                                 \
                  "DIR" },                                                                         \
                { "min", 0,                                                                        \
                  TEXT(min, "PERCENT", "branches of the call tree with less are closed (3%)") },   \
                { "sort", 0,                                                                       \
                  TEXT(sort, "self|total|name",                                                    \
                       "order of rows (self; total of suspended and ready time)") },               \
                { "raw", 0, FLAG(raw, "ticks in place of shares") },                               \
                { "full-path", 0, FLAG(full_path, "paths of sources, not just file names") },      \
                { "inlined", 0,                                                                    \
                  FLAG(inlined, "builtins that compiled code has inlined as rows of their own") }, \
                FILTER_OPTIONS,                                                                    \
                { "color", 0,                                                                      \
                  TEXT(color, "auto|always|never", "colour (auto: unless NO_COLOR is set)") },     \
        {                                                                                          \
                "no-mouse", 0,                                                                     \
                        FLAG(no_mouse,                                                             \
                             "leave the mouse to the terminal, which selects text with it")        \
        }

const struct poptOption ls_tui_option_table[] = {
        { "input", 'i', TEXT(input, "FILE", "trace to read, - for stdin (luasample.data)") },
        RANGE_OPTIONS,
        { "tree", 0, FLAG(tree, "begin with the call tree") },
        { "inverse", 0, FLAG(inverse, "with --tree: callees as roots") },
        { "annotate", 0, POPT_ARG_STRING | POPT_ARGFLAG_OPTIONAL, NULL, VAL_ANNOTATE,
          "begin with the source of the hottest file, or of one file or function",
          "FILE|FUNCTION" },
        TUI_LOOK,
        { "list-keys", 0, POPT_ARG_NONE | POPT_ARGFLAG_DOC_HIDDEN, &given.list_keys, 0,
          "for tests/check_man.py: the keys", NULL },
        POPT_TABLEEND
};

const struct poptOption ls_tui_look_option_table[] = { TUI_LOOK, POPT_TABLEEND };

const struct poptOption ls_export_option_table[] = {
        { "input", 'i', TEXT(input, "FILE", "trace to read, - for stdin (luasample.data)") },
        RANGE_OPTIONS,
        { "output", 'o',
          TEXT(output, "FILE",
               "write to FILE, which appears when it is whole; its suffix picks the format") },
        { "format", 0,
          TEXT(format, export_formats, "what to write (auto: by the suffix of --output)") },
        { "list", 0, FLAG(list, "the formats, with their suffixes") },
        { "per-thread", 0,
          FLAG(per_thread, "callgrind: a file for each thread, FILE-01, FILE-02, ...") },
        { "experimental", 0, FLAG(experimental, "allow formats that are not settled yet") },
        BY_OPTION(""),
        { "depth", 0, TEXT(depth, "N", "csv: group by N frames: callee < caller") },
        { "inverse", 0,
          FLAG(inverse, "csv: with --depth: caller > callee; with --split: callees") },
        { "split", 0, POPT_ARG_STRING | POPT_ARGFLAG_OPTIONAL, NULL, VAL_SPLIT,
          "csv: second level: callers of each function, or its callees", "callers|callees" },
        { "full-path", 0, FLAG(full_path, "paths of sources, not just file names") },
        { "inlined", 0,
          FLAG(inlined, "builtins that compiled code has inlined as rows of their own") },
        FILTER_OPTIONS,
        POPT_TABLEEND
};

static const char *command = "report";  /* whose line is read */

int ls_options_bad(const char *option, const char *value, const char *what)
{
        ls_error("%s: %s '%s': %s", command, option, value, what);
        return -EINVAL;
}

int ls_options_add(const char **list, unsigned *n, unsigned max, const char *option, char *value)
{
        if (*n == max)
                return ls_options_bad(option, value, "given too often");
        list[(*n)++] = value;
        return 0;
}

/* The place of text in words, which ends with NULL, or -1. */
static int find_word(const char *text, const char *const *words)
{
        for (int i = 0; words[i]; i++)
                if (!strcmp(text, words[i]))
                        return i;
        return -1;
}

int ls_options_one_of(const char *option, const char *text, const char *const *words, int *ret)
{
        return ls_one_of(command, option, text, words, ret);
}

int ls_options_by(const char *text, struct ls_report_options *o)
{
        const char *words[16];
        unsigned n = 0;

        for (const struct ls_key *k = ls_keys; k->name && n < 15; k++)
                words[n++] = k->name;
        words[n] = NULL;
        for (int level = 0;; level++) {
                size_t len = strcspn(text, ",");
                const struct ls_key *key;
                char word[64];
                int at;

                if (level == 2)
                        return ls_options_bad("--by", text, "two levels at most");
                if (len >= sizeof(word))
                        return ls_options_bad("--by", text, "not known (see --help)");
                memcpy(word, text, len);
                word[len] = '\0';
                key = ls_key_find(word, (uint32_t)len);
                if (!key && !strncmp(word, "label:", 6))
                        return ls_options_bad("--by", text,
                                              "give a key after label:, such as label:route");
                if (!key) {
                        if (ls_options_one_of("--by", word, words, &at))
                                return -EINVAL;
                        key = &ls_keys[at];
                }
                if (level && o->by[0] == key)
                        return ls_options_bad("--by", text, "named twice");
                o->by[level] = key;
                if (!text[len])
                        return 0;
                text += len + 1;
        }
}

int ls_options_percent(const char *option, const char *text, double *ret)
{
        char *end;
        double v = strtod(text, &end);

        if (*end == '%')
                end++;
        if (end == text || *end || !(v >= 0 && v <= 100))
                return ls_options_bad(option, text, "give a share from 0 to 100, such as 3%");
        *ret = v;
        return 0;
}

static int read_depth(const char *text, int *ret)
{
        char *end;
        long v = strtol(text, &end, 10);

        if (end == text || *end || v < 1 || v > 100000)
                return ls_options_bad("--depth", text, "give a number of frames from 1 to 100000");
        *ret = (int)v;
        return 0;
}

static int read_format(const char *text, struct ls_report_options *o, int is_export)
{
        const char *words[34];
        unsigned n = 0, first;
        int at;

        words[n++] = is_export ? "auto" : "text";
        if (!is_export)
                words[n++] = "json";
        first = n;
        for (const struct ls_exporter *const *e = ls_exporters; *e && n < 33; e++)
                words[n++] = (*e)->name;
        words[n] = NULL;
        at = find_word(text, words);
        if (at < 0 && ls_suggest(text, words))
                return ls_options_one_of("--format", text, words, &at);
        if (at < 0)
                return ls_options_bad("--format", text,
                                      "not known (luasample export --list shows all)");
        if ((unsigned)at >= first)
                o->exporter = ls_exporters[(unsigned)at - first];
        o->json |= !is_export && at == 1;
        return 0;
}

int ls_options_value(struct ls_report_options *o, int val, char *arg)
{
        static const char *const sides[] = { "callers", "callees", NULL };

        if (raw.n_words == sizeof(raw.words) / sizeof(raw.words[0])) {
                ls_error("%s: too many options", command);
                return -EINVAL;
        }
        raw.words[raw.n_words++] = arg;
        switch (val) {
        case VAL_SOURCE_DIR:
                return ls_options_add(o->source_dir, &o->n_source_dirs, 16, "--source-dir", arg);
        case VAL_SPLIT:
                o->split = 1;
                return arg && *arg ? ls_options_one_of("--split", arg, sides, &o->callees) : 0;
        case VAL_ANNOTATE:
                o->annotate = 1;
                o->annotate_what = arg && *arg ? arg : NULL;
                return 0;
        }
        return ls_options_filter_value(&o->want, val, arg);
}

static enum ls_sort usual_sort(const struct ls_report_options *o)
{
        int one_frame = o->by[0]->is_frame && !o->by[1] && !o->split && o->depth == 1;

        return one_frame && ls_events_wait(&o->want.events) ? LS_SORT_TOTAL : LS_SORT_SELF;
}

static int read_values(struct ls_report_options *o, int is_export)
{
        static const char *const sorts[] = { "self", "total", "name", NULL };
        int sort = LS_SORT_SELF;

        o->by_text = raw.by;
        o->by[0] = &ls_keys[0];
        o->depth = 1;
        o->min = -1;
        o->gc = raw.by && !strcmp(raw.by, "gc");
        if ((raw.by && !o->gc && ls_options_by(raw.by, o)) ||
            (raw.min && ls_options_percent("--min", raw.min, &o->min)) ||
            (raw.depth && read_depth(raw.depth, &o->depth)) || ls_options_filters(&o->want) ||
            (raw.format && read_format(raw.format, o, is_export)) ||
            (raw.sort && ls_options_one_of("--sort", raw.sort, sorts, &sort)))
                return -EINVAL;
        if (raw.color && ls_parse_color(raw.color, &o->color))
                return ls_options_bad("--color", raw.color, "give auto, always or never");
        o->sort = raw.sort ? (enum ls_sort)sort : usual_sort(o);
        o->input = raw.input ? raw.input : "luasample.data";
        o->output = raw.output;
        return 0;
}

/* What an exporter cannot show is not left out in silence. */
static int settle_exporter(struct ls_report_options *o)
{
        const struct ls_exporter *e = o->exporter;

        if ((e->flags & LS_EXPORT_EXPERIMENTAL) && !o->experimental) {
                ls_error("%s: the format %s is not settled yet: luasample export --experimental "
                         "writes it",
                         command, e->name);
                return -EINVAL;
        }
        if (o->by_text && !(e->flags & (LS_EXPORT_BY | LS_EXPORT_TABLE))) {
                ls_error("%s: --by is not for the format %s, which has everything; it is for csv "
                         "and collapsed",
                         command, e->name);
                return -EINVAL;
        }
        if (o->per_thread && !(e->flags & LS_EXPORT_PARTS)) {
                ls_error("%s: --per-thread is not for the format %s; --thread TID picks one thread",
                         command, e->name);
                return -EINVAL;
        }
        if (o->per_thread && (!o->output || !strcmp(o->output, "-"))) {
                ls_error("%s: --per-thread writes several files: give -o FILE", command);
                return -EINVAL;
        }
        if ((o->depth > 1 || o->split) && !(e->flags & LS_EXPORT_TABLE)) {
                ls_error("%s: --depth and --split are not for the format %s; csv has them", command,
                         e->name);
                return -EINVAL;
        }
        return 0;
}

/* Options that contradict each other, and defaults that follow from others. */
static int settle(struct ls_report_options *o, int is_export)
{
        int table = o->exporter && (o->exporter->flags & LS_EXPORT_TABLE);
        int views = o->split + o->tree + o->stacks + o->annotate + o->html +
                    (o->exporter && !(o->split && table));
        int several = o->exporter && (o->exporter->flags & LS_EXPORT_EVENTS);
        int frames = o->by[0]->is_frame + (o->by[1] && o->by[1]->is_frame);

        if (o->exporter && settle_exporter(o))
                return -EINVAL;
        if (o->exporter && (o->exporter->flags & LS_EXPORT_TIMELINE) && o->want.events.n &&
            ls_event_overlaps(o->want.events.id[0])) {
                ls_error("%s: --event %s: coroutines wait beside each other, and %s has one line "
                         "of time for a thread; "
                         "see collapsed, pprof, callgrind",
                         command, ls_event_name(o->want.events.id[0]), o->exporter->name);
                return -EINVAL;
        }
        if (o->want.events.n > 1 &&
            (o->tui || !strcmp(command, "tui") || !strcmp(command, "top"))) {
                ls_error("%s: --event: one event at a time on the terminal", command);
                return -EINVAL;
        }
        if (o->gc && (is_export || views || o->tui || o->depth > 1 || o->want.events.n ||
                      strcmp(command, "report"))) {
                ls_error("%s: --by gc is a view of report, of CPU time: no other view, format or "
                         "event goes with it",
                         command);
                return -EINVAL;
        }
        if (views > 1) {
                ls_error("%s: one view at a time: --split, --tree, --stacks, --annotate, --html or "
                         "--format",
                         command);
                return -EINVAL;
        }
        if (o->want.events.n > 1 &&
            ((views && !o->annotate && !several) || o->by[1] || o->depth > 1)) {
                ls_error("%s: --event with several events goes with the flat view, of one level, "
                         "with --annotate, and with callgrind and pprof",
                         command);
                return -EINVAL;
        }
        if (o->exporter && o->json) {
                ls_error("%s: --json and --format %s exclude each other", command,
                         o->exporter->name);
                return -EINVAL;
        }
        if (o->html && (o->json || raw.format || o->by_text || o->depth > 1)) {
                ls_error("%s: --html excludes --%s: the page has all of it", command,
                         o->json ? "json" : raw.format ? "format" : o->by_text ? "by" : "depth");
                return -EINVAL;
        }
        if (o->html && (!o->output || !strcmp(o->output, "-")) && isatty(STDOUT_FILENO)) {
                ls_error("%s: --html writes a page, and stdout is a terminal: name a file, such as "
                         "-o profile.html",
                         command);
                return -EINVAL;
        }
        if ((o->split || o->tree) && (o->by[1] || !frames)) {
                ls_error("%s: --%s follows calls: give --by one of function, module-function, line "
                         "or module",
                         command, o->split ? "split" : "tree");
                return -EINVAL;
        }
        if (o->depth > 1 && !frames) {
                ls_error("%s: --depth counts frames: give --by one of function, module-function, "
                         "line or module",
                         command);
                return -EINVAL;
        }
        if (o->tui && (o->json || o->exporter || o->output)) {
                ls_error("%s: --tui shows on the terminal: give neither --json, --format nor -o",
                         command);
                return -EINVAL;
        }
        if (o->no_mouse && !o->tui && !strcmp(command, "report")) {
                ls_error("%s: --no-mouse goes with --tui", command);
                return -EINVAL;
        }
        if (o->whole_file && !o->annotate) {
                ls_error("%s: --whole-file goes with --annotate", command);
                return -EINVAL;
        }
        if (o->inverse && !o->tree && !o->split &&
            (o->depth < 2 || o->annotate || (o->exporter && !table))) {
                ls_error("%s: --inverse goes with --depth, --split or --tree", command);
                return -EINVAL;
        }
        if (o->split && o->depth < 2)
                o->depth = 2;
        if (o->split && o->inverse)     /* as -jp=-s */
                o->callees = 1;
        o->min_default = o->min < 0;
        if (o->min_default)
                o->min = o->json || o->exporter ? 0 : 3;
        return 0;
}

void ls_options_of(const char *name)
{
        command = name;
}

/* The format of luasample export: as said, else by the name of the file. */
static int find_exporter(struct ls_report_options *o)
{
        if (o->list || o->exporter)
                return 0;
        if (o->output && strcmp(o->output, "-"))
                o->exporter = ls_exporter_of_path(o->output);
        if (o->exporter)
                return 0;
        if (o->output && strcmp(o->output, "-"))
                ls_error("%s: '%s' does not tell the format: give --format NAME or a known suffix "
                         "(luasample export --list)",
                         command, o->output);
        else
                ls_error("%s: which format? Give --format NAME, or -o FILE with a known suffix "
                         "(luasample export --list)",
                         command);
        return -EINVAL;
}

/* The number of words left over; they are the last of the line when ret_rest is set. */
static int count_rest(poptContext ctx)
{
        int n = 0;

        while (poptGetArg(ctx))
                n++;
        return n;
}

/* ret_rest: NULL = no word may be left over; else options end at the first word that is none. */
static int read_line(const struct ls_command *cmd, int argc, const char **argv,
                     struct ls_report_options *ret, const char ***ret_rest)
{
        poptContext ctx = ls_options_begin(cmd, argc, argv, ret_rest != NULL);
        struct ls_report_options *o = &given;
        const char *extra;
        int val, r = 0, status, is_export = cmd->options == ls_export_option_table;

        memset(o, 0, sizeof(*o));
        o->command = command = cmd->name;
        while (!r && (val = ls_options_next(cmd, ctx)) > 0)
                r = ls_options_value(o, val, poptGetOptArg(ctx));
        status = r ? LS_EXIT_USAGE : ls_options_status(val);
        if (status != LS_GO_ON)
                ;
        else if (!ret_rest && (extra = poptGetArg(ctx)) != NULL) {
                ls_error("%s: unexpected argument '%s'%s", command, extra,
                         access(extra, R_OK) == 0 ? "; a trace is named with -i FILE" : "");
                status = LS_EXIT_USAGE;
        } else if (read_values(o, is_export) || (is_export && find_exporter(o)) ||
                   settle(o, is_export)) {
                status = LS_EXIT_USAGE;
        } else if (ls_range_wanted() && !ret_rest) {
                r = ls_range_use(o, raw.input);
                status = r ? r : LS_GO_ON;
        }
        if (ret_rest)
                *ret_rest = argv + argc - (status == LS_GO_ON ? count_rest(ctx) : 0);
        poptFreeContext(ctx);
        *ret = given;
        return status;
}

int ls_report_options_read(const struct ls_command *cmd, int argc, const char **argv,
                           struct ls_report_options *ret)
{
        return read_line(cmd, argc, argv, ret, NULL);
}

int ls_report_options_read_rest(const struct ls_command *cmd, int argc, const char **argv,
                                struct ls_report_options *ret, const char ***ret_rest)
{
        return read_line(cmd, argc, argv, ret, ret_rest);
}
