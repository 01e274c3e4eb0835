/* The coverage of files as a page: a table, and below it the sources with their hits. It has no
 * script and loads nothing; names and sources are text of others, and are shown as such. See
 * html.h. */
#include "report/coverage/html.h"

#include "formats/escape.h"
#include "report/coverage/write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char page_head[] =
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n"
        "<meta name=\"generator\" content=\"luasample\">\n"
        "<meta http-equiv=\"Content-Security-Policy\"\n"
        "        content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n"
        "<link rel=\"icon\" href=\"data:,\">\n<title>Coverage</title>\n<style>\n"
        ":root { color-scheme: light dark; --page: #eef0f4; --panel: #fff; --line: #dfe3ea;"
        " --text: #1d232e; --dim: #68717f;\n        --good: #1f8a5b; --fair: #a9700a;"
        " --bad: #c62f45; --hit: #e3f4ea; --miss: #fde4e7; --half: #fdf0d5; }\n"
        "@media (prefers-color-scheme: dark) { :root { --page: #0e1116; --panel: #161a21;"
        " --line: #272d37; --text: #e3e7ee;\n        --dim: #8d97a7; --good: #4cc38a;"
        " --fair: #e5a93c; --bad: #ff6b7d; --hit: #12301f; --miss: #40191f; --half: #3b2d10; } }\n"
        "body { margin: 0; padding: 12px; background: var(--page); color: var(--text);\n"
        "        font: 13px/1.45 ui-sans-serif, system-ui, \"Segoe UI\","
        " \"Liberation Sans\", sans-serif; }\n"
        "h1 { font-size: 15px; margin: 0 0 8px; } a { color: inherit; }\n"
        "section, details { background: var(--panel); border: 1px solid var(--line);"
        " border-radius: 8px; padding: 8px 12px;\n        margin: 0 0 8px; overflow-x: auto; }\n"
        "table { border-collapse: collapse; }"
        " th { text-align: left; color: var(--dim); font-weight: 600; }\n"
        "th, td { padding: 2px 14px 2px 0; } td.n, th.n { text-align: right;"
        " white-space: nowrap; font-variant-numeric: tabular-nums; }\n"
        ".good { color: var(--good); } .fair { color: var(--fair); } .bad { color: var(--bad); }\n"
        ".dim { color: var(--dim); } summary { cursor: pointer; }\n"
        "table.source { width: 100%; font: 12px/1.4 ui-monospace, Menlo, \"Liberation Mono\", "
        "monospace;"
        " margin-top: 6px; }\n"
        "table.source td { padding: 0 10px 0 0; }"
        " table.source td.t { white-space: pre; width: 100%; }\n"
        "tr.hit td.t { background: var(--hit); } tr.miss td.t { background: var(--miss); }"
        " tr.half td.t { background: var(--half); }\n"
        "</style>\n</head>\n<body>\n<h1>Coverage</h1>\n";

static void put_text(FILE *out, const char *s, size_t n)
{
        char *visible = ls_visible(s, n);

        ls_coverage_xml(out, visible ? visible : "");
        free(visible);
}

static void put_share(FILE *out, size_t hit, size_t all)
{
        double percent = ls_coverage_percent(hit, all);

        if (!all)
                fputs("<td class=\"n dim\">-</td><td class=\"n dim\"></td>", out);
        else
                fprintf(out, "<td class=\"n %s\">%.2f%%</td><td class=\"n dim\">%zu/%zu</td>",
                        percent >= 90 ? "good" : percent >= 75 ? "fair" : "bad", percent, hit, all);
}

static void put_file_row(FILE *out, const struct ls_coverage *c, size_t i)
{
        const struct ls_coverage_file *f = &c->files[i];
        const char *path = ls_coverage_short_path(f->path);

        fputs("<tr>", out);
        put_share(out, f->lines_hit, f->n_lines);
        put_share(out, f->functions_hit, f->n_functions);
        if (c->has_branches)
                put_share(out, f->arms_hit, f->n_arms);
        fprintf(out, "<td><a href=\"#f%zu\">", i + 1);
        put_text(out, path, strlen(path));
        fprintf(out, "</a>%s</td></tr>\n",
                f->never ? " <span class=\"dim\">never loaded</span>" : "");
}

