/* See write.h. */
#include "report/coverage/write.h"

#include "formats/escape.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

double ls_coverage_percent(size_t hit, size_t all)
{
        return all ? 100 * (double)hit / (double)all : 100;
}

const char *ls_coverage_short_path(const char *path)
{
        static char here[4096];
        size_t n;

        if (!*here && !getcwd(here, sizeof(here)))
                return path;
        n = strlen(here);
        return !strncmp(path, here, n) && path[n] == '/' ? path + n + 1 : path;
}

/* Lines of [from, to) in the list that were not executed, as "3-5,9". */
static void put_missing(FILE *out, const struct ls_coverage_file *f, size_t room)
{
        char text[32];
        size_t used = 0;

        for (size_t i = 0, end; i < f->n_lines; i = end) {
                int n;

                end = i + 1;
                if (f->lines[i].hits)
                        continue;
                while (end < f->n_lines && !f->lines[end].hits)
                        end++;
                n = f->lines[i].line == f->lines[end - 1].line
                            ? snprintf(text, sizeof(text), "%s%u", used ? "," : "",
                                       f->lines[i].line)
                            : snprintf(text, sizeof(text), "%s%u-%u", used ? "," : "",
                                       f->lines[i].line, f->lines[end - 1].line);
                if (room && used + (size_t)n + 4 > room) {
                        fputs(",...", out);
                        return;
                }
                fputs(text, out);
                used += (size_t)n;
        }
}

/* has: 1 = with a column of branches. */
static void put_branches(FILE *out, int has, size_t hit, size_t all)
{
        if (has)
                fprintf(out, "%7.2f%% %6zu/%-6zu ", ls_coverage_percent(hit, all), hit, all);
}

static void put_row(FILE *out, size_t lines_hit, size_t lines, size_t functions_hit,
                    size_t functions)
{
        fprintf(out, "%7.2f%% %6zu/%-6zu %7.2f%% %5zu/%-5zu ",
                ls_coverage_percent(lines_hit, lines), lines_hit, lines,
                ls_coverage_percent(functions_hit, functions), functions_hit, functions);
}

void ls_coverage_text(FILE *out, const struct ls_coverage *c, unsigned width)
{
        size_t longest = 8;

        for (size_t i = 0; i < c->n_files; i++) {
                size_t n = strlen(ls_coverage_short_path(c->files[i].path));

                longest = n > longest ? n : longest;
        }
        fprintf(out, "#  Lines               Functions            %s%-*s  Missing\n",
                c->has_branches ? "Branches              " : "", (int)longest, "File");
        for (size_t i = 0; i < c->n_files; i++) {
                const struct ls_coverage_file *f = &c->files[i];
                char *path = ls_visible(ls_coverage_short_path(f->path),
                                        strlen(ls_coverage_short_path(f->path)));
                size_t left = 45 + longest + (c->has_branches ? 23 : 0);

                put_row(out, f->lines_hit, f->n_lines, f->functions_hit, f->n_functions);
                put_branches(out, c->has_branches, f->arms_hit, f->n_arms);
                fprintf(out, "%-*s  ", f->lines_hit < f->n_lines || f->never ? (int)longest : 0,
                        path ? path : "");
                if (f->never)
                        fputs("never loaded", out);
                else
                        put_missing(out, f, width > left + 20 ? width - left : width ? 20 : 0);
                fputs(f->changed ? "  (the file has changed since)\n" : "\n", out);
                free(path);
        }
        put_row(out, c->lines_hit, c->lines, c->functions_hit, c->functions);
        put_branches(out, c->has_branches, c->arms_hit, c->arms);
        fprintf(out, "%zu file%s\n", c->n_files, c->n_files == 1 ? "" : "s");
}

/* A name in a file of lines: what would end the line is a space. */
static void put_bytes(FILE *out, const char *s, size_t n)
{
        for (size_t i = 0; i < n; i++)
                fputc((unsigned char)s[i] < 32 || s[i] == 127 ? ' ' : s[i], out);
}

static void put_word(FILE *out, const char *s)
{
        put_bytes(out, s, strlen(s));
}

