/* The sources of a page: of each file the lines that are on a stack, with what is around them.
 * Called by report/page/page.c. The text is what --annotate would show: of --source-dir, the
 * recorded path or the trace. Pages are passed on, and the trace may be another's, whose paths name
 * any file here: only what has the recorded hash comes in. */
#include "report/page/page.h"
#include "cli/command.h"
#include "formats/escape.h"
#include "formats/json.h"
#include "report/model/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXT 15                      /* lines before and after one that is on a stack */
#define WHOLE_FILE 600                  /* files up to so many lines are in the page as a whole, */
#define WHOLE_FUNCTION 400              /* and functions of larger ones up to so many */
#define MOST_TEXT (8u << 20)            /* bytes of all sources together */
#define MOST_LINE 1000                  /* bytes shown of one line */

struct place { uint32_t source, location; };

struct embed {
        const struct ls_report *r;
        struct ls_js *g;
        struct place *places;           /* of the Lua frames in the page, by source */
        size_t n_places, at;
        size_t left;                    /* of MOST_TEXT */
        unsigned left_out;              /* files that are not known to be those that were
                                         * recorded */
};

static int by_source(const void *a, const void *b)
{
        const struct place *x = a, *y = b;

        if (x->source != y->source)
                return x->source < y->source ? -1 : 1;
        return x->location < y->location ? -1 : x->location > y->location;
}

static int list_places(struct embed *e, const struct ls_page_tables *t, const struct ls_profile *p)
{
        e->at = e->n_places = 0;
        e->places = calloc((size_t)t->locations.n + 1, sizeof(*e->places));
        if (!e->places)
                return -ENOMEM;
        for (uint32_t i = 0; i < p->n_locations; i++) {
                const struct ls_function *f = &p->functions[p->locations[i].function];

                if (t->locations.of[i] != UINT32_MAX && f->kind == LS_FUNC_LUA && f->source)
                        e->places[e->n_places++] = (struct place){ f->source, i };
        }
        qsort(e->places, e->n_places, sizeof(*e->places), by_source);
        return 0;
}

static void mark(uint8_t *wanted, uint32_t n_lines, uint32_t from, uint32_t to)
{
        from = from > CONTEXT ? from - CONTEXT : 1;
        to = to > n_lines || n_lines - to < CONTEXT ? n_lines : to + CONTEXT;
        for (uint32_t i = from; i <= to; i++)
                wanted[i] = 1;
}

/* Which lines are wanted of a source whose places are those from e->at on: [n_lines + 1], to be
 * freed. */
static uint8_t *choose_lines(struct embed *e, uint32_t source, uint32_t n_lines)
{
        const struct ls_profile *p = e->r->profile;
        uint8_t *wanted = calloc((size_t)n_lines + 2, 1);
        uint32_t last_function = 0;

        if (wanted && n_lines <= WHOLE_FILE)
                memset(wanted + 1, 1, n_lines);
        while (e->at < e->n_places && e->places[e->at].source < source)
                e->at++;
        for (; e->at < e->n_places && e->places[e->at].source == source; e->at++) {
                const struct ls_location *l = &p->locations[e->places[e->at].location];
                const struct ls_function *f = &p->functions[l->function];

                if (!wanted || n_lines <= WHOLE_FILE)
                        continue;
                if (l->line && l->line <= n_lines && !wanted[l->line])
                        mark(wanted, n_lines, l->line, l->line);
                if (l->function == last_function || (f->flags & LS_FUNCF_MAIN) || !f->first_line)
                        continue;
                last_function = l->function;
                if (f->first_line <= f->last_line && f->last_line <= n_lines &&
                    f->last_line - f->first_line < WHOLE_FUNCTION)
                        mark(wanted, n_lines, f->first_line, f->last_line);
        }
        return wanted;
}

