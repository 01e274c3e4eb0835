/* The command luasample coverage: which lines and functions of the files were executed, from a
 * recording with -e coverage or lines. */
#include "report/coverage/command.h"

#include "cli/output.h"
#include "formats/trace/reader.h"
#include "report/coverage/html.h"
#include "report/coverage/write.h"
#include "report/options/trace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INCLUDES 64u

enum { OPT_INCLUDE = 1 };

static struct { char *input, *lcov, *luacov, *cobertura, *html, *fail_under; int quiet; } opt;

static const struct poptOption options[] = {
        { "input", 'i', POPT_ARG_STRING, &opt.input, 0, "trace to read (default luasample.data)",
          "FILE" },
        { "include", '\0', POPT_ARG_STRING, NULL, OPT_INCLUDE,
          "only files below DIR, or that match as a pattern; Lua files there that were never "
          "loaded count, too; may be repeated",
          "DIR" },
        { "lcov", '\0', POPT_ARG_STRING, &opt.lcov, 0,
          "write an LCOV tracefile, for genhtml and others; - for stdout", "FILE" },
        { "luacov", '\0', POPT_ARG_STRING, &opt.luacov, 0,
          "write luacov.stats.out, for luacov's reporters", "FILE" },
        { "cobertura", '\0', POPT_ARG_STRING, &opt.cobertura, 0, "write Cobertura's XML", "FILE" },
        { "html", '\0', POPT_ARG_STRING, &opt.html, 0, "write a page with the sources, one file",
          "FILE" },
        { "fail-under", '\0', POPT_ARG_STRING, &opt.fail_under, 0,
          "exit with 1 when fewer percent of the lines were executed", "N" },
        { "quiet", 'q', POPT_ARG_NONE, &opt.quiet, 0, "do not show the table", NULL },
        POPT_TABLEEND
};

static int write_one(const char *path, void (*write)(FILE *out, const struct ls_coverage *c),
                     const struct ls_coverage *c)
{
        struct ls_output out;
        int r, end;

        if (!path)
                return 0;
        r = ls_output_open(&out, strcmp(path, "-") ? path : NULL, LS_COLOR_NEVER, 0);
        if (!r) {
                write(out.file, c);
                end = ls_output_close(&out, 0);
                r = r ? r : end;
        }
        if (r)
                ls_error("coverage: cannot write %s: %s", path, strerror(-r));
        return r ? LS_EXIT_FAIL : 0;
}

static int to_stdout(const char *path)
{
        return path && !strcmp(path, "-");
}

static int show(const struct ls_coverage *c, double least)
{
        double percent = ls_coverage_percent(c->lines_hit, c->lines);
        int status = write_one(opt.lcov, ls_coverage_lcov, c);
        struct ls_output out;

        if (!status)
                status = write_one(opt.luacov, ls_coverage_luacov, c);
        if (!status)
                status = write_one(opt.cobertura, ls_coverage_cobertura, c);
        if (!status)
                status = write_one(opt.html, ls_coverage_html, c);
        if (!status && !opt.quiet && !to_stdout(opt.lcov) && !to_stdout(opt.luacov) &&
            !to_stdout(opt.cobertura) &&
            !to_stdout(opt.html)) {
                int r = ls_output_open(&out, NULL, LS_COLOR_NEVER, 0);

                if (!r) {
                        ls_coverage_text(out.file, c, out.width);
                        r = ls_output_close(&out, 0);
                }
                status = r ? LS_EXIT_FAIL : 0;
        }
        if (!status && percent < least) {
                ls_error("coverage: %.2f%% of the lines were executed, %g%% are wanted "
                         "(--fail-under)",
                         floor(100 * percent) / 100, least);
                status = LS_EXIT_FAIL;
        }
        return status;
}

static int run(const char *const *include, unsigned n, double least)
{
        const char *input = opt.input ? opt.input : LS_DEFAULT_TRACE;
        struct ls_profile *p;
        struct ls_coverage c = { 0 };
        int status = ls_open_trace("coverage", input, &p), r;

        if (status)
                return status;
        r = ls_coverage_new(p, include, n, &c);
        if (r == -ENODATA)
                ls_error("coverage: %s has no coverage; record it with: luasample record -e "
                         "coverage -- CMD",
                         input);
        else if (r)
                ls_error("coverage: %s: %s", input, strerror(-r));
        else if (!c.n_files)
                ls_error("coverage: no file of %s is %s", input,
                         n ? "there by --include" : "known: all code came from strings");
        status = r || !c.n_files ? LS_EXIT_FAIL : show(&c, least);
        ls_coverage_free(&c);
        ls_profile_close(p);
        return status;
}

/* Returns 0, or -EINVAL after a line. */
static int read_least(double *ret)
{
        char *end;

        *ret = 0;
        if (!opt.fail_under)
                return 0;
        *ret = strtod(opt.fail_under, &end);
        if (end != opt.fail_under && (!*end || !strcmp(end, "%")) && *ret >= 0 && *ret <= 100)
                return 0;
        ls_error("coverage: --fail-under %s: give percents, from 0 to 100", opt.fail_under);
        return -EINVAL;
}

static int coverage_run(int argc, const char **argv)
{
        poptContext ctx = ls_options_begin(&ls_cmd_coverage, argc, argv, 0);
        char *include[INCLUDES];
        unsigned n = 0;
        double least;
        int val, status = LS_EXIT_USAGE;

        if (!ctx)
                return LS_EXIT_FAIL;
        while ((val = ls_options_next(&ls_cmd_coverage, ctx)) == OPT_INCLUDE) {
                if (n == INCLUDES) {
                        ls_error("coverage: --include may be given %u times", INCLUDES);
                        break;
                }
                include[n++] = poptGetOptArg(ctx);
        }
        if (val == -1 && poptPeekArg(ctx))
                ls_error("coverage: unexpected argument '%s'; a trace is named with -i FILE",
                         poptPeekArg(ctx));
        else if (val != OPT_INCLUDE && ls_options_status(val) != LS_GO_ON)
                status = ls_options_status(val);
        else if (val == -1 && read_least(&least) == 0)
                status = run((const char *const *)include, n, least);
        while (n--)
                free(include[n]);
        poptFreeContext(ctx);
        return status;
}

const struct ls_command ls_cmd_coverage = {
        .name = "coverage",
        .summary = "show which lines were executed",
        .usage = "[-i FILE] [OPTION...]",
        .options = options,
        .run = coverage_run,
};
