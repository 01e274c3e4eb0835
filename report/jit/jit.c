/* Command line of luasample jit. See jit.h; called by luasample.c. */
#include "report/jit/jit.h"
#include "cli/suggest.h"
#include "formats/trace/reader.h"
#include "report/options/options.h"
#include "report/options/trace.h"
#include "report/view/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct {
        char *input, *output, *trace, *line, *min, *color, *by, *fail_on;
        int tree, graph, aborts, json, raw, full_path, no_pager;
} opt;

#define FLAG(name, help) POPT_ARG_NONE, &opt.name, 0, help, NULL
#define TEXT(name, arg, help) POPT_ARG_STRING, &opt.name, 0, help, arg

static const struct poptOption options[] = {
        { "input", 'i', TEXT(input, "FILE", "trace to read, - for stdin (luasample.data)") },
        { "output", 'o', TEXT(output, "FILE", "write to FILE, which appears when it is whole") },
        { "trace", 0,
          TEXT(trace, "N", "the JIT trace of this number: lines, exits, machine code") },
        { "line", 0, TEXT(line, "FILE:N", "only the time of this line, and of C that it called") },
        { "tree", 0, FLAG(tree, "which trace leaves which, by what exit") },
        { "graph", 0, FLAG(graph, "the same as a drawing, for dot of graphviz") },
        { "aborts", 0, FLAG(aborts, "what LuaJIT tried to compile and gave up") },
        { "by", 0,
          TEXT(by, "reason|line|function", "with --aborts: a row for each (where it stopped)") },
        { "json", 0, FLAG(json, "states, reasons, attempts and traces as JSON") },
        { "min", 0, TEXT(min, "PERCENT", "hide what has less (1%)") },
        { "fail-on", 0, TEXT(fail_on, "REASON,...", "exit 1 when one has --min of the time") },
        { "raw", 0, FLAG(raw, "ticks in place of shares") },
        { "full-path", 0, FLAG(full_path, "paths of sources, not just file names") },
        { NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)ls_filter_option_table, 0, NULL,
          NULL },
        { "color", 0,
          TEXT(color, "auto|always|never",
               "colour (auto: on a terminal, unless NO_COLOR is set)") },
        { "no-pager", 0, FLAG(no_pager, "no pager") },
        POPT_TABLEEND
};

static int read_trace_number(uint32_t *ret)
{
        char *end = NULL;
        unsigned long n;

        if (!opt.trace)
                return 0;
        errno = 0;
        n = strtoul(opt.trace, &end, 10);
        if (errno || *end || *opt.trace < '0' || *opt.trace > '9' || n == 0 || n > UINT32_MAX)
                return ls_options_bad("--trace", opt.trace,
                                      "the number of a JIT trace, as luasample jit shows it");
        *ret = (uint32_t)n;
        return 0;
}

static enum ls_jit_by by;

static int read_by(void)
{
        static const char *const names[] = { "reason", "line", "function" };

        by = LS_JIT_BY_ALL;
        if (!opt.by)
                return 0;
        for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (!strcmp(opt.by, names[i]))
                        by = (enum ls_jit_by)(LS_JIT_BY_REASON + i);
        if (by == LS_JIT_BY_ALL || !opt.aborts)
                return ls_options_bad("--by", opt.by,
                                      "it is reason, line or function, with --aborts");
        return 0;
}

static const char *const reason_keys[] = {
#define LS_REASON(NAME, key, title, meaning) key,
#include "report/jit/reasons.def"
#undef LS_REASON
        NULL
};

/* Bits of the reasons that are named. */
static int read_fail_on(uint32_t *ret)
{
        char *names = opt.fail_on ? strdup(opt.fail_on) : NULL, *rest = names, *name;
        int at, err = opt.fail_on && !names ? -ENOMEM : 0;

        while (!err && (name = strsep(&rest, ","))) {
                err = ls_one_of("jit", "--fail-on", name, reason_keys, &at);
                *ret |= err ? 0 : 1u << at;
        }
        free(names);
        return err;
}

/* The exit status that --fail-on asks for. */
static int judge(const struct ls_jit *j, uint32_t fail_on)
{
        uint64_t all = j->r.aggregate->ticks;
        int status = 0;

        for (unsigned i = 0; i < LS_REASONS; i++) {
                uint64_t ticks = j->blame.by_reason[i];

                if (!(fail_on >> i & 1) || !ticks || ls_below_min(&j->r, ticks, all))
                        continue;
                ls_error("jit: %.2f%% of the time is not compiled for the reason '%s': "
                         "--fail-on %s allows less than %g%%", 100 * ls_share(ticks, all),
                         reason_keys[i], reason_keys[i], j->r.o->min);
                status = LS_EXIT_FAIL;
        }
        return status;
}

static uint32_t fail_on;

