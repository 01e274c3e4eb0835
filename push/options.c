/* The command line of luasample push: see options.h. */
#include "push/options.h"

#include "push/commands.h"
#include "report/options/options.h"
#include "report/options/range.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEADERS_MOST 8192               /* bytes of --auth-file */

enum { VAL_SERIES = 1000 };

static struct {
        char *input, *to, *service, *labels, *tenant, *auth, *timeout, *table, *retries, *skip;
        int experimental, porcelain;
} raw;

#define FLAG(name, help) POPT_ARG_NONE, &raw.name, 0, help, NULL
#define TEXT(name, arg, help) POPT_ARG_STRING, &raw.name, 0, help, arg

const struct poptOption ls_push_option_table[] = {
        { "input", 'i', TEXT(input, "FILE", "trace to read (luasample.data)") },
        { NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)ls_range_option_table, 0, NULL,
          NULL },
        { "to", 0,
          TEXT(to, "TYPE:URL",
               "the store: pyroscope:http://HOST:4040, dir:/PATH and others (luasample-push(1))") },
        { "service-name", 0,
          TEXT(service, "NAME",
               "name of the service there (--service, else that of the program)") },
        { "labels", 0,
          TEXT(labels, "NAME,...",
               "labels of samples that are sent: vmstate, zone, thread, vm, coroutine, type, or "
               "the program's (vmstate,zone)") },
        { "series", 0, POPT_ARG_STRING, NULL, VAL_SERIES,
          "a label of all that is sent (several times)", "NAME=VALUE" },
        { "tenant", 0, TEXT(tenant, "NAME", "pyroscope: tenant (X-Scope-OrgID)") },
        { "auth-file", 0,
          TEXT(auth, "FILE", "lines 'Name: value' that are sent as headers of each request") },
        { "table", 0, TEXT(table, "NAME", "clickhouse: table (luasample)") },
        { "timeout", 0, TEXT(timeout, "TIME", "for one request (30s)") },
        { "retries", 0,
          TEXT(retries, "N", "how often a request that may succeed later is repeated (4)") },
        { "skip", 0, TEXT(skip, "N", "leave out so many profiles, which were taken before") },
        { "experimental", 0, FLAG(experimental, "allow otlp, which is not settled yet") },
        { "porcelain", 0, FLAG(porcelain, "for scripts: lines NAME VALUE on stdout") },
        { NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)ls_filter_option_table, 0, NULL,
          NULL },
        POPT_TABLEEND
};

/* Checks for a name of a label that all stores take. */
static int is_label_name(const char *s, size_t n)
{
        if (!n || n > 128 || (!isalpha((unsigned char)*s) && *s != '_') || !strncmp(s, "__", 2))
                return 0;
        for (size_t i = 0; i < n; i++)
                if (!isalnum((unsigned char)s[i]) && s[i] != '_')
                        return 0;
        return 1;
}

static int find_sink(struct ls_push_options *o)
{
        const char *colon = raw.to ? strchr(raw.to, ':') : NULL, *host, *end;
        const struct ls_sink *s = ls_sinks;

        if (!raw.to) {
                ls_error("push: where to? Give --to TYPE:URL, such as --to "
                         "pyroscope:http://127.0.0.1:4040");
                return -EINVAL;
        }
        while (s->name && (!colon || strlen(s->name) != (size_t)(colon - raw.to) ||
                           strncmp(s->name, raw.to, strlen(s->name))))
                s++;
        if (!s->name)
                return ls_options_bad("--to", raw.to,
                                      "give TYPE:URL, TYPE being pyroscope, parca, coroot, pprof, "
                                      "otlp, clickhouse or dir");
        o->push.sink = s;
        o->push.url = colon + 1;
        if (s->flags & LS_SINK_DIR)
                return *o->push.url ? 0
                                    : ls_options_bad("--to", raw.to,
                                                     "give a directory, such as dir:/var/profiles");
        if (strncmp(o->push.url, "http://", 7) && strncmp(o->push.url, "https://", 8))
                return ls_options_bad("--to", raw.to,
                                      "give a URL that begins with http:// or https:// behind the "
                                      "type");
        host = strstr(o->push.url, "//") + 2;
        end = host + strcspn(host, "/?#");
        if (memchr(host, '@', (size_t)(end - host)))
                return ls_options_bad("--to", "TYPE:URL",
                                      "a password is seen by all users: give --auth-file FILE");
        if (strpbrk(o->push.url, "?#") && s->path)
                return ls_options_bad("--to", raw.to, "give the URL without ? and #");
        if ((s->flags & LS_SINK_OTLP) && !raw.experimental) {
                ls_error("push: --to otlp: OTLP profiles are not settled yet, and a store may take "
                         "them and show nothing: "
                         "--experimental sends them");
                return -EINVAL;
        }
        return 0;
}

