/* The option table of luasample report, and what its values mean. Called by report/report.c. */
#include "report/options.h"
#include "cli/suggest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {                                  /* options that may come several times, or that need more than a store */
        VAL_SOURCE_DIR = 1, VAL_FUNCTION, VAL_EXCLUDE, VAL_SPLIT, VAL_ANNOTATE,
};

/* popt stores here; one command line is read in a process. */
static struct {
        char *input, *output, *by, *depth, *format, *min, *sort, *color;
        char *zone, *vmstate, *process, *thread, *vm, *time, *region;
        char *words[64];                /* arguments of the VAL_ options: they live as long as the process */
        unsigned n_words;
        int tree, inverse, whole_file, raw, full_path, json, no_pager, no_regions;
} raw;

#define FLAG(name, help) POPT_ARG_NONE, &raw.name, 0, help, NULL
#define TEXT(name, arg, help) POPT_ARG_STRING, &raw.name, 0, help, arg

const struct poptOption ls_filter_option_table[] = {
        { "zone", 0, TEXT(zone, "PATTERN", "only samples in zones that match, with the zones inside them") },
        { "vmstate", 0, TEXT(vmstate, "STATE,...",
                             "only these: native, interpreted, c, gc, jit, or the letters N I C G J") },
        { "process", 0, TEXT(process, "PID|PATTERN", "only processes of this number or with a matching name") },
        { "thread", 0, TEXT(thread, "TID|PATTERN", "only threads of this number or with a matching name") },
        { "vm", 0, TEXT(vm, "N", "only the Lua VM of this number") },
        { "time", 0, TEXT(time, "FROM,TO", "only this part: seconds, durations (1.5s,200ms) or 10%,50% from the start") },
        { "function", 0, POPT_ARG_STRING, NULL, VAL_FUNCTION, "only stacks with a matching function (several: any)",
          "PATTERN" },
        { "exclude", 0, POPT_ARG_STRING, NULL, VAL_EXCLUDE, "no stacks with a matching function (several: any)",
          "PATTERN" },
        { "region", 0, TEXT(region, "PATTERN", "only regions that the program marked with a matching name") },
        { "no-regions", 0, FLAG(no_regions, "all samples, though the program marked regions") },
        POPT_TABLEEND
};

const struct poptOption ls_report_option_table[] = {
        { "input", 'i', TEXT(input, "FILE", "trace to read, - for stdin (luasample.data)") },
        { "output", 'o', TEXT(output, "FILE", "write to FILE, which appears when it is whole") },
        { "by", 0, TEXT(by, "function|module-function|line|module|vmstate|zone|zone-path|process|thread|vm|coroutine|trace",
                        "group by this; two levels with a comma: --by vmstate,function") },
        { "depth", 0, TEXT(depth, "N", "group by N frames: callee < caller") },
        { "inverse", 0,
          FLAG(inverse, "with --depth: caller > callee; with --split: callees; with --tree: callees as roots") },
        { "split", 0, POPT_ARG_STRING | POPT_ARGFLAG_OPTIONAL, NULL, VAL_SPLIT,
          "second level: callers of each function, or its callees", "callers|callees" },
        { "tree", 0, FLAG(tree, "call tree") },
        { "annotate", 0, POPT_ARG_STRING | POPT_ARGFLAG_OPTIONAL, NULL, VAL_ANNOTATE,
          "source listing with shares, of all hot files or of one file or function", "FILE|FUNCTION" },
        { "whole-file", 0, FLAG(whole_file, "with --annotate: all lines, not just those around hot ones") },
        { "source-dir", 0, POPT_ARG_STRING, NULL, VAL_SOURCE_DIR, "look for sources in DIR first (several times)",
          "DIR" },
        { "format", 0, TEXT(format, "text|json|callgrind|collapsed", "write for another tool") },
        { "json", 0, FLAG(json, "the view as JSON") },
        { "min", 0, TEXT(min, "PERCENT", "hide what has less (3%; 0 with --json)") },
        { "sort", 0, TEXT(sort, "self|total|name", "order of rows (self)") },
        { "raw", 0, FLAG(raw, "ticks in place of shares") },
        { "full-path", 0, FLAG(full_path, "paths of sources, not just file names") },
        { NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)ls_filter_option_table, 0, NULL, NULL },
        { "color", 0, TEXT(color, "auto|always|never", "colour (auto: on a terminal, unless NO_COLOR is set)") },
        { "no-pager", 0, FLAG(no_pager, "no pager") },
        POPT_TABLEEND
};