/* Names need not differ in a file, and here they have to. */
static void put_function(FILE *out, const struct ls_coverage_function *f)
{
        put_bytes(out, f->name.len ? f->name.s : "function", f->name.len ? f->name.len : 8);
        fprintf(out, ":%u\n", f->first_line);
}

/* Whether an arm is the first of its branch; and whether either was taken. */
static int begins_branch(const struct ls_coverage_file *f, size_t k)
{
        const struct ls_coverage_arm *a = &f->arms[k];

        return !k || a[-1].line != a->line || a[-1].function != a->function || a[-1].pos != a->pos;
}

static int was_reached(const struct ls_coverage_file *f, size_t k)
{
        return f->arms[k].hits || (k + 1 < f->n_arms && !begins_branch(f, k + 1) &&
                                   f->arms[k + 1].hits) ||
               (!begins_branch(f, k) && f->arms[k - 1].hits);
}

/* A block for each branch of a line; "-" = it was not reached. */
static void put_lcov_branches(FILE *out, const struct ls_coverage_file *f)
{
        unsigned block = 0;

        for (size_t k = 0; k < f->n_arms; k++) {
                const struct ls_coverage_arm *a = &f->arms[k];

                if (begins_branch(f, k))
                        block = k && a[-1].line == a->line ? block + 1 : 0;
                fprintf(out, "BRDA:%u,%u,%u,", a->line, block, a->jumps);
                if (was_reached(f, k))
                        fprintf(out, "%" PRIu64 "\n", a->hits);
                else
                        fputs("-\n", out);
        }
        fprintf(out, "BRF:%zu\nBRH:%zu\n", f->n_arms, f->arms_hit);
}

void ls_coverage_lcov(FILE *out, const struct ls_coverage *c)
{
        for (size_t i = 0; i < c->n_files; i++) {
                const struct ls_coverage_file *f = &c->files[i];

                fputs("TN:\nSF:", out);
                put_word(out, f->path);
                fputc('\n', out);
                for (size_t k = 0; k < f->n_functions; k++) {
                        fprintf(out, "FN:%u,", f->functions[k].first_line);
                        put_function(out, &f->functions[k]);
                        fprintf(out, "FNDA:%" PRIu64 ",", f->functions[k].calls);
                        put_function(out, &f->functions[k]);
                }
                fprintf(out, "FNF:%zu\nFNH:%zu\n", f->n_functions, f->functions_hit);
                if (c->has_branches)
                        put_lcov_branches(out, f);
                for (size_t k = 0; k < f->n_lines; k++)
                        fprintf(out, "DA:%u,%" PRIu64 "\n", f->lines[k].line, f->lines[k].hits);
                fprintf(out, "LF:%zu\nLH:%zu\nend_of_record\n", f->n_lines, f->lines_hit);
        }
}

void ls_coverage_luacov(FILE *out, const struct ls_coverage *c)
{
        for (size_t i = 0; i < c->n_files; i++) {
                const struct ls_coverage_file *f = &c->files[i];
                const char *name = !strncmp(f->name, "./", 2) ? f->name + 2 : f->name;
                size_t k = 0;

                if (f->never || !f->lines_hit)
                        continue;       /* luacov lists them by itself, as it is told to */
                fprintf(out, "%u:", f->last);
                put_word(out, name);
                fputc('\n', out);
                for (uint32_t line = 1; line <= f->last; line++) {
                        int is = k < f->n_lines && f->lines[k].line == line;

                        fprintf(out, "%" PRIu64 " ", is ? f->lines[k].hits : 0);
                        k += (size_t)is;
                }
                fputc('\n', out);
        }
}

void ls_coverage_xml(FILE *out, const char *s)
{
        for (; *s; s++)
                switch (*s) {
                case '&': fputs("&amp;", out); break;
                case '<': fputs("&lt;", out); break;
                case '>': fputs("&gt;", out); break;
                case '"': fputs("&quot;", out); break;
                default: fputc((unsigned char)*s < 32 ? ' ' : *s, out);
                }
}

static void put_rates(FILE *out, size_t hit, size_t all, size_t arms_hit, size_t arms)
{
        fprintf(out, "line-rate=\"%.4f\" branch-rate=\"%.4f\" complexity=\"0\"",
                ls_coverage_percent(hit, all) / 100, arms ? ls_coverage_percent(arms_hit,
                                                                                arms) / 100 : 0);
}