static int read_options(int argc, const char **argv, struct ls_report_options *o,
                        uint32_t *ret_trace)
{
        poptContext ctx;
        const char *extra;
        int val, r = 0;

        *o = (struct ls_report_options){ .command = "jit", .depth = 1, .min = 1 };
        ls_options_of("jit");
        ctx = ls_options_begin(&ls_cmd_jit, argc, argv, 0);
        while (!r && (val = ls_options_next(&ls_cmd_jit, ctx)) > 0)
                r = ls_options_value(o, val, poptGetOptArg(ctx));
        r = r ? LS_EXIT_USAGE : ls_options_status(val);
        extra = r == LS_GO_ON ? poptGetArg(ctx) : NULL;
        if (extra) {
                ls_error("jit: unexpected argument '%s'; a trace file is named with -i FILE",
                         extra);
                r = LS_EXIT_USAGE;
        } else if (r == LS_GO_ON &&
                   (ls_options_filters(&o->want) || read_trace_number(ret_trace) ||
                    (opt.min && ls_options_percent("--min", opt.min, &o->min)))) {
                r = LS_EXIT_USAGE;
        } else if (r == LS_GO_ON && opt.line && !ls_jit_is_line(opt.line)) {
                ls_options_bad("--line", opt.line, "a file and a line, such as app.lua:39");
                r = LS_EXIT_USAGE;
        } else if (r == LS_GO_ON && opt.color && ls_parse_color(opt.color, &o->color)) {
                ls_options_bad("--color", opt.color, "it is auto, always or never");
                r = LS_EXIT_USAGE;
        } else if (r == LS_GO_ON &&
                   opt.tree + opt.graph + opt.aborts + opt.json + (opt.trace != NULL) > 1) {
                ls_error("jit: --trace, --tree, --graph, --aborts and --json are views: give one");
                r = LS_EXIT_USAGE;
        } else if (r == LS_GO_ON && (read_by() || read_fail_on(&fail_on))) {
                r = LS_EXIT_USAGE;
        }
        poptFreeContext(ctx);
        o->input = opt.input ? opt.input : LS_DEFAULT_TRACE;
        o->output = opt.output;
        o->raw = opt.raw;
        o->full_path = opt.full_path;
        o->no_pager = opt.no_pager || opt.json || opt.graph;
        return r;
}

/* Whose time shares are of, where that is not all of it. */
static void put_narrowed(const struct ls_jit *j)
{
        if (!opt.line)
                return;
        fprintf(j->r.out, "%s# Only:     line ", ls_dim(&j->r));
        ls_put_visible(j->r.out, opt.line);
        fprintf(j->r.out, ", %.2f%% of the time; shares are of it%s\n",
                100 * ls_share(j->r.aggregate->ticks, j->ticks_before), ls_plain(&j->r));
}

static int show(const struct ls_jit *j, uint32_t trace)
{
        if (opt.json)
                return ls_jit_json(j);
        if (opt.graph)
                return ls_jit_graph(j);
        ls_header_text(&j->r);
        put_narrowed(j);
        if (!j->r.aggregate->ticks) {
                ls_say_no_samples(&j->r);
                return 0;
        }
        return trace        ? ls_jit_trace(j, trace)
               : opt.tree   ? ls_jit_tree(j)
               : opt.aborts ? ls_jit_aborts(j, by)
                            : ls_jit_summary(j);
}

static int show_in(struct ls_jit *j, uint32_t trace)
{
        const struct ls_report_options *o = j->r.o;
        struct ls_output out;
        int error = ls_output_open(&out, o->output, o->color, !o->no_pager), end;

        if (error) {
                ls_error("jit: cannot write %s: %s", o->output ? o->output : "stdout",
                         strerror(-error));
                return LS_EXIT_FAIL;
        }
        j->r.out = out.file;
        j->r.color = out.color;
        j->r.width = out.width;
        error = show(j, trace);
        if (error == -ENOENT)
                ls_error("jit: %s has no JIT trace %u with samples (luasample jit lists them)",
                         o->input, trace);
        else if (error)
                ls_error("jit: %s: %s", o->input, strerror(-error));
        end = ls_output_close(&out, error != 0);
        if (end)
                ls_error("jit: cannot write %s: %s", o->output, strerror(-end));
        if (error || end || (!j->r.aggregate->ticks && j->r.filter->active))
                return LS_EXIT_FAIL;
        return judge(j, fail_on);
}

static int add_up(struct ls_jit *j)
{
        int error = ls_jit_init(j, opt.line);

        if (error != -ENOENT)
                return error;
        ls_error("jit: %s has no time at %s", j->r.o->input, opt.line);
        return -EINVAL;
}

static int run_jit(const struct ls_report_options *o, struct ls_profile *p, uint32_t trace)
{
        struct ls_labels *labels = NULL;
        struct ls_filter filter = { .stacks = NULL };
        struct ls_jit j = { .r = { .o = o, .profile = p } };
        int error = ls_labels_new(p, o->full_path, &labels), status = LS_EXIT_FAIL;

        if (!error)
                error = ls_filter_init(&filter, p, labels, &o->want);
        if (!error && !ls_events_time(&filter.choice)) {
                ls_error("jit: %s is shown by what was counted or allocated, which has no time: "
                         "record with -e cpu, and give --event cpu",
                         o->input);
                error = -EINVAL;
        }
        j.r.labels = labels;
        j.r.filter = &filter;
        if (!error)
                error = add_up(&j);
        if (!error)
                status = show_in(&j, trace);
        else if (error != -EINVAL)      /* else it was said */
                ls_error("jit: %s: %s", o->input, strerror(-error));
        ls_jit_done(&j);
        ls_filter_done(&filter);
        ls_labels_free(labels);
        return status;
}

static int jit_run(int argc, const char **argv)
{
        struct ls_report_options o;
        struct ls_profile *p;
        uint32_t trace = 0;
        int status = read_options(argc, argv, &o, &trace);

        if (status != LS_GO_ON)
                return status;
        status = ls_open_trace("jit", o.input, &p);
        if (status)
                return status;
        status = run_jit(&o, p, trace);
        ls_profile_close(p);
        return status;
}

const struct ls_command ls_cmd_jit = {
        .name = "jit",
        .summary = "show what LuaJIT compiled, and the time in it",
        .usage = "[-i FILE] [OPTION...]",
        .options = options,
        .run = jit_run,
        .shows = 1,
};