static const char *command = "report";  /* whose line is read */

/* Says what is wrong with the value of an option. Always -EINVAL, so that callers can return it. */
static int bad(const char *option, const char *value, const char *what)
{
        ls_error("%s: %s '%s': %s", command, option, value, what);
        return -EINVAL;
}

/* The place of text in words, which ends with NULL; says the error. */
static int one_of(const char *option, const char *text, const char *const *words, int *ret)
{
        const char *near;

        for (int i = 0; words[i]; i++) {
                if (!strcmp(text, words[i])) {
                        *ret = i;
                        return 0;
                }
        }
        near = ls_suggest(text, words);
        if (near) {
                ls_error("%s: %s '%s' is not known; did you mean '%s'? (luasample %s --help lists all)", command, option,
                         text, near, command);
        } else {
                char all[256] = "";
                size_t n = 0;

                for (int i = 0; words[i] && n < sizeof(all); i++)
                        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", !i ? "" : words[i + 1] ? ", " : " or ",
                                              words[i]);
                ls_error("%s: %s '%s' is not known: give %s", command, option, text, all);
        }
        return -EINVAL;
}

static int read_by(const char *text, struct ls_report_options *o)
{
        const char *words[16];
        unsigned n = 0;

        for (const struct ls_key *k = ls_keys; k->name && n < 15; k++)
                words[n++] = k->name;
        words[n] = NULL;
        for (int level = 0;; level++) {
                size_t len = strcspn(text, ",");
                char word[64];
                int at;

                if (level == 2)
                        return bad("--by", text, "two levels at most");
                if (len >= sizeof(word))
                        return bad("--by", text, "not known (see --help)");
                memcpy(word, text, len);
                word[len] = '\0';
                if (one_of("--by", word, words, &at))
                        return -EINVAL;
                if (level && o->by[0] == &ls_keys[at])
                        return bad("--by", text, "named twice");
                o->by[level] = &ls_keys[at];
                if (!text[len])
                        return 0;
                text += len + 1;
        }
}

static int read_min(const char *text, double *ret)
{
        char *end;
        double v = strtod(text, &end);

        if (*end == '%')
                end++;
        if (end == text || *end || !(v >= 0 && v <= 100))
                return bad("--min", text, "give a share from 0 to 100, such as 3%");
        *ret = v;
        return 0;
}

static int read_depth(const char *text, int *ret)
{
        char *end;
        long v = strtol(text, &end, 10);

        if (end == text || *end || v < 1 || v > 100000)
                return bad("--depth", text, "give a number of frames from 1 to 100000");
        *ret = (int)v;
        return 0;
}

static int read_bound(const char *text, struct ls_time_bound *ret)
{
        size_t n = strlen(text);

        ret->kind = LS_BOUND_OPEN;
        if (n == 0)
                return 0;
        if (text[n - 1] == '%') {
                char *end;

                ret->percent = strtod(text, &end);
                if (end != text + n - 1 || !(ret->percent >= 0 && ret->percent <= 100))
                        return -EINVAL;
                ret->kind = LS_BOUND_PERCENT;
                return 0;
        }
        ret->kind = LS_BOUND_NS;
        return ls_parse_duration(text, "s", &ret->ns);
}

