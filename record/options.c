/* Options of `luasample record`: what options.def says, and one function for each value that can be
 * wrong. */
#include "record/options.h"
#include "record/control/open.h"
#include "record/process/parent.h"
#include "record/writer/tell.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const ls_timer_names[3] = { "perf", "helper", "cputime" };
const char *const ls_scope_names[3] = { "l", "f", "none" };
const char *const ls_engine_names[3] = { "auto", "walk", "hook" };
const char *const ls_jit_leaf_names[2] = { "map", "root" };

/* A number for each option, as popt hands them out. */
enum {
        OPT_FIRST = 999,
#define LS_VALUE(NAME, name, letter, how, set, help, arg) OPT_##NAME,
#define LS_TEXT(NAME, name, letter, field, help, arg) OPT_##NAME,
#define LS_FLAG(NAME, name, letter, how, field, value, help) OPT_##NAME,
#include "record/options.def"
#undef LS_VALUE
#undef LS_TEXT
#undef LS_FLAG
        OPT_END
};

#define SHOWN 0
#define HIDDEN POPT_ARGFLAG_DOC_HIDDEN
#define OPTIONAL POPT_ARGFLAG_OPTIONAL
const struct poptOption ls_record_option_table[] = {
#define LS_VALUE(NAME, name, letter, how, set, help, arg) \
        { name, letter, POPT_ARG_STRING | how, NULL, OPT_##NAME, help, arg },
#define LS_TEXT(NAME, name, letter, field, help, arg) \
        { name, letter, POPT_ARG_STRING, NULL, OPT_##NAME, help, arg },
#define LS_FLAG(NAME, name, letter, how, field, value, help) \
        { name, letter, POPT_ARG_NONE | how, NULL, OPT_##NAME, help, NULL },
#include "record/options.def"
#undef LS_VALUE
#undef LS_TEXT
#undef LS_FLAG
        POPT_TABLEEND
};

static int set_interval_ns(struct ls_record_options *o, const char *option, const char *text,
                           uint64_t ns)
{
        if (ns < LS_MIN_INTERVAL_NS || ns > LS_MAX_INTERVAL_NS) {
                ls_error("%s %s: the interval can be from 50us to 1h; each sample costs the "
                         "program some microseconds",
                         option, text);
                return -EINVAL;
        }
        o->interval_ns = ns;
        return 0;
}

static int set_interval(struct ls_record_options *o, const char *text)
{
        uint64_t ns;

        if (ls_parse_duration(text, "ms", &ns) < 0) {
                ls_error("-i %s: not a time; give one such as 1ms, 250us or 10ms", text);
                return -EINVAL;
        }
        return set_interval_ns(o, "-i", text, ns);
}

static int set_freq(struct ls_record_options *o, const char *text)
{
        char *end;
        double hz;

        errno = 0;
        hz = strtod(text, &end);
        if (end == text || *end || errno || !(hz > 0)) {
                ls_error("-F %s: not a rate; give samples per second, such as 1000", text);
                return -EINVAL;
        }
        if (hz > 1e9 / LS_MIN_INTERVAL_NS || hz < 1e9 / LS_MAX_INTERVAL_NS) {
                ls_error("-F %s: the rate can be up to 20000 a second, and not below one an hour",
                         text);
                return -EINVAL;
        }
        return set_interval_ns(o, "-F", text, (uint64_t)(1e9 / hz + 0.5));
}

static int set_output(struct ls_record_options *o, const char *text)
{
        if (!*text) {
                ls_error("-o: the name of the trace is empty; give a file name");
                return -EINVAL;
        }
        if (ls_check_output(text))
                return -EINVAL;
        if (!strcmp(text, "-") && isatty(STDOUT_FILENO)) {
                ls_error(
                        "-o -: a trace is not for a terminal; pipe it into: luasample report -i -");
                return -EINVAL;
        }
        o->output = text;
        return 0;
}

static int set_duration(struct ls_record_options *o, const char *text)
{
        if (ls_parse_duration(text, "s", &o->duration_ns) < 0 || !o->duration_ns) {
                ls_error("-d %s: not a time; give one such as 10s, 500ms or 2m", text);
                return -EINVAL;
        }
        return 0;
}

static int set_delay(struct ls_record_options *o, const char *text)
{
        if (!strcmp(text, "-1")) {
                o->delay_ns = LS_DELAY_FOREVER;
                return 0;
        }
        if (ls_parse_duration(text, "ms", &o->delay_ns) < 0 ||
            o->delay_ns >= LS_DELAY_FOREVER / 2) {
                ls_error("--delay %s: not a time; give one such as 500ms or 10s, or -1 with "
                         "--control",
                         text);
                return -EINVAL;
        }
        return 0;
}

static int set_control(struct ls_record_options *o, const char *text)
{
        o->control = text;
        return ls_control_check(text);
}

static int set_switch(struct ls_record_options *o, const char *text)
{
        o->switch_ns = o->switch_bytes = 0;
        if (ls_parse_duration(text, "", &o->switch_ns) == 0 && o->switch_ns >= LS_MIN_SWITCH_NS)
                return 0;
        o->switch_ns = 0;
        if (ls_parse_size(text, &o->switch_bytes) == 0 && o->switch_bytes >= LS_MIN_SWITCH_BYTES)
                return 0;
        ls_error("--switch-output %s: give a size from 64K, such as 100M, or a time from 1s, such "
                 "as 10m",
                 text);
        return -EINVAL;
}

static int set_keep(struct ls_record_options *o, const char *text)
{
        char *end;
        unsigned long n = strtoul(text, &end, 10);

        if (*text < '0' || *text > '9' || *end || n < 1 || n > LS_KEEP_MOST) {
                ls_error("--keep %s: give a number of files, from 1 to %u", text, LS_KEEP_MOST);
                return -EINVAL;
        }
        o->keep = (uint32_t)n;
        return 0;
}

static int set_last(struct ls_record_options *o, const char *text)
{
        if (ls_parse_duration(text, "s", &o->ring_ns) < 0 || o->ring_ns < LS_MIN_RING_NS ||
            o->ring_ns > LS_MAX_RING_NS) {
                ls_error("--last %s: give a time from 1s to 24h, such as 60s", text);
                return -EINVAL;
        }
        return 0;
}

static int set_last_cpu(struct ls_record_options *o, const char *text)
{
        char *end;
        unsigned long n = strtoul(text, &end, 10);

        if (*text < '0' || *text > '9' || (*end && strcmp(end, "%") != 0) || n < 1 || n > 1000000) {
                ls_error("--last-on-cpu %s: give percents of one CPU, such as 90%%, or 350%% of "
                         "four",
                         text);
                return -EINVAL;
        }
        o->ring_cpu = (uint32_t)n;
        return 0;
}

static int set_last_mark(struct ls_record_options *o, const char *text)
{
        o->ring_mark = text;
        return 0;
}

static int set_tell(struct ls_record_options *o, const char *text)
{
        struct ls_tell tell;

        if (ls_tell_read(text, &tell) < 0) {
                ls_error("--tell %s: give mark:PATTERN, counter:PATTERN>NUMBER or "
                         "counter:PATTERN<NUMBER",
                         text);
                return -EINVAL;
        }
        if (o->n_tells == LS_RECORD_TELLS) {
                ls_error("--tell %s: %u are asked for already", text, LS_RECORD_TELLS);
                return -EINVAL;
        }
        o->tells[o->n_tells++] = text;
        return 0;
}

static int set_depth(struct ls_record_options *o, const char *text)
{
        char *end;
        unsigned long n;

        errno = 0;
        n = strtoul(text, &end, 10);
        if (end == text || *end || errno || *text == '-' || n > LS_MAX_DEPTH) {
                ls_error("--depth %s: give a number of frames up to %u; 0 means all", text,
                         LS_MAX_DEPTH);
                return -EINVAL;
        }
        o->depth = (uint32_t)n;
        return 0;
}

static int find_name(const char *const *names, unsigned n, const char *text)
{
        for (unsigned i = 0; i < n; i++)
                if (!strcmp(names[i], text))
                        return (int)i;
        return -1;
}

static int set_scope(struct ls_record_options *o, const char *text)
{
        int i = find_name(ls_scope_names, 3, text);

        if (i < 0) {
                ls_error("--scope %s: give l, f or none", text);
                return -EINVAL;
        }
        o->scope = (uint8_t)i;
        return 0;
}

static int set_engine(struct ls_record_options *o, const char *text)
{
        int i = find_name(ls_engine_names, 3, text);

        if (i < 0) {
                ls_error("--engine %s: give auto, walk or hook", text);
                return -EINVAL;
        }
        o->engine = (uint8_t)i;
        return 0;
}

static int set_jit_leaf(struct ls_record_options *o, const char *text)
{
        int i = find_name(ls_jit_leaf_names, 2, text);

        if (i < 0) {
                ls_error("--jit-leaf %s: give map or root", text);
                return -EINVAL;
        }
        o->jit_leaf = (uint8_t)i;
        return 0;
}

/* text: NULL or empty when it has no value. */
static int set_native(struct ls_record_options *o, const char *text)
{
        uint64_t bytes = LS_DEFAULT_NATIVE;

        if (text && *text &&
            (ls_parse_size(text, &bytes) < 0 || bytes < LS_MIN_NATIVE || bytes > LS_MAX_NATIVE)) {
                ls_error("--native=%s: give a size from 1K to 256K", text);
                return -EINVAL;
        }
        o->native_bytes = (uint32_t)(bytes + 7) & ~7u;
        return 0;
}

static int set_timer(struct ls_record_options *o, const char *text)
{
        o->timer = find_name(ls_timer_names, 3, text);
        if (o->timer < 0) {
                ls_error("--timer %s: give perf, helper or cputime", text);
                return -EINVAL;
        }
        return 0;
}

static int set_ring(struct ls_record_options *o, const char *text)
{
        uint64_t bytes;

        if (ls_parse_size(text, &bytes) < 0 || bytes < LS_MIN_RING || bytes > LS_MAX_RING) {
                ls_error("--buffer-size %s: give a size from 64K to 8M", text);
                return -EINVAL;
        }
        for (o->ring_size = LS_MIN_RING; o->ring_size < bytes;)
                o->ring_size *= 2;
        return 0;
}

static int set_event(struct ls_record_options *o, const char *text)
{
        char names[LS_EVENT_NAMES];
        int alone = 1;

        o->events = 0;
        for (const char *p = text;; p++) {
                size_t n = strcspn(p, ",");
                unsigned event = ls_event_of_name(ls_event_is_asked, p, n);

                if (!event) {
                        ls_error("-e %s: give %s, or several with commas between", text,
                                 ls_event_names(ls_event_is_asked, names));
                        return -EINVAL;
                }
                o->events |= 1u << event;
                alone &= ls_event_kind(event)->overlaps || !ls_event_is_time(event);
                p += n;
                if (*p)
                        continue;
                if (o->events & 1u << LS_EVENT_BRANCHES)        /* lie in lines */
                        o->events |= LS_RECORD_COVERAGE;
                if (o->events & LS_RECORD_CALLTIME)             /* are those that were timed */
                        o->events |= 1u << LS_EVENT_CALLS;
                if (o->events & LS_RECORD_CALLTIME &&
                    o->events & LS_RECORD_EXACT & ~(LS_RECORD_CALLTIME | 1u << LS_EVENT_CALLS)) {
                        ls_error("-e %s: calltime is measured with the JIT compiler off, the "
                                 "others are counted with it on; "
                                 "record them one after the other",
                                 text);
                        return -EINVAL;
                }
                if (!(o->events & ~(LS_RECORD_EXACT | LS_RECORD_MEMORY)))
                        o->bare_tick = 2;
                else if (alone)         /* beside the time on a CPU, then */
                        o->events |= LS_RECORD_CPU;
                return 0;
        }
}

static int set_alloc_interval(struct ls_record_options *o, const char *text)
{
        if (ls_parse_size(text, &o->alloc_interval) < 0 || !o->alloc_interval ||
            o->alloc_interval > LS_MAX_ALLOC) {
                ls_error("--alloc-interval %s: give bytes up to 1G, such as 128K", text);
                return -EINVAL;
        }
        return 0;
}

static int set_parent(struct ls_record_options *o, const char *text)
{
        o->own = 1;
        return ls_parent_meet(text);
}

/* What texts and flags do with theirs. */
#define LS_VALUE(NAME, name, letter, how, set, help, arg)
#define LS_TEXT(NAME, name, letter, field, help, arg) \
        static int store_##NAME(struct ls_record_options *o, const char *text) \
        { \
                o->field = text; \
                return 0; \
        }
#define LS_FLAG(NAME, name, letter, how, field_, value, help) \
        static int store_##NAME(struct ls_record_options *o, const char *text) \
        { \
                (void)text; \
                o->field_ = value; \
                return 0; \
        }
#include "record/options.def"
#undef LS_VALUE
#undef LS_TEXT
#undef LS_FLAG

enum kind { TAKES_VALUE, MAY_TAKE_VALUE, TAKES_NONE };
#define KIND_OF(how) ((how) == OPTIONAL ? MAY_TAKE_VALUE : TAKES_VALUE)
static const struct {
        int (*set)(struct ls_record_options *o, const char *text);
        enum kind kind;
} setters[] = {
#define LS_VALUE(NAME, name, letter, how, set, help, arg)                                          \
        [OPT_##NAME - OPT_FIRST] = { set, KIND_OF(how) },
#define LS_TEXT(NAME, name, letter, field, help, arg)                                              \
        [OPT_##NAME - OPT_FIRST] = { store_##NAME, TAKES_VALUE },
#define LS_FLAG(NAME, name, letter, how, field, value, help)                                       \
        [OPT_##NAME - OPT_FIRST] = { store_##NAME, TAKES_NONE },
#include "record/options.def"
#undef LS_VALUE
#undef LS_TEXT
#undef LS_FLAG
};

/* A repeated option's old value stays in strings[] until the end, so the slots limit how often one
 * may repeat. */
static int set_option(struct ls_record_options *o, int opt)
{
        char *text = poptGetOptArg(o->popt);
        unsigned i = (unsigned)(opt - OPT_FIRST);

        if (setters[i].kind == TAKES_NONE || (!text && setters[i].kind == MAY_TAKE_VALUE)) {
                free(text);
                return setters[i].set(o, NULL);
        }
        if (!text || o->n_strings == sizeof(o->strings) / sizeof(*o->strings)) {
                free(text);
                ls_error("record: too many options");
                return -EINVAL;
        }
        o->strings[o->n_strings++] = text;
        return setters[i].set(o, text);
}

int ls_record_attaches(const struct ls_record_options *o)
{
        return o->attach_pids || o->attach_name || o->attach_cgroup;
}

static int check_attach(const struct ls_record_options *o)
{
        if (o->events & LS_RECORD_EXACT) {
                ls_error("record: coverage, lines, calls, calltime, branches and instructions are "
                         "counted from a program's start; give the program, as in: "
                         "luasample record -e lines -- luajit app.lua");
                return LS_EXIT_USAGE;
        }
        if (o->command && o->command[0]) {
                ls_error("record: -p, --name and --cgroup mean processes that run already; leave "
                         "out %s, or them",
                         o->command[0]);
                return LS_EXIT_USAGE;
        }
        if (o->engine == LS_ENGINE_HOOK) {
                ls_error("record: --engine hook changes the program's VMs; it is for programs that "
                         "luasample starts");
                return LS_EXIT_USAGE;
        }
        return LS_GO_ON;
}

int ls_record_options_parse(const struct ls_command *cmd, int argc, const char **argv,
                            struct ls_record_options *ret)
{
        int opt;

        memset(ret, 0, sizeof(*ret));
        ret->interval_ns = LS_DEFAULT_INTERVAL_NS;
        ret->output = "luasample.data";
        ret->events = LS_RECORD_CPU;
        ret->alloc_interval = LS_DEFAULT_ALLOC;
        ret->timer = -1;
        ret->popt = ls_options_begin(cmd, argc, argv, 1);
        if (!ret->popt)
                return LS_EXIT_FAIL;
        while ((opt = ls_options_next(cmd, ret->popt)) > 0)
                if (set_option(ret, opt) < 0)
                        return LS_EXIT_USAGE;
        if (ls_options_status(opt) != LS_GO_ON)
                return ls_options_status(opt);
        if (!ret->ring_size)
                ret->ring_size = ret->native_bytes && ret->interval_ns < LS_DEFAULT_INTERVAL_NS
                                         ? LS_NATIVE_RING
                                         : LS_DEFAULT_RING;
        if (ret->delay_ns == LS_DELAY_FOREVER && !ret->control) {
                ls_error("--delay -1: nothing would ever be recorded; give --control, so that "
                         "samples can be enabled");
                return LS_EXIT_USAGE;
        }
        if (ret->events & LS_RECORD_EXACT &&
            (ret->ring_ns || ret->switch_ns || ret->switch_bytes)) {
                ls_error("record: what is counted is of the whole recording; leave out %s, or "
                         "coverage, lines, calls, calltime, branches and instructions",
                         ret->ring_ns ? "--last" : "--switch-output");
                return LS_EXIT_USAGE;
        }
        if (ret->events & LS_RECORD_LIVE && (ret->ring_ns || ret->switch_ns || ret->switch_bytes)) {
                ls_error("record: what is live is that at the end of the whole recording; leave "
                         "out %s, or live",
                         ret->ring_ns ? "--last" : "--switch-output");
                return LS_EXIT_USAGE;
        }
        if (ret->ring_ns && (ret->switch_ns || ret->switch_bytes || !strcmp(ret->output, "-"))) {
                ls_error("--last: does not go with %s: one file has the last of the recording",
                         strcmp(ret->output, "-") ? "--switch-output" : "-o -");
                return LS_EXIT_USAGE;
        }
        if ((ret->ring_cpu || ret->ring_mark) && !ret->ring_ns) {
                ls_error("--last-on-%s: there is nothing to write; give --last with it",
                         ret->ring_cpu ? "cpu" : "mark");
                return LS_EXIT_USAGE;
        }
        if (ret->keep && !ret->switch_ns && !ret->switch_bytes) {
                ls_error("--keep: there is one file only; give --switch-output with it");
                return LS_EXIT_USAGE;
        }
        if (ret->force && !ls_record_attaches(ret)) {
                ls_error("--force: is for processes that run already; give -p, --name or --cgroup "
                         "with it");
                return LS_EXIT_USAGE;
        }
        ret->command = poptGetArgs(ret->popt);
        if (ls_record_attaches(ret)) {
                if (ret->bare_tick == 2 && ret->events & LS_RECORD_MEMORY)
                        ret->bare_tick = 3;
                return check_attach(ret);
        }
        if (!ret->command || !ret->command[0]) {
                ls_error("record: no program given; try: luasample record -- luajit app.lua");
                return LS_EXIT_USAGE;
        }
        return LS_GO_ON;
}

void ls_record_options_done(struct ls_record_options *o)
{
        for (unsigned i = 0; i < o->n_strings; i++)
                free(o->strings[i]);
        if (o->popt)
                poptFreeContext(o->popt);
}
