/* The command luasample info: what a trace says about itself, without its samples. */
#include "cli/command.h"
#include "cli/output.h"
#include "formats/escape.h"
#include "formats/trace/reader.h"
#include "report/commands.h"
#include "report/info_counters.h"
#include "report/info_processes.h"
#include "report/model/facts.h"
#include "report/options/trace.h"
#include "formats/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
        char *input, *output;
        int json, no_pager;
} opt;

static const struct poptOption options[] = {
        { "input", 'i', POPT_ARG_STRING, &opt.input, 0,
          "trace to read, - for stdin (luasample.data)", "FILE" },
        { "output", 'o', POPT_ARG_STRING, &opt.output, 0,
          "write to FILE, which appears when it is whole", "FILE" },
        { "json", 0, POPT_ARG_NONE, &opt.json, 0, "as JSON", NULL },
        { "no-pager", 0, POPT_ARG_NONE, &opt.no_pager, 0, "no pager", NULL },
        POPT_TABLEEND
};

struct table_size { const char *name; uint32_t n; };

/* Rows of each dictionary; entry 0 is none of them. */
static unsigned count_tables(const struct ls_profile *p, struct table_size *ret)
{
        unsigned n = 0;

#define COUNT(table) ret[n++] = (struct table_size){ #table, p->n_##table ? p->n_##table - 1 : 0 }
        COUNT(sources);
        COUNT(functions);
        COUNT(locations);
        COUNT(stacks);
        COUNT(zones);
        COUNT(processes);
        COUNT(threads);
        COUNT(vms);
        COUNT(coroutines);
        COUNT(mappings);
        COUNT(jittraces);
        COUNT(counters);
#undef COUNT
        return n;
}

static uint64_t source_text_bytes(const struct ls_profile *p, uint32_t *ret_files)
{
        uint64_t bytes = 0;

        *ret_files = 0;
        for (uint32_t i = 1; i < p->n_sources; i++) {
                bytes += p->sources[i].text.len;
                *ret_files += p->sources[i].text.len != 0;
        }
        return bytes;
}

/* What a trace tells about the user, besides the names of functions. */
static uint32_t count_paths(const struct ls_profile *p)
{
        uint32_t n = 0;

        for (uint32_t i = 1; i < p->n_sources; i++)
                n += p->sources[i].path.len != 0;
        for (uint32_t i = 1; i < p->n_mappings; i++)
                n += p->mappings[i].path.len != 0;
        return n;
}

static void put_time(FILE *out, uint64_t realtime_ns)
{
        time_t t = (time_t)(realtime_ns / 1000000000u);
        struct tm tm;
        char text[64];

        if (realtime_ns && localtime_r(&t, &tm) &&
            strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &tm))
                fprintf(out, "%-22s %s\n", "recorded", text);
}

/* Lengths of time are also given as people read them; points of time (start_*) are not. */
static void put_number(FILE *out, const char *key, uint64_t n)
{
        size_t len = strlen(key);
        char buf[32];

        fprintf(out, "%-22s %" PRIu64, key, n);
        if (n && len > 3 && !strcmp(key + len - 3, "_ns") && strncmp(key, "start_", 6))
                fprintf(out, " (%s)", ls_duration_text(n, buf, sizeof(buf)));
        fputc('\n', out);
}

static void put_infos(FILE *out, const struct ls_profile *p)
{
        for (uint32_t i = 0; i < p->n_infos; i++) {
                const struct ls_info *info = &p->infos[i];
                char *key = ls_visible(info->key.s, info->key.len);
                char *text = info->is_u64 ? NULL : ls_visible(info->str.s, info->str.len);

                if (key && strncmp(key, "lost.", 5)) {
                        if (info->is_u64)
                                put_number(out, key, info->u64);
                        else
                                fprintf(out, "%-22s %s\n", key, text ? text : "");
                }
                free(key);
                free(text);
        }
}

/* A share of the ticks in compiled code. */
static void put_jit_share(FILE *out, const char *key, uint64_t part, uint64_t whole,
                          const char *what)
{
        if (part)
                fprintf(out, "  %-20s %" PRIu64 " ticks (%.2f%%): %s\n", key, part,
                        100 * (double)part / (double)whole, what);
}

