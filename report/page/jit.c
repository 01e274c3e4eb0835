/* Member "jit" of a page: what luasample jit shows, and the marks of the lines of its sources.
 * Called by report/page/page.c. Names and listings come from the profiled program. */
#include "report/page/page.h"
#include "formats/json.h"
#include "report/jit/jit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TRACES 1000u               /* by time */
#define MOST_LISTINGS (1u << 20)        /* bytes of all listings together */

/* A text that is made for it, NULL = no memory; frees it. */
static void put_made(struct ls_js *g, char *text)
{
        if (text)
                ls_js_string(g, text);
        else
                g->failed = -ENOMEM;
        free(text);
}

static void put_states(const struct ls_jit *j, struct ls_js *g)
{
        ls_js_key_open(g, "states", '[');
        for (unsigned i = 0; i < LS_NVMSTATES; i++) {
                ls_js_open(g, '[');
                ls_js_u64(g, j->states[i]);
                ls_js_string(g, ls_jit_state_meaning(i));
                ls_js_close(g, ']');
        }
        ls_js_close(g, ']');
}

static void put_reason(const struct ls_jit *j, struct ls_js *g, enum ls_reason reason,
                       uint32_t attempt, uint64_t ticks)
{
        ls_js_open(g, '[');
        ls_js_u64(g, reason);
        put_made(g, ls_jit_because(j, reason, attempt));
        put_made(g, ls_jit_where(j, attempt));
        ls_js_u64(g, ticks);
        ls_js_close(g, ']');
}

static int is_only_given_up(const struct ls_jit_line *l)
{
        return l->row == LS_NO_ROW && l->attempt != LS_NO_ATTEMPT;
}

/* [reason, its text, where it begins, ticks] of each; then, without ticks, those of lines that
 * nothing else has. [title, meaning] of each reason. */
static void put_reasons(const struct ls_jit *j, const struct ls_jit_lines *l, struct ls_js *g)
{
        ls_js_key_open(g, "reasons", '[');
        for (uint32_t i = 0; i < j->blame.n_rows; i++)
                put_reason(j, g, j->blame.rows[i].reason, j->blame.rows[i].attempt,
                           j->blame.rows[i].ticks);
        for (size_t i = 0; i < l->n; i++)
                if (is_only_given_up(&l->lines[i]))
                        put_reason(j, g, LS_REASON_BLACKLISTED, l->lines[i].attempt, 0);
        ls_js_close(g, ']');
        ls_js_key_open(g, "meanings", '[');
        for (unsigned i = 0; i < LS_REASONS; i++) {
                ls_js_open(g, '[');
                ls_js_string(g, ls_jit_reason_title(i));
                ls_js_string(g, ls_jit_reason_meaning(i));
                ls_js_close(g, ']');
        }
        ls_js_close(g, ']');
}

static void put_text(struct ls_js *g, const char *text)
{
        ls_js_open(g, '[');
        while (*text) {
                size_t len = strcspn(text, "\n");

                ls_js_text(g, (struct ls_str){ text, (uint32_t)len });
                text += len + (text[len] == '\n');
        }
        ls_js_close(g, ']');
}

/* Lines of what a part of luasample jit writes; null when they are longer than left. */
static int put_part(struct ls_jit *j, struct ls_js *g, size_t *left,
                    int (*write)(const struct ls_jit *j, uint32_t arg), uint32_t arg)
{
        char *text = NULL;
        size_t len = 0;
        int error;

        j->r.out = open_memstream(&text, &len);
        if (!j->r.out)
                return -ENOMEM;
        error = write(j, arg);
        if (fclose(j->r.out) && !error)
                error = -ENOMEM;
        if (!error && len <= *left)
                put_text(g, text);
        else if (!error)
                ls_js_null(g);
        *left = len <= *left ? *left - len : 0;
        free(text);
        return error;
}

static int write_advice(const struct ls_jit *j, uint32_t arg)
{
        (void)arg;
        return ls_jit_advice(j);
}

/* What luasample jit --trace shows; null when there is no room for more. */
static int put_listing(struct ls_jit *j, struct ls_js *g, uint32_t trace, size_t *left)
{
        if (*left)
                return put_part(j, g, left, ls_jit_one_trace, trace);
        ls_js_null(g);
        return 0;
}

