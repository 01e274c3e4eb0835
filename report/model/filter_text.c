/* Filters as texts: for headers, and as a line that can be typed. Called by report/view/header.c
 * and report/tui*.c. */
#include "report/model/filter_text.h"

#include "formats/escape.h"

#include <stdlib.h>
#include <string.h>

typedef void (*put_fn)(FILE *f, const char *option, const char *value);

static void put_option(FILE *f, const char *option)
{
        fprintf(f, "%s--%s", ftell(f) > 0 ? " " : "", option);
}

/* As people read it. */
static void put_visible(FILE *f, const char *option, const char *value)
{
        char *visible = ls_visible(value, strlen(value));

        put_option(f, option);
        fprintf(f, " %s", visible ? visible : "?");
        free(visible);
}

/* As popt's splitting of a line takes it back. */
static void put_quoted(FILE *f, const char *option, const char *value)
{
        put_option(f, option);
        fputc(' ', f);
        if (*value && !strpbrk(value, " \t\n'\"\\")) {
                fputs(value, f);
                return;
        }
        fputc('\'', f);
        for (; *value; value++) {
                /* Between quotes a backslash stands for itself, but before a quote: there it has to
                 * be outside of them. */
                if (*value == '\\' && (!value[1] || value[1] == '\''))
                        fputs("'\\\\'", f);
                else
                        fprintf(f, *value == '\'' ? "\\%c" : "%c", *value);
        }
        fputc('\'', f);
}

static void put_filters(FILE *f, const struct ls_filter_options *want, put_fn put)
{
#define LS_FILTER(field, name, argument, help) \
        if (want->field) \
                put(f, name, want->field);
#include "report/model/filters.def"
#undef LS_FILTER
        for (unsigned i = 0; i < want->n_functions; i++)
                put(f, "function", want->functions[i]);
        for (unsigned i = 0; i < want->n_excludes; i++)
                put(f, "exclude", want->excludes[i]);
}

static char *text_of(const struct ls_filter_options *want, put_fn put, int no_regions)
{
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return NULL;
        put_filters(f, want, put);
        if (no_regions)
                put_option(f, "no-regions");
        fclose(f);
        return text;
}

char *ls_filter_text(const struct ls_filter_options *want)
{
        char *text = text_of(want, put_visible, 0);

        if (text && !*text) {
                free(text);
                return NULL;
        }
        return text;
}

char *ls_filter_line(const struct ls_filter_options *want)
{
        return text_of(want, put_quoted, want->no_regions);
}

char *ls_filter_literal(const char *text)
{
        char *pattern = malloc(strlen(text) * 2 + 1), *p = pattern;

        for (; p && *text; text++) {
                if (strchr("*?[\\", *text))
                        *p++ = '\\';
                *p++ = *text;
        }
        if (p)
                *p = '\0';
        return pattern;
}