/* The dims that an exporter knows by the name of a label. */
static unsigned dim_of(const char *name)
{
        static const struct { const char *name; unsigned dim;
        } dims[] = {
                { "vmstate", LS_DIM_VMSTATE },     { "zone", LS_DIM_ZONE },
                { "thread", LS_DIM_THREAD },       { "vm", LS_DIM_VM },
                { "coroutine", LS_DIM_COROUTINE }, { "type", LS_DIM_TYPE },
        };

        for (size_t i = 0; i < sizeof(dims) / sizeof(*dims); i++)
                if (!strcmp(name, dims[i].name))
                        return dims[i].dim;
        return 0;
}

static int read_labels(struct ls_push_options *o)
{
        static char usual[] = "vmstate,zone";
        char *save = NULL;
        unsigned n = 0;

        o->without = LS_DIM_VMSTATE | LS_DIM_ZONE | LS_DIM_THREAD | LS_DIM_VM | LS_DIM_COROUTINE |
                     LS_DIM_TYPE | LS_DIM_LABEL;
        for (char *word = strtok_r(raw.labels ? raw.labels : usual, ",", &save); word;
             word = strtok_r(NULL, ",", &save)) {
                if (!is_label_name(word, strlen(word)))
                        return ls_options_bad("--labels", word,
                                              "stores want letters, digits and _ in names of "
                                              "labels");
                o->without &= ~(dim_of(word) ? dim_of(word) : LS_DIM_LABEL);
                if (dim_of(word))
                        continue;
                if (n == LS_PUSH_WORDS)
                        return ls_options_bad("--labels", word, "too many labels");
                o->label_keys[n++] = word;
        }
        return 0;
}

static int add_series(struct ls_push_options *o, const char *text)
{
        const char *equals = strchr(text, '=');
        struct ls_push *p = &o->push;

        if (!equals || !equals[1] || !is_label_name(text, (size_t)(equals - text)) ||
            !strncmp(text, "service_name=", 13) || !strncmp(text, "host=", 5))
                return ls_options_bad("--series", text,
                                      "give NAME=VALUE, NAME of letters, digits and _, not "
                                      "service_name or host");
        for (const char *c = equals; *c; c++)
                if ((unsigned char)*c < 32 || *c == 127)
                        return ls_options_bad("--series", text,
                                              "control characters are no part of a label");
        if (p->n_labels == LS_PUSH_LABELS)
                return ls_options_bad("--series", text, "given too often");
        p->labels[p->n_labels].name = strndup(text, (size_t)(equals - text));
        p->labels[p->n_labels].value = equals + 1;
        for (unsigned i = 0; i < p->n_labels; i++)
                if (!strcmp(p->labels[i].name, p->labels[p->n_labels].name))
                        return ls_options_bad("--series", text, "named twice");
        return p->labels[p->n_labels++].name ? 0 : -ENOMEM;
}

static int is_header(const char *line)
{
        size_t n = strcspn(line, ": \t");

        for (const char *c = line; *c; c++)
                if ((unsigned char)*c < 32 || (unsigned char)*c > 126)
                        return 0;
        return n && line[n] == ':' && line[n + 1];
}