static void put_table(FILE *out, const struct ls_coverage *c)
{
        fprintf(out, "<section><table>\n<tr><th class=\"n\" colspan=\"2\">Lines</th>"
                "<th class=\"n\" colspan=\"2\">Functions</th>%s<th>File</th></tr>\n",
                c->has_branches ? "<th class=\"n\" colspan=\"2\">Branches</th>" : "");
        for (size_t i = 0; i < c->n_files; i++)
                put_file_row(out, c, i);
        fputs("<tr>", out);
        put_share(out, c->lines_hit, c->lines);
        put_share(out, c->functions_hit, c->functions);
        if (c->has_branches)
                put_share(out, c->arms_hit, c->arms);
        fprintf(out, "<td><b>%zu file%s</b></td></tr>\n</table></section>\n", c->n_files,
                c->n_files == 1 ? "" : "s");
}

/* Ways of the branches of a line, as "250/750": how often each was taken. *arm: the first at this
 * line or behind it, moved on. Returns how many were never taken. */
static size_t put_arms(FILE *out, const struct ls_coverage_file *f, uint32_t line, size_t *arm)
{
        size_t never = 0;

        fputs("<td class=\"n dim\">", out);
        while (*arm < f->n_arms && f->arms[*arm].line < line)
                ++*arm;
        for (size_t first = *arm; *arm < f->n_arms && f->arms[*arm].line == line; ++*arm) {
                const struct ls_coverage_arm *a = &f->arms[*arm];

                if (*arm > first)
                        fputs(a->jumps ? "/" : " ", out);
                fprintf(out, a->hits ? "%" PRIu64 : "<b class=\"bad\">%" PRIu64 "</b>", a->hits);
                never += a->hits == 0;
        }
        fputs("</td>", out);
        return never;
}

static size_t count_never(const struct ls_coverage_file *f, uint32_t line, size_t arm)
{
        size_t never = 0;

        while (arm < f->n_arms && f->arms[arm].line < line)
                arm++;
        for (; arm < f->n_arms && f->arms[arm].line == line; arm++)
                never += f->arms[arm].hits == 0;
        return never;
}

/* hits: NULL = the line has no code. */
static void put_line(FILE *out, const struct ls_coverage *c, const struct ls_coverage_file *f,
                     uint32_t line, const uint64_t *hits, size_t *arm)
{
        const struct ls_source_text *t = &f->text;
        const char *class = !hits ? "" : !*hits ? " class=\"miss\""
                            : count_never(f, line, *arm) ? " class=\"half\"" : " class=\"hit\"";

        fprintf(out, "<tr%s><td class=\"n dim\">%" PRIu32 "</td><td class=\"n\">", class, line);
        if (hits && c->counted)
                fprintf(out, "%" PRIu64, *hits);
        else if (hits)
                fputs(*hits ? "+" : "0", out);
        fputs("</td>", out);
        if (c->has_branches)
                put_arms(out, f, line, arm);
        fputs("<td class=\"t\">", out);
        if (!f->changed && line <= t->n_lines) {
                const char *s = t->lines[line - 1].s, *end = s + t->lines[line - 1].len, *tab;

                for (; (tab = memchr(s, '\t', (size_t)(end - s))); s = tab + 1) {
                        put_text(out, s, (size_t)(tab - s));
                        fputc('\t', out);
                }
                put_text(out, s, (size_t)(end - s));
        }
        fputs("</td></tr>\n", out);
}

/* Without its source only the lines that have code. */
static void put_source(FILE *out, const struct ls_coverage *c, size_t i)
{
        const struct ls_coverage_file *f = &c->files[i];
        const char *path = ls_coverage_short_path(f->path);
        size_t k = 0, arm = 0;

        fprintf(out, "<details id=\"f%zu\"%s><summary>", i + 1, c->n_files == 1 ? " open" : "");
        put_text(out, path, strlen(path));
        fprintf(out, " <span class=\"dim\">%zu of %zu lines</span></summary>\n", f->lines_hit,
                f->n_lines);
        if (f->changed || !f->text.lines)
                fprintf(out, "<p class=\"bad\">%s</p>\n",
                        f->changed ? "The file has changed since." : "The file cannot be read.");
        fputs("<table class=\"source\">\n", out);
        if (f->changed || !f->text.lines)
                for (; k < f->n_lines; k++)
                        put_line(out, c, f, f->lines[k].line, &f->lines[k].hits, &arm);
        else
                for (uint32_t line = 1; line <= f->text.n_lines; line++) {
                        int is = k < f->n_lines && f->lines[k].line == line;

                        put_line(out, c, f, line, is ? &f->lines[k].hits : NULL, &arm);
                        k += (size_t)is;
                }
        fputs("</table></details>\n", out);
}

void ls_coverage_html(FILE *out, const struct ls_coverage *c)
{
        fputs(page_head, out);
        put_table(out, c);
        for (size_t i = 0; i < c->n_files; i++)
                put_source(out, c, i);
        fputs("</body>\n</html>\n", out);
}