static void put_jit(FILE *out, const struct ls_profile *p)
{
        if (!p->jit_ticks)
                return;
        fprintf(out, "%-22s %" PRIu64 " ticks in traces that are known by number\n",
                "compiled code", p->jit_ticks);
        put_jit_share(out, "approximate", p->jit_approximate_ticks, p->jit_ticks,
                      "the line, and who inlined it, may be off");
        put_jit_share(out, "no map", p->jit_unknown_ticks, p->jit_ticks,
                      "only the function that the root trace starts in");
}

static void put_quality(FILE *out, const struct ls_profile *p, const struct ls_facts *f)
{
        char buf[32], one[160];

        fprintf(out, "\nRate and losses\n");
        fprintf(out, "%-22s every %s\n", "asked", ls_duration_text(f->asked_ns, buf, sizeof(buf)));
        fprintf(out, "%-22s %.1f Hz of CPU time\n", "achieved", f->achieved_hz);
        fprintf(out, "%-22s %" PRIu64 " samples with %" PRIu64 " ticks\n", "readable",
                p->recorded_samples, p->recorded_ticks);
        fprintf(out, "%-22s %.2f%% of the program's CPU time\n", "cost of the agent",
                100 * f->own_share);
        fprintf(out, "%-22s %" PRIu64 " tick%s\n", "lost", f->lost_ticks,
                f->lost_ticks == 1 ? "" : "s");
        for (unsigned i = 0; i < f->n_losses; i++)
                if (f->losses[i].count && f->losses[i].is_ticks)
                        fprintf(out, "  %-20s %" PRIu64 " tick%s (%.2f%%): %s\n", f->losses[i].key,
                                f->losses[i].count, f->losses[i].count == 1 ? "" : "s",
                                100 * f->losses[i].share, f->losses[i].label);
        fprintf(out, "%-22s %.2f%% of the ticks\n", "incomplete stacks", 100 * f->incomplete_share);
        for (unsigned i = 0; i < f->n_losses; i++)
                if (f->losses[i].count && f->losses[i].is_stack)
                        fprintf(out, "  %-20s %" PRIu64 " (%.2f%%): %s\n", f->losses[i].key,
                                f->losses[i].count, 100 * f->losses[i].share, f->losses[i].label);
        put_jit(out, p);
        for (unsigned i = 0; i < f->n_losses; i++)
                if (f->losses[i].count && !f->losses[i].is_ticks && !f->losses[i].is_stack)
                        fprintf(out, "%-22s %" PRIu64 " %s\n", f->losses[i].key, f->losses[i].count,
                                ls_counted_text(f->losses[i].count, f->losses[i].label, one,
                                                sizeof(one)));
        for (uint32_t i = 0; i < p->n_damages; i++)
                fprintf(out,
                        "%-22s chunk %" PRIu64 " at byte %" PRIu64 " (%" PRIu64 " bytes): %s\n",
                        "damage", p->damages[i].chunk, p->damages[i].offset, p->damages[i].bytes,
                        p->damages[i].why);
        if (!p->complete)
                fprintf(out,
                        "%-22s the trace has no end: it is still being written, or was cut off\n",
                        "note");
        for (uint32_t i = 0; i < p->n_notices; i++) {
                char *text = ls_visible(p->notices[i].s, p->notices[i].len);

                fprintf(out, "%-22s %s\n", "note", text ? text : "");
                free(text);
        }
}

static void put_contents(FILE *out, const struct ls_profile *p)
{
        struct table_size tables[20];
        unsigned n = count_tables(p, tables);

        fprintf(out, "\nContents\n%-22s %" PRIu64 " bytes in %u chunks", "file", p->file_size,
                p->n_chunks);
        if (p->recorded_samples)
                fprintf(out, ", %.2f bytes a sample",
                        (double)p->file_size / (double)p->recorded_samples);
        fputc('\n', out);
        for (unsigned i = 0; i < n; i++)
                fprintf(out, "%-22s %u\n", tables[i].name, tables[i].n);
        for (uint32_t i = 0; i < p->n_events; i++) {
                char *name = ls_visible(p->events[i].name.s, p->events[i].name.len);

                fprintf(out, "event %-3u %-12s %" PRIu64 " rows, sum %" PRIu64 "\n",
                        p->events[i].id, name && *name ? name : "(unknown)", p->events[i].rows,
                        p->events[i].sum);
                free(name);
        }
}