static int read_time(const char *text, struct ls_report_options *o)
{
        char *copy = strdup(text), *comma = copy ? strchr(copy, ',') : NULL;
        int r = -EINVAL;

        if (comma && !strchr(comma + 1, ',')) {
                *comma = '\0';
                r = read_bound(copy, &o->from) || read_bound(comma + 1, &o->to) ? -EINVAL : 0;
        }
        if (!r && o->from.kind == LS_BOUND_NS && o->to.kind == LS_BOUND_NS && o->from.ns > o->to.ns)
                r = -EINVAL;
        free(copy);
        return r ? bad("--time", text, "give FROM,TO, such as 1.5,3 or 200ms, or 10%,50%") : 0;
}

static int read_vmstates(const char *text, unsigned *ret)
{
        static const struct { char letter; const char *name, *label; } states[] = {
#define LS_VMSTATE(letter, NAME, name, label) { letter, name, label },
#include "formats/wire/vmstates.def"
#undef LS_VMSTATE
        };

        for (const char *p = text;;) {
                size_t len = strcspn(p, ","), i;

                for (i = 0; i < LS_NVMSTATES; i++) {
                        if ((len == 1 && *p == states[i].letter) ||
                            (strlen(states[i].name) == len && !strncasecmp(states[i].name, p, len)) ||
                            (strlen(states[i].label) == len && !strncasecmp(states[i].label, p, len)) ||
                            (i == LS_VMSTATE_NATIVE && len == 8 && !strncasecmp("compiled", p, len)))
                                break;
                }
                if (i == LS_NVMSTATES)
                        return bad("--vmstate", text, "the states are native, interpreted, c, gc and jit");
                *ret |= 1u << i;
                if (!p[len])
                        return 0;
                p += len + 1;
        }
}

static int read_vm(const char *text)
{
        size_t n = strlen(text);

        return n && n < 10 && strspn(text, "0123456789") == n ? 0 : bad("--vm", text, "give the number of a VM, such as 1");
}

static int read_format(const char *text, struct ls_report_options *o)
{
        const char *words[18] = { "text", "json" };
        unsigned n = 2;
        int at;

        for (const struct ls_exporter *const *e = ls_exporters; *e && n < 17; e++)
                words[n++] = (*e)->name;
        words[n] = NULL;
        if (one_of("--format", text, words, &at))
                return -EINVAL;
        if (at >= 2)
                o->exporter = ls_exporters[at - 2];
        o->json |= at == 1;
        return 0;
}

static int add(const char **list, unsigned *n, unsigned max, const char *option, char *value)
{
        if (*n == max)
                return bad(option, value, "given too often");
        list[(*n)++] = value;
        return 0;
}

/* Options with a val: popt hands them over one by one. */
static int read_one(struct ls_report_options *o, int val, char *arg)
{
        static const char *const sides[] = { "callers", "callees", NULL };

        if (raw.n_words == sizeof(raw.words) / sizeof(raw.words[0])) {
                ls_error("%s: too many options", command);
                return -EINVAL;
        }
        raw.words[raw.n_words++] = arg;
        switch (val) {
        case VAL_SOURCE_DIR:
                return add(o->source_dir, &o->n_source_dirs, 16, "--source-dir", arg);
        case VAL_FUNCTION:
                return add(o->functions, &o->n_functions, 16, "--function", arg);
        case VAL_EXCLUDE:
                return add(o->excludes, &o->n_excludes, 16, "--exclude", arg);
        case VAL_SPLIT:
                o->split = 1;
                return arg && *arg ? one_of("--split", arg, sides, &o->callees) : 0;
        case VAL_ANNOTATE:
                o->annotate = 1;
                o->annotate_what = arg && *arg ? arg : NULL;
                return 0;
        }
        return 0;
}