/* *next: the file's first arm at this line or behind it, moved on. */
static void put_condition(FILE *out, const struct ls_coverage_file *f, uint32_t line, size_t *next)
{
        size_t all = 0, hit = 0;

        while (*next < f->n_arms && f->arms[*next].line < line)
                ++*next;
        for (; *next < f->n_arms && f->arms[*next].line == line; ++*next, all++)
                hit += f->arms[*next].hits != 0;
        if (all)
                fprintf(out, " branch=\"true\" condition-coverage=\"%.0f%% (%zu/%zu)\"/>\n",
                        ls_coverage_percent(hit, all), hit, all);
        else
                fputs(" branch=\"false\"/>\n", out);
}

static void put_xml_line(FILE *out, const char *indent, uint32_t line, uint64_t hits)
{
        fprintf(out, "%s<line number=\"%u\" hits=\"%" PRIu64 "\"", indent, line, hits);
}

static void put_class(FILE *out, const struct ls_coverage_file *f)
{
        const char *slash = strrchr(f->path, '/');
        size_t arm = 0;
        char *path = ls_visible(ls_coverage_short_path(f->path),
                                strlen(ls_coverage_short_path(f->path)));
        char *name = ls_visible(slash ? slash + 1 : f->path, strlen(slash ? slash + 1 : f->path));

        fputs("        <class name=\"", out);
        ls_coverage_xml(out, name ? name : "");
        fputs("\" filename=\"", out);
        ls_coverage_xml(out, path ? path : "");
        fputs("\" ", out);
        put_rates(out, f->lines_hit, f->n_lines, f->arms_hit, f->n_arms);
        fputs(">\n          <methods>\n", out);
        for (size_t k = 0; k < f->n_functions; k++) {
                struct ls_str word = f->functions[k].name;
                char *function =
                        ls_visible(word.len ? word.s : "function", word.len ? word.len : 8);

                fputs("            <method name=\"", out);
                ls_coverage_xml(out, function ? function : "");
                fputs("\" signature=\"\" ", out);
                put_rates(out, f->functions[k].calls != 0, 1, 0, 0);
                fputs(">\n              <lines>\n", out);
                put_xml_line(out, "                ", f->functions[k].first_line,
                             f->functions[k].calls);
                fputs(" branch=\"false\"/>\n              </lines>\n            </method>\n", out);
                free(function);
        }
        fputs("          </methods>\n          <lines>\n", out);
        for (size_t k = 0; k < f->n_lines; k++) {
                put_xml_line(out, "            ", f->lines[k].line, f->lines[k].hits);
                put_condition(out, f, f->lines[k].line, &arm);
        }
        fputs("          </lines>\n        </class>\n", out);
        free(path);
        free(name);
}

void ls_coverage_cobertura(FILE *out, const struct ls_coverage *c)
{
        char here[4096];

        fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
              "<!DOCTYPE coverage SYSTEM "
              "\"http://cobertura.sourceforge.net/xml/coverage-04.dtd\">\n<coverage ",
              out);
        put_rates(out, c->lines_hit, c->lines, c->arms_hit, c->arms);
        fprintf(out,
                " lines-covered=\"%zu\" lines-valid=\"%zu\" branches-covered=\"%zu\" "
                "branches-valid=\"%zu\" "
                "version=\"luasample " LS_VERSION "\" timestamp=\"0\">\n  <sources>\n    <source>",
                c->lines_hit, c->lines, c->arms_hit, c->arms);
        ls_coverage_xml(out, getcwd(here, sizeof(here)) ? here : "/");
        fputs("</source>\n  </sources>\n  <packages>\n    <package name=\"\" ", out);
        put_rates(out, c->lines_hit, c->lines, c->arms_hit, c->arms);
        fputs(">\n      <classes>\n", out);
        for (size_t i = 0; i < c->n_files; i++)
                put_class(out, &c->files[i]);
        fputs("      </classes>\n    </package>\n  </packages>\n</coverage>\n", out);
}