static void put_private(FILE *out, const struct ls_profile *p)
{
        uint32_t files;
        uint64_t bytes = source_text_bytes(p, &files);

        fprintf(out, "\nPrivate text in this file\n");
        fprintf(out, "%-22s %s\n", "arguments",
                ls_profile_u64(p, LS_INFO_PRIVATE_ARGS, 0) ? "yes: the program's command line"
                                                           : "no");
        fprintf(out, "%-22s %" PRIu64 " bytes of %u chunk%s\n", "source text", bytes, files,
                files == 1 ? "" : "s");
        fprintf(out, "%-22s %u\n", "file names", count_paths(p));
        fprintf(out, "%-22s %s\n", "host name", ls_profile_str(p, LS_INFO_HOST).len ? "yes" : "no");
        fprintf(out, "%-22s names of functions, zones and threads\n", "always");
}

static void json_infos(struct ls_js *g, const struct ls_profile *p)
{
        static const enum ls_info_key own[] = { LS_INFO_ASKED_INTERVAL, LS_INFO_CPU, LS_INFO_TICKS,
                                                LS_INFO_SAMPLES, LS_INFO_COMPLETE };

        for (uint32_t i = 0; i < p->n_infos; i++) {
                const struct ls_info *info = &p->infos[i];
                char *key = ls_visible(info->key.s, info->key.len);
                int known = !key || !strncmp(key, "lost.", 5);

                for (unsigned k = 0; !known && k < sizeof(own) / sizeof(*own); k++)
                        known = !strcmp(ls_info_key(own[k]), key);
                if (!known && info->is_u64)
                        ls_js_key_u64(g, key, info->u64);
                else if (!known)
                        ls_js_key_text(g, key, info->str);
                free(key);
        }
}

static void json_lists(struct ls_js *g, const struct ls_profile *p)
{
        ls_js_key_open(g, "damage", '[');
        for (uint32_t i = 0; i < p->n_damages; i++) {
                ls_js_open(g, '{');
                ls_js_key_u64(g, "chunk", p->damages[i].chunk);
                ls_js_key_u64(g, "offset", p->damages[i].offset);
                ls_js_key_u64(g, "bytes", p->damages[i].bytes);
                ls_js_key_string(g, "why", p->damages[i].why);
                ls_js_close(g, '}');
        }
        ls_js_close(g, ']');
        ls_js_key_open(g, "notices", '[');
        for (uint32_t i = 0; i < p->n_notices; i++)
                ls_js_text(g, p->notices[i]);
        ls_js_close(g, ']');
        ls_js_key_open(g, "events", '[');
        for (uint32_t i = 0; i < p->n_events; i++) {
                ls_js_open(g, '{');
                ls_js_key_u64(g, "id", p->events[i].id);
                ls_js_key_text(g, "name", p->events[i].name);
                ls_js_key_text(g, "unit", p->events[i].unit);
                ls_js_key_u64(g, "rows", p->events[i].rows);
                ls_js_key_u64(g, "sum", p->events[i].sum);
                ls_js_close(g, '}');
        }
        ls_js_close(g, ']');
}

