/* The filters on a command line, and on the line that is typed in the terminal browser. Called by
 * report/options/options.c, by the commands whose tables include ls_filter_option_table, and by
 * report/tui*.c. */
#include "report/options/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* popt stores here. */
static struct raw {
        char *event;
#define LS_FILTER(field, name, argument, help) char *field;
#include "report/model/filters.def"
#undef LS_FILTER
        int no_regions;
} raw;

const struct poptOption ls_filter_option_table[] = {
        { "event", 'e', POPT_ARG_STRING, &raw.event, 0,
          "cpu, wall, suspended, ready, lines, calls, instructions, branches or coverage (default: "
          "cpu if it was recorded); several side by side",
          "EVENT,..." },
#define LS_FILTER(field, name, argument, help)                                                     \
        { name, 0, POPT_ARG_STRING, &raw.field, 0, help, argument },
#include "report/model/filters.def"
#undef LS_FILTER
        { "no-regions", 0, POPT_ARG_NONE, &raw.no_regions, 0,
          "all samples, though the program marked regions", NULL },
        { "function", 0, POPT_ARG_STRING, NULL, LS_VAL_FUNCTION,
          "only stacks with a matching function (several: any)", "PATTERN" },
        { "exclude", 0, POPT_ARG_STRING, NULL, LS_VAL_EXCLUDE,
          "no stacks with a matching function (several: any)", "PATTERN" },
        POPT_TABLEEND
};

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

static int read_time(const char *text, struct ls_filter_options *want)
{
        char *copy = strdup(text), *comma = copy ? strchr(copy, ',') : NULL;
        int r = -EINVAL;

        if (comma && !strchr(comma + 1, ',')) {
                *comma = '\0';
                r = read_bound(copy, &want->from) || read_bound(comma + 1, &want->to) ? -EINVAL : 0;
        }
        if (!r && want->from.kind == LS_BOUND_NS && want->to.kind == LS_BOUND_NS &&
            want->from.ns > want->to.ns)
                r = -EINVAL;
        free(copy);
        return r ? ls_options_bad("--time", text,
                                  "give FROM,TO, such as 1.5,3 or 200ms, or 10%,50%")
                 : 0;
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
                            (strlen(states[i].name) == len &&
                             !strncasecmp(states[i].name, p, len)) ||
                            (strlen(states[i].label) == len &&
                             !strncasecmp(states[i].label, p, len)) ||
                            (i == LS_VMSTATE_NATIVE && len == 8 &&
                             !strncasecmp("compiled", p, len)))
                                break;
                }
                if (i == LS_NVMSTATES)
                        return ls_options_bad("--vmstate", text,
                                              "the states are native, interpreted, c, gc and jit");
                *ret |= 1u << i;
                if (!p[len])
                        return 0;
                p += len + 1;
        }
}

static int read_vm(const char *text)
{
        size_t n = strlen(text);

        if (n && n < 10 && strspn(text, "0123456789") == n)
                return 0;
        return ls_options_bad("--vm", text, "give the number of a VM, such as 1");
}

int ls_options_filter_value(struct ls_filter_options *want, int val, char *arg)
{
        switch (val) {
        case LS_VAL_FUNCTION:
                return ls_options_add(want->functions, &want->n_functions, 16, "--function", arg);
        case LS_VAL_EXCLUDE:
                return ls_options_add(want->excludes, &want->n_excludes, 16, "--exclude", arg);
        }
        return 0;
}

int ls_options_filters(struct ls_filter_options *want)
{
        const char *wrong = raw.event ? ls_events_parse(raw.event, &want->events) : NULL;

        if (wrong)
                return ls_options_bad("--event", raw.event, wrong);
        if ((raw.time && read_time(raw.time, want)) ||
            (raw.vmstate && read_vmstates(raw.vmstate, &want->vmstates)) ||
            (raw.vm && read_vm(raw.vm)))
                return -EINVAL;
#define LS_FILTER(field, name, argument, help) want->field = raw.field;
#include "report/model/filters.def"
#undef LS_FILTER
        want->no_regions = raw.no_regions;
        return 0;
}

void ls_filter_options_forget(struct ls_filter_options *want)
{
        struct ls_event_choice events = want->events;

#define LS_FILTER(field, name, argument, help) free((char *)(uintptr_t)want->field);
#include "report/model/filters.def"
#undef LS_FILTER
        while (want->n_functions)
                free((char *)(uintptr_t)want->functions[--want->n_functions]);
        while (want->n_excludes)
                free((char *)(uintptr_t)want->excludes[--want->n_excludes]);
        *want = (struct ls_filter_options){ .events = events };
}

/* The words of a line, as of a command that has filters only. Those that are several are in want,
 * the others in raw. */
static int read_words(const char *name, int argc, const char **argv, struct ls_filter_options *want)
{
        const struct ls_command typed = { .name = name, .options = ls_filter_option_table };
        poptContext ctx = ls_options_begin(&typed, argc, argv, 0);
        const char *extra;
        int val, r = 0;

        while (!r && (val = ls_options_next(&typed, ctx)) > 0) {
                char *arg = poptGetOptArg(ctx);

                r = ls_options_filter_value(want, val, arg);
                if (r)
                        free(arg);
        }
        if (!r && val != -1)
                r = -EINVAL;
        if (!r && (extra = poptGetArg(ctx)) != NULL) {
                ls_error("%s: unexpected argument '%s'", name, extra);
                r = -EINVAL;
        }
        poptFreeContext(ctx);
        return r ? r : ls_options_filters(want);
}

int ls_filter_options_read(const char *name, const char *line, struct ls_filter_options *want)
{
        struct ls_filter_options read = { .n_functions = 0 };
        char *words = NULL;
        const char **argv = NULL;
        int argc = 0, r;

        if (asprintf(&words, "%s %s", name, line) < 0)
                return -ENOMEM;
        r = poptParseArgvString(words, &argc, &argv);
        free(words);
        if (r) {
                ls_error("%s: '%s': %s", name, line, poptStrerror(r));
                return -EINVAL;
        }
        memset(&raw, 0, sizeof(raw));   /* what a line before left here is others' now */
        ls_options_of(name);
        r = read_words(name, argc, argv, &read);
        if (!r && read.events.n > 1) {
                ls_error("%s: --event '%s': one event at a time here", name, raw.event);
                r = -EINVAL;
        }
        if (r) {
#define LS_FILTER(field, name, argument, help) read.field = raw.field;
#include "report/model/filters.def"
#undef LS_FILTER
                ls_filter_options_forget(&read);
        } else {
                if (!read.events.n)
                        read.events = want->events;
                *want = read;
        }
        free(raw.event);                /* its value was read */
        memset(&raw, 0, sizeof(raw));
        free(argv);
        return r;
}
