/* The command luasample dump: every record of a trace as text, in file order. */
#include "cli/command.h"
#include "cli/output.h"
#include "formats/escape.h"
#include "formats/trace/dump.h"
#include "formats/trace/reader.h"
#include "report/commands.h"
#include "report/options/trace.h"
#include "formats/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct {
        char *input, *output;
        int json, no_pager;
} opt;

static const struct poptOption options[] = {
        { "input", 'i', POPT_ARG_STRING, &opt.input, 0,
          "trace to read, - for stdin (luasample.data)", "FILE" },
        { "output", 'o', POPT_ARG_STRING, &opt.output, 0,
          "write to FILE, which appears when it is whole", "FILE" },
        { "json", 0, POPT_ARG_NONE, &opt.json, 0, "one JSON array of records", NULL },
        { "no-pager", 0, POPT_ARG_NONE, &opt.no_pager, 0, "no pager", NULL },
        POPT_TABLEEND
};

struct dump_ctx {
        FILE *out;
        uint64_t n;                     /* records so far */
};

/* One line: place, kind, fields. Strings are quoted, so that a script can split at spaces outside
 * quotes. */
static void put_text(FILE *out, uint64_t chunk, uint64_t offset, const char *kind,
                     const struct ls_dump_field *fields, unsigned n)
{
        fprintf(out, "%" PRIu64 " 0x%08" PRIx64 " %-10s", chunk, offset, kind);
        for (unsigned i = 0; i < n; i++) {
                char *text;

                if (fields[i].is_u64) {
                        fprintf(out, " %s=%" PRIu64, fields[i].key, fields[i].u64);
                        continue;
                }
                text = ls_visible(fields[i].str.s, fields[i].str.len);
                fprintf(out, " %s=\"", fields[i].key);
                for (const char *p = text ? text : ""; *p; p++)
                        fprintf(out, *p == '"' ? "\\%c" : "%c", *p);
                fputc('"', out);
                free(text);
        }
        fputc('\n', out);
}

/* One object a line, so that tools without a JSON reader for large files can go line by line. */
static int put_json(FILE *out, uint64_t chunk, uint64_t offset, const char *kind,
                    const struct ls_dump_field *fields, unsigned n)
{
        struct ls_js j = { .out = out }, *g = &j;

        ls_js_open(g, '{');
        ls_js_key_u64(g, "chunk", chunk);
        ls_js_key_u64(g, "offset", offset);
        ls_js_key_string(g, "record", kind);
        for (unsigned i = 0; i < n; i++) {
                if (fields[i].is_u64)
                        ls_js_key_u64(g, fields[i].key, fields[i].u64);
                else
                        ls_js_key_text(g, fields[i].key, fields[i].str);
        }
        ls_js_close(g, '}');
        return j.failed;
}

#define STOP 1                          /* of ls_dump_fn: the output takes no more */

static int put_record(void *ctx, uint64_t chunk, uint64_t offset, const char *kind,
                      const struct ls_dump_field *fields, unsigned n)
{
        struct dump_ctx *d = ctx;
        int r = 0;

        if (opt.json) {
                fputs(d->n++ ? ",\n" : "\n", d->out);
                r = put_json(d->out, chunk, offset, kind, fields, n);
        } else {
                put_text(d->out, chunk, offset, kind, fields, n);
        }
        return !r && ferror(d->out) ? STOP : r; /* who closes the output says why */
}

static int dump_to(struct ls_profile *p, FILE *out)
{
        struct dump_ctx d = { .out = out };
        int r;

        if (opt.json)
                fputc('[', out);
        r = ls_profile_dump(p, put_record, &d);
        if (opt.json)
                fputs("\n]\n", out);
        return r;
}

static int run_dump(const char *input, struct ls_profile *p)
{
        struct ls_output out;
        int r = ls_output_open(&out, opt.output, LS_COLOR_NEVER, !opt.no_pager && !opt.json), end;

        if (r) {
                ls_error("dump: cannot write %s: %s", opt.output, strerror(-r));
                return LS_EXIT_FAIL;
        }
        r = dump_to(p, out.file);
        if (r < 0)
                ls_error("dump: %s: %s", input, strerror(-r));
        end = ls_output_close(&out, r != 0);
        if (end)
                ls_error("dump: cannot write %s: %s", opt.output, strerror(-end));
        return r < 0 || end ? LS_EXIT_FAIL : 0;
}

static int dump_run(int argc, const char **argv)
{
        poptContext ctx = ls_options_begin(&ls_cmd_dump, argc, argv, 0);
        int val = ls_options_next(&ls_cmd_dump, ctx), status = LS_EXIT_USAGE;
        const char *input = opt.input ? opt.input : LS_DEFAULT_TRACE,
                   *extra = val == -1 ? poptGetArg(ctx) : NULL;
        struct ls_profile *p;

        if (extra)
                ls_error("dump: unexpected argument '%s'; a trace is named with -i FILE", extra);
        else if (val == -3)
                status = 0;
        else if (val == -1) {
                status = ls_open_trace("dump", input, &p);
                if (!status) {
                        status = run_dump(input, p);
                        ls_profile_close(p);
                }
        }
        poptFreeContext(ctx);
        return status;
}

const struct ls_command ls_cmd_dump = {
        .name = "dump",
        .summary = "print every record of a trace as text",
        .usage = "[-i FILE] [OPTION...]",
        .options = options,
        .run = dump_run,
        .shows = 1,
};