/* A line as it is shown; tabs stay, for the page has its own width for them. */
static int put_line(struct embed *e, struct ls_str line)
{
        struct ls_buf text = { 0 };
        uint32_t len = line.len < MOST_LINE ? line.len : MOST_LINE;

        for (uint32_t at = 0; at < len;) {
                const char *tab = memchr(line.s + at, '\t', len - at);
                uint32_t n = tab ? (uint32_t)(tab - line.s) - at : len - at;
                char *visible = ls_visible(line.s + at, n);

                if (!visible) {
                        ls_buf_free(&text);
                        return -ENOMEM;
                }
                ls_buf_add(&text, visible, strlen(visible));
                if (tab)
                        ls_buf_add(&text, "\t", 1);
                free(visible);
                at += n + (tab != NULL);
        }
        if (len < line.len)
                ls_buf_add(&text, "\xe2\x80\xa6", 3);
        if (text.failed)
                return -ENOMEM;
        ls_js_utf8(e->g, text.len ? (const char *)text.data : "", text.len);
        e->left = e->left > text.len + 4 ? e->left - text.len - 4 : 0;
        ls_buf_free(&text);
        return 0;
}

/* Runs of lines: [first line, text, text, ...] of each. */
static int put_text(struct embed *e, uint32_t source, const struct ls_source_text *t)
{
        uint8_t *wanted = choose_lines(e, source, t->n_lines);
        int error = wanted ? 0 : -ENOMEM;

        ls_js_key_open(e->g, "text", '[');
        for (uint32_t i = 1; !error && i <= t->n_lines; i++) {
                if (!wanted[i] || !e->left)
                        continue;
                if (i == 1 || !wanted[i - 1]) {
                        ls_js_open(e->g, '[');
                        ls_js_u64(e->g, i);
                }
                error = put_line(e, t->lines[i - 1]);
                if (i == t->n_lines || !wanted[i + 1] || !e->left)
                        ls_js_close(e->g, ']');
        }
        ls_js_close(e->g, ']');
        free(wanted);
        return error;
}

static const char *notice_of(const struct embed *e, const struct ls_source_text *t)
{
        static const char *const texts[] = {
                [LS_SOURCE_OK] = "",
                [LS_SOURCE_CHANGED] =
                        "The file has changed since it was recorded: its text is not in this page.",
                [LS_SOURCE_WITHHELD] =
                        "The file has changed since it was recorded: its text is not in this page.",
                [LS_SOURCE_UNKNOWN] =
                        "The trace does not tell which file it was: its text is not in this page.",
                [LS_SOURCE_NOT_A_FILE] = "The text of this chunk is not in the trace.",
                [LS_SOURCE_BYTECODE] = "The file is bytecode.",
        };

        if (!e->left)
                return "The page has no room for more source text.";
        return t->problem == LS_SOURCE_UNREADABLE ? strerror(t->error) : texts[t->problem];
}

static int put_source(struct embed *e, uint32_t source)
{
        const struct ls_report *r = e->r;
        struct ls_source_text t;
        int error = 0;

        memset(&t, 0, sizeof(t));
        if (source && e->left)
                error = ls_source_read(r->profile, source, r->o, &t);
        if (error)
                return error;
        ls_js_open(e->g, '{');
        ls_js_key_string(e->g, "label", source ? r->labels->source[source] : "");
        ls_js_key_string(e->g, "path", t.path ? t.path : "");
        ls_js_key_string(e->g, "notice", notice_of(e, &t));
        if (t.problem == LS_SOURCE_CHANGED || t.problem == LS_SOURCE_UNKNOWN)
                e->left_out++;
        else if (t.lines)
                error = put_text(e, source, &t);
        ls_js_close(e->g, '}');
        ls_source_done(&t);
        return error;
}

static int put_sources(struct embed *e, const struct ls_page_tables *t)
{
        int error;

        e->r = t->r;
        error = list_places(e, t, t->r->profile);
        for (uint32_t i = 0; !error && i < t->sources.n_old; i++)
                if (t->sources.of[i] != UINT32_MAX)
                        error = put_source(e, i);
        free(e->places);
        e->places = NULL;
        return error;
}

int ls_page_sources_json(const struct ls_page_tables *t, unsigned n_tables, struct ls_js *g)
{
        struct embed e = { .g = g, .left = MOST_TEXT };
        int error = 0;

        ls_js_key_open(g, "sources", '[');
        for (unsigned i = 0; !error && i < n_tables; i++)
                error = put_sources(&e, &t[i]);
        ls_js_close(g, ']');
        if (e.left_out)
                ls_warning("%u source file%s not in the page: not known to be what was recorded, "
                           "or changed since; "
                           "see --annotate",
                           e.left_out, e.left_out == 1 ? " is" : "s are");
        return error;
}