static int info_json(FILE *out, const struct ls_profile *p, const struct ls_facts *f)
{
        struct table_size tables[20];
        unsigned n = count_tables(p, tables);
        uint32_t files;
        struct ls_js j = { .out = out, .indent = 1 }, *g = &j;

        ls_js_open(g, '{');
        ls_js_key_u64(g, "ticks", f->ticks);
        ls_js_key_u64(g, "samples", f->samples);
        ls_js_key_u64(g, "asked_interval_ns", f->asked_ns);
        ls_js_key_share(g, "achieved_rate_hz", f->achieved_hz);
        ls_js_key_u64(g, "cpu_ns", f->cpu_ns);
        ls_js_key_u64(g, "lost_ticks", f->lost_ticks);
        ls_js_key_open(g, "lost", '{');
        for (unsigned i = 0; i < f->n_losses; i++)
                ls_js_key_u64(g, f->losses[i].key, f->losses[i].count);
        ls_js_close(g, '}');
        ls_js_key_share(g, "incomplete", f->incomplete_share);
        ls_js_key_u64(g, "jit_ticks", p->jit_ticks);
        ls_js_key_u64(g, "jit_approximate_ticks", p->jit_approximate_ticks);
        ls_js_key_u64(g, "jit_unknown_ticks", p->jit_unknown_ticks);
        ls_js_key_bool(g, "complete", p->complete);
        ls_js_key_u64(g, "readable_samples", p->recorded_samples);
        ls_js_key_u64(g, "readable_ticks", p->recorded_ticks);
        ls_js_key_share(g, "own_cost", f->own_share);
        ls_js_key_u64(g, "file_size", p->file_size);
        ls_js_key_u64(g, "chunks", p->n_chunks);
        json_infos(g, p);
        ls_js_key_u64(g, "source_text_bytes", source_text_bytes(p, &files));
        ls_js_key_u64(g, "file_names", count_paths(p));
        ls_js_key_open(g, "tables", '{');
        for (unsigned i = 0; i < n; i++)
                ls_js_key_u64(g, tables[i].name, tables[i].n);
        ls_js_close(g, '}');
        ls_info_processes_json(g, p);
        ls_info_counters_json(g, p);
        json_lists(g, p);
        ls_js_close(g, '}');
        return j.failed;
}

static int no_rows(void *ctx, const struct ls_sample_block *b)
{
        (void)ctx, (void)b;
        return 0;
}

static int run_info(struct ls_profile *p)
{
        struct ls_output out;
        struct ls_facts f;
        int r = ls_output_open(&out, opt.output, LS_COLOR_NEVER, !opt.no_pager && !opt.json), end;

        if (r) {
                ls_error("info: cannot write %s: %s", opt.output, strerror(-r));
                return LS_EXIT_FAIL;
        }
        /* Ticks in compiled code are only known when all rows have been seen. */
        if (p->n_jittraces > 1)
                r = ls_profile_samples(p, 0, no_rows, NULL);
        ls_facts_init(&f, p);
        if (!r && opt.json)
                r = info_json(out.file, p, &f);
        else if (!r) {
                put_time(out.file, ls_profile_u64(p, LS_INFO_START_REALTIME, 0));
                put_infos(out.file, p);
                put_quality(out.file, p, &f);
                ls_info_processes(out.file, p);
                ls_info_counters(out.file, p);
                put_contents(out.file, p);
                put_private(out.file, p);
        }
        end = ls_output_close(&out, r != 0);
        if (r || end)
                ls_error("info: cannot write %s: %s", opt.output ? opt.output : "stdout",
                         strerror(r ? -r : -end));
        return r || end ? LS_EXIT_FAIL : 0;
}

static int info_run(int argc, const char **argv)
{
        poptContext ctx = ls_options_begin(&ls_cmd_info, argc, argv, 0);
        int val = ls_options_next(&ls_cmd_info, ctx), status = LS_EXIT_USAGE;
        const char *input = opt.input ? opt.input : LS_DEFAULT_TRACE,
                   *extra = val == -1 ? poptGetArg(ctx) : NULL;
        struct ls_profile *p;

        if (extra)
                ls_error("info: unexpected argument '%s'; a trace is named with -i FILE", extra);
        else if (val == -3)
                status = 0;
        else if (val == -1) {
                status = ls_open_trace("info", input, &p);
                if (!status) {
                        status = run_info(p);
                        ls_profile_close(p);
                }
        }
        poptFreeContext(ctx);
        return status;
}

const struct ls_command ls_cmd_info = {
        .name = "info",
        .summary = "show what a trace holds: rates, losses, sizes, private text",
        .usage = "[-i FILE] [OPTION...]",
        .options = options,
        .run = info_run,
        .shows = 1,
};