/* Before rights are given up, since it is nobody else's. */
static int read_headers(struct ls_push_options *o)
{
        static char text[HEADERS_MOST], tenant[256];
        char *save = NULL;
        unsigned n = 0;
        FILE *f = raw.auth ? fopen(raw.auth, "re") : NULL;
        size_t size = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

        if (raw.auth && (!f || ferror(f) || size == sizeof(text) - 1)) {
                ls_error("push: --auth-file %s: %s", raw.auth,
                         f && !ferror(f) ? "it is too long" : strerror(errno));
                if (f)
                        fclose(f);
                return -EINVAL;
        }
        if (f)
                fclose(f);
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                if (n == LS_PUSH_WORDS - 1 || !is_header(line))
                        return ls_options_bad("--auth-file", raw.auth,
                                              "give lines 'Name: value', such as 'Authorization: "
                                              "Bearer TOKEN'");
                o->headers[n++] = line;
        }
        if (raw.tenant) {
                if (snprintf(tenant, sizeof(tenant), "X-Scope-OrgID: %s", raw.tenant) >=
                            (int)sizeof(tenant) ||
                    !is_header(tenant))
                        return ls_options_bad("--tenant", raw.tenant, "that is no name");
                o->headers[n++] = tenant;
        }
        return 0;
}

static int read_number(const char *option, const char *text, uint64_t most, uint64_t *ret)
{
        char *end;

        if (!text)
                return 0;
        errno = 0;
        *ret = strtoull(text, &end, 10);
        return !errno && !*end && *text >= '0' && *text <= '9' && *ret <= most
                       ? 0
                       : ls_options_bad(option, text, "give a number");
}

static int read_table(struct ls_push_options *o)
{
        if (strcmp(o->push.sink->name, "clickhouse"))
                return raw.table ? ls_options_bad("--table", raw.table, "it is for clickhouse") : 0;
        o->push.table = raw.table ? raw.table : "luasample";
        for (const char *c = o->push.table; *c; c++)
                if (!isalnum((unsigned char)*c) && *c != '_' && *c != '.')
                        return ls_options_bad("--table", raw.table, "give NAME or DATABASE.NAME");
        return 0;
}

static int read_values(struct ls_push_options *o)
{
        uint64_t ns = 30000000000;

        o->retries = 4;
        if (find_sink(o) || read_labels(o) || read_headers(o) || read_table(o) ||
            read_number("--retries", raw.retries, 100, &o->retries) ||
            read_number("--skip", raw.skip, UINT32_MAX, &o->skip) ||
            ls_options_filters(&o->report.want))
                return -EINVAL;
        if (raw.timeout &&
            (ls_parse_duration(raw.timeout, "s", &ns) || ns < 1000000 || ns > 3600000000000))
                return ls_options_bad("--timeout", raw.timeout, "give a time from 1ms to 1h");
        o->push.timeout_ms = ns / 1000000;
        o->push.headers = o->headers;
        o->push.service = raw.service;
        o->report.input = raw.input ? raw.input : "luasample.data";
        o->report.by[0] = &ls_keys[0];
        o->report.experimental = raw.experimental;
        o->porcelain = raw.porcelain;
        o->range = ls_range_wanted();
        if (o->range && raw.input) {
                ls_error("push: a file and --service, --since, --until or --store exclude each "
                         "other");
                return -EINVAL;
        }
        return 0;
}

/* FILE may stand as a word. */
static int take_word(poptContext ctx)
{
        const char *word = poptGetArg(ctx), *more = poptGetArg(ctx);

        if (more || (word && raw.input)) {
                ls_error("push: unexpected argument '%s'", more ? more : word);
                return -EINVAL;
        }
        raw.input = word ? strdup(word) : raw.input;
        return 0;
}

int ls_push_options_read(int argc, const char **argv, struct ls_push_options *o)
{
        poptContext ctx = ls_options_begin(&ls_cmd_push, argc, argv, 0);
        int val, r = 0, status;

        *o = (struct ls_push_options){ .report = { .command = "push", .depth = 1 } };
        ls_options_of("push");
        while (!r && (val = ls_options_next(&ls_cmd_push, ctx)) > 0) {
                char *arg = poptGetOptArg(ctx);

                r = val == VAL_SERIES ? add_series(o, arg) : ls_options_value(&o->report, val, arg);
        }
        status = r ? LS_EXIT_USAGE : ls_options_status(val);
        if (status == LS_GO_ON && (take_word(ctx) || read_values(o)))
                status = LS_EXIT_USAGE;
        poptFreeContext(ctx);
        return status;
}