/* [name, starts at, goes on to, ticks, bytes of machine code, listing] of each, most time first. */
static int put_traces(struct ls_jit *j, struct ls_js *g)
{
        size_t left = MOST_LISTINGS;
        int error = 0;

        ls_js_key_u64(g, "more_traces", j->n_order > MOST_TRACES ? j->n_order - MOST_TRACES : 0);
        ls_js_key_open(g, "traces", '[');
        for (uint32_t i = 0; !error && i < j->n_order && i < MOST_TRACES; i++) {
                uint32_t trace = j->order[i];

                ls_js_open(g, '[');
                put_made(g, ls_jit_name(j, trace));
                put_made(g, ls_jit_start(j, trace));
                put_made(g, ls_jit_link(j, trace));
                ls_js_u64(g, j->ticks[trace]);
                ls_js_u64(g, j->r.profile->jittraces[trace].size);
                error = put_listing(j, g, trace, &left);
                ls_js_close(g, ']');
        }
        ls_js_close(g, ']');
        return error;
}

static void put_index(struct ls_js *g, uint32_t i)
{
        if (i == UINT32_MAX)
                ls_js_minus_one(g);
        else
                ls_js_u64(g, i);
}

/* [source of the page, line, mark, compiled ticks, others, trace above or -1, reason above or -1]
 * of each line that has one. */
static int put_lines(const struct ls_jit *j, const struct ls_jit_lines *l,
                     const struct ls_page_tables *t, struct ls_js *g)
{
        uint32_t *place = malloc(((size_t)j->r.profile->n_jittraces + 1) * sizeof(*place));
        uint32_t next = j->blame.n_rows;

        if (!place)
                return -ENOMEM;
        for (uint32_t i = 0; i < j->r.profile->n_jittraces; i++)
                place[i] = UINT32_MAX;
        for (uint32_t i = 0; i < j->n_order && i < MOST_TRACES; i++)
                place[j->order[i]] = i;
        ls_js_key_open(g, "lines", '[');
        for (size_t i = 0; i < l->n; i++) {
                const struct ls_jit_line *at = &l->lines[i];
                uint32_t reason = is_only_given_up(at) ? next++ : at->row;

                if (t->sources.of[at->source] == UINT32_MAX)
                        continue;
                ls_js_open(g, '[');
                ls_js_u64(g, t->sources.of[at->source]);
                ls_js_u64(g, at->line);
                ls_js_u64(g, at->mark);
                ls_js_u64(g, at->compiled);
                ls_js_u64(g, at->uncompiled);
                put_index(g, place[at->trace]);
                put_index(g, reason);
                ls_js_close(g, ']');
        }
        ls_js_close(g, ']');
        free(place);
        return 0;
}

static int put_all(struct ls_jit *j, const struct ls_page_tables *t, struct ls_js *g)
{
        struct ls_jit_lines lines;
        int error = ls_jit_lines_new(j, &lines);

        if (error)
                return error;
        ls_js_key_bool(g, "recorded", j->blame.recorded);
        ls_js_key_u64(g, "ticks", j->own->ticks);
        ls_js_key_u64(g, "uncompiled", j->blame.ticks);
        put_states(j, g);
        put_reasons(j, &lines, g);
        ls_js_key(g, "advice");
        error = put_part(j, g, &(size_t){ SIZE_MAX }, write_advice, 0);
        if (!error)
                error = put_traces(j, g);
        if (!error)
                error = put_lines(j, &lines, t, g);
        ls_jit_lines_done(&lines);
        return error;
}

int ls_page_jit_json(const struct ls_page_tables *t, struct ls_js *g)
{
        struct ls_jit j = { .r = *t->r, .only_recorded = 1 };
        int error;

        ls_js_key(g, "jit");
        if (!ls_events_time(&t->r->filter->choice)) {
                ls_js_null(g);
                return 0;
        }
        j.r.color = 0;
        j.r.width = 0;
        error = ls_jit_init(&j, NULL);
        ls_js_open(g, '{');
        if (!error)
                error = put_all(&j, t, g);
        ls_js_close(g, '}');
        ls_jit_done(&j);
        return error;
}