static int read_values(struct ls_report_options *o)
{
        static const char *const sorts[] = { "self", "total", "name", NULL };
        int sort = LS_SORT_SELF;

        o->by_text = raw.by;
        o->by[0] = &ls_keys[0];
        o->depth = 1;
        o->min = -1;
        if ((raw.by && read_by(raw.by, o)) || (raw.min && read_min(raw.min, &o->min)) ||
            (raw.depth && read_depth(raw.depth, &o->depth)) || (raw.time && read_time(raw.time, o)) ||
            (raw.vmstate && read_vmstates(raw.vmstate, &o->vmstates)) || (raw.vm && read_vm(raw.vm)) ||
            (raw.format && read_format(raw.format, o)) ||
            (raw.sort && one_of("--sort", raw.sort, sorts, &sort)))
                return -EINVAL;
        if (raw.color && ls_parse_color(raw.color, &o->color))
                return bad("--color", raw.color, "give auto, always or never");
        o->sort = (enum ls_sort)sort;
        o->sort_given = raw.sort != NULL;
        o->input = raw.input ? raw.input : "luasample.data";
        o->output = raw.output;
        o->zone = raw.zone;
        o->vmstate = raw.vmstate;
        o->process = raw.process;
        o->thread = raw.thread;
        o->vm = raw.vm;
        o->time_text = raw.time;
        o->region = raw.region;
        o->tree = raw.tree;
        o->inverse = raw.inverse;
        o->whole_file = raw.whole_file;
        o->raw = raw.raw;
        o->full_path = raw.full_path;
        o->json |= raw.json;
        o->no_pager = raw.no_pager;
        o->no_regions = raw.no_regions;
        return 0;
}

/* Options that contradict each other, and defaults that follow from others. */
static int settle(struct ls_report_options *o)
{
        int views = o->split + o->tree + o->annotate + (o->exporter != NULL);
        int frames = o->by[0]->is_frame + (o->by[1] && o->by[1]->is_frame);

        if (views > 1) {
                ls_error("%s: one view at a time: --split, --tree, --annotate or --format", command);
                return -EINVAL;
        }
        if (o->exporter && o->json) {
                ls_error("%s: --json and --format %s exclude each other", command, o->exporter->name);
                return -EINVAL;
        }
        if ((o->split || o->tree) && (o->by[1] || !frames)) {
                ls_error("%s: --%s follows calls: give --by one of function, module-function, line or module",
                         command, o->split ? "split" : "tree");
                return -EINVAL;
        }
        if (o->depth > 1 && !frames) {
                ls_error("%s: --depth counts frames: give --by one of function, module-function, line or module", command);
                return -EINVAL;
        }
        if (o->whole_file && !o->annotate) {
                ls_error("%s: --whole-file goes with --annotate", command);
                return -EINVAL;
        }
        if (o->inverse && !o->tree && !o->split && (o->depth < 2 || o->annotate || o->exporter)) {
                ls_error("%s: --inverse goes with --depth, --split or --tree", command);
                return -EINVAL;
        }
        if (o->split && o->depth < 2)
                o->depth = 2;
        if (o->split && o->inverse)     /* as -jp=-s */
                o->callees = 1;
        if (o->min < 0)
                o->min = o->json || o->exporter ? 0 : 3;
        return 0;
}

int ls_report_options_read(const struct ls_command *cmd, int argc, const char **argv, struct ls_report_options *o)
{
        poptContext ctx = ls_options_begin(cmd, argc, argv, 0);
        const char *extra;
        int val, r = 0;

        memset(o, 0, sizeof(*o));
        command = cmd->name;
        while (!r && (val = ls_options_next(cmd, ctx)) > 0)
                r = read_one(o, val, poptGetOptArg(ctx));
        if (r || val == -2)
                r = LS_EXIT_USAGE + 1;
        else if (val == -3)
                r = 1;
        else if ((extra = poptGetArg(ctx)) != NULL) {
                ls_error("%s: unexpected argument '%s'%s", command, extra,
                         access(extra, R_OK) == 0 ? "; a trace is named with -i FILE" : "");
                r = LS_EXIT_USAGE + 1;
        } else if (read_values(o) || settle(o)) {
                r = LS_EXIT_USAGE + 1;
        }
        poptFreeContext(ctx);
        return r;
}
