/* The command luasample merge: several recordings become one trace, which every other command
 * reads. */
#include "cli/output.h"
#include "formats/merge/merge.h"
#include "formats/trace/reader.h"
#include "report/commands.h"
#include "report/model/facts.h"
#include "report/options/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct { char *output; int quiet; } opt;

static const struct poptOption options[] = {
        { "output", 'o', POPT_ARG_STRING, &opt.output, 0,
          "write to FILE, which appears when it is whole; - for stdout", "FILE" },
        { "quiet", 'q', POPT_ARG_NONE, &opt.quiet, 0, "do not say what was merged", NULL },
        POPT_TABLEEND
};

/* What the user should know of how the recordings stand beside each other. */
static void say_plan(const struct ls_merge_input *in, unsigned n, uint64_t interval_ns)
{
        char interval[32], own[32];
        uint64_t samples = 0, ticks = 0;

        for (unsigned i = 0; i < n; i++) {
                samples += in[i].profile->recorded_samples;
                ticks += in[i].profile->recorded_ticks * in[i].scale;
                if (in[i].boot != in[0].boot) {
                        fputs("[ luasample: ", stderr);
                        ls_put_visible(stderr, in[i].name);
                        fputs(" is of another boot or machine: its times stand behind those before "
                              "]\n",
                              stderr);
                }
                if (in[i].scale != 1) {
                        fputs("[ luasample: ", stderr);
                        ls_put_visible(stderr, in[i].name);
                        fprintf(stderr, " has ticks of %s: each counts as %" PRIu64 " ]\n",
                                ls_duration_text(in[i].profile->interval_ns, own, sizeof(own)),
                                in[i].scale);
                }
        }
        fprintf(stderr,
                "[ luasample: merged %u recordings: %" PRIu64 " samples, %" PRIu64
                " ticks of %s ]\n",
                n, samples, ticks, ls_duration_text(interval_ns, interval, sizeof(interval)));
}

static int write_trace(const struct ls_merge_input *in, unsigned n, uint64_t interval_ns)
{
        const char *path = strcmp(opt.output, "-") ? opt.output : NULL;
        struct ls_output out;
        mode_t mask;
        int r, end;

        if (!path && isatty(STDOUT_FILENO)) {
                ls_error("merge: a trace is not for a terminal: name a file with -o FILE");
                return LS_EXIT_FAIL;
        }
        signal(SIGXFSZ, SIG_IGN);       /* the writer reports both as errors of its writes */
        signal(SIGPIPE, SIG_IGN);
        mask = umask(0177);             /* as record: it may hold private text */
        r = ls_output_open(&out, path, LS_COLOR_NEVER, 0);
        umask(mask);
        if (r) {
                ls_error("merge: cannot write %s: %s", opt.output, strerror(-r));
                return LS_EXIT_FAIL;
        }
        r = ls_merge_write(fileno(out.file), in, n, interval_ns, NULL);
        end = ls_output_close(&out, r != 0);
        if (r || end)
                ls_error("merge: cannot write %s: %s", opt.output, strerror(r ? -r : -end));
        return r || end ? LS_EXIT_FAIL : 0;
}

static int merge(struct ls_merge_input *in, unsigned n)
{
        uint64_t interval_ns = 0;
        unsigned a = 0, b = 0;
        char one[32], other[32];
        int status, r = ls_merge_plan(in, n, &interval_ns, &a, &b);

        if (r == -EDOM) {
                ls_error("merge: %s has ticks of %s, which is no multiple of the %s of %s: their "
                         "ticks cannot be added up",
                         in[b].name,
                         ls_duration_text(in[b].profile->interval_ns, other, sizeof(other)),
                         ls_duration_text(in[a].profile->interval_ns, one, sizeof(one)),
                         in[a].name);
                return LS_EXIT_FAIL;
        }
        if (r) {
                ls_error("merge: %s", strerror(-r));
                return LS_EXIT_FAIL;
        }
        status = write_trace(in, n, interval_ns);
        if (!status && !opt.quiet)
                say_plan(in, n, interval_ns);
        return status;
}

static int open_and_merge(const char **files, unsigned n)
{
        struct ls_merge_input *in = calloc(n, sizeof(*in));
        int status = in ? 0 : LS_EXIT_FAIL;

        if (!in)
                ls_error("merge: %s", strerror(ENOMEM));
        if (in && ls_open_traces_first(files, n))
                status = LS_EXIT_FAIL;
        for (unsigned i = 0; !status && i < n; i++) {
                in[i].name = files[i];
                status = ls_open_trace("merge", files[i], &in[i].profile);
        }
        if (!status)
                status = merge(in, n);
        for (unsigned i = 0; in && i < n; i++)
                ls_profile_close(in[i].profile);
        free(in);
        return status;
}

static int merge_run(int argc, const char **argv)
{
        poptContext ctx = ls_options_begin(&ls_cmd_merge, argc, argv, 0);
        int val = ls_options_next(&ls_cmd_merge, ctx), status = LS_EXIT_USAGE;
        const char **files = val == -1 ? poptGetArgs(ctx) : NULL;
        unsigned n = 0;

        while (files && files[n])
                n++;
        if (val == -3)
                status = 0;
        else if (val == -1 && n < 2)
                ls_error("merge: give two recordings or more, 'A B... -o FILE'");
        else if (val == -1 && !opt.output)
                ls_error("merge: name the file to write with -o FILE");
        else if (val == -1)
                status = open_and_merge(files, n);
        poptFreeContext(ctx);
        return status;
}

const struct ls_command ls_cmd_merge = {
        .name = "merge",
        .summary = "join recordings in one trace",
        .usage = "A B... -o FILE",
        .options = options,
        .run = merge_run,
        .shows = 1,
};
