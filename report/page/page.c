/* View "page": a flame graph, timeline, table and sources in one HTML file that needs no network.
 * See page.h. */
#include "report/page/page.h"
#include "formats/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Without padding: the reader knows the number of values. */
static char *to_base64(const uint8_t *p, size_t n, size_t *ret_len)
{
        static const char digits[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        char *text = malloc(n / 3 * 4 + 8), *out = text;

        if (!text)
                return NULL;
        for (size_t i = 0; i < n; i += 3) {
                size_t left = n - i;
                uint32_t bits = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                                (left > 2 ? p[i + 2] : 0);

                *out++ = digits[bits >> 18];
                *out++ = digits[bits >> 12 & 63];
                if (left > 1)
                        *out++ = digits[bits >> 6 & 63];
                if (left > 2)
                        *out++ = digits[bits & 63];
        }
        *ret_len = (size_t)(out - text);
        return text;
}

int ls_page_column(struct ls_js *g, const char *key, struct ls_buf *b)
{
        size_t len = 0;
        char *text = b->failed ? NULL : to_base64(b->data, b->len, &len);

        ls_buf_free(b);
        if (!text)
                return -ENOMEM;
        ls_js_key(g, key);
        ls_js_utf8(g, text, len);
        free(text);
        return 0;
}

static int put_time(const struct ls_page_cells *c, struct ls_js *g)
{
        struct ls_buf samples = { 0 };

        ls_js_key_open(g, "time", '{');
        ls_js_key_u64(g, "first_ns", c->first_ns);
        ls_js_key_u64(g, "bucket_ns", c->bucket_ns);
        ls_js_key_u64(g, "buckets", c->n_buckets);
        for (uint32_t i = 0; i < c->n_buckets; i++)
                ls_buf_varint(&samples, c->samples[i]);
        if (ls_page_column(g, "samples", &samples))
                return -ENOMEM;
        ls_js_key_open(g, "squares", '[');
        for (uint32_t i = 0; i < c->n_buckets; i++)
                ls_js_fixed(g, c->squares[i], 0);
        ls_js_close(g, ']');
        ls_js_close(g, '}');
        return 0;
}

/* Sorted as they are: stacks count up in a bucket. */
static int put_cells(struct ls_js *g, const struct ls_page_tables *t)
{
        const struct ls_page_cell *cells = t->c->cells;
        struct ls_buf per_bucket = { 0 }, stack = { 0 }, context = { 0 }, ticks = { 0 };
        size_t i = 0;
        int error;

        for (uint32_t bucket = 0; bucket < t->c->n_buckets; bucket++) {
                size_t first = i;
                uint32_t last = 0;

                for (; i < t->c->n_cells && cells[i].bucket == bucket; i++) {
                        uint32_t id = t->stacks.of[cells[i].stack];

                        ls_buf_varint(&stack, id - last);
                        ls_buf_varint(&context, t->first_context + cells[i].context);
                        ls_buf_varint(&ticks, cells[i].ticks);
                        last = id;
                }
                ls_buf_varint(&per_bucket, i - first);
        }
        ls_js_key_u64(g, "n", t->c->n_cells);
        ls_js_key_u64(g, "buckets", t->c->n_buckets);
        error = ls_page_column(g, "per_bucket", &per_bucket);
        error |= ls_page_column(g, "stack", &stack);
        error |= ls_page_column(g, "context", &context);
        error |= ls_page_column(g, "ticks", &ticks);
        return error ? -ENOMEM : 0;
}

static int put_all_cells(const struct ls_page *page, const struct ls_page_tables *t,
                         struct ls_js *g)
{
        int error;

        ls_js_key_open(g, "cells", '{');
        error = put_cells(g, &t[0]);
        ls_js_close(g, '}');
        if (error || !page->base)
                return error;
        ls_js_key_open(g, "base", '{');
        ls_js_key_string(g, "title", page->base_title ? page->base_title : "before");
        error = put_cells(g, &t[1]);
        ls_js_close(g, '}');
        return error;
}

static int put_data(const struct ls_page *page, const struct ls_page_tables *t, struct ls_js *g)
{
        const struct ls_report *r = page->report;
        unsigned n_tables = page->base ? 2 : 1;
        int error;

        ls_js_open(g, '{');
        ls_js_key_u64(g, "version", 1);
        ls_js_key_string(g, "title", page->title ? page->title : "");
        ls_js_key_u64(g, "interval_ns", r->profile->interval_ns);
        ls_js_key_string(g, "event", ls_event_name(r->filter->choice.id[0]));
        ls_js_key_bool(g, "besides_cpu", ls_events_besides_cpu(r->profile));
        ls_js_key_open(g, "header", '{');
        ls_header_json(r, g);
        ls_js_close(g, '}');
        ls_page_facts_json(page, t[0].c, g);
        error = put_time(t[0].c, g);
        ls_page_marks_json(&t[0], g);
        if (!error)
                error = ls_page_tables_json(t, n_tables, g);
        if (!error)
                error = ls_page_sources_json(t, n_tables, g);
        if (!error)
                error = put_all_cells(page, t, g);
        if (!error)
                error = ls_page_jit_json(&t[0], g);
        if (!error)
                error = ls_page_heap_json(&t[0], g);
        ls_js_close(g, '}');
        return error;
}

/* Reads both recordings. */
static int collect(const struct ls_page *page, struct ls_page_cells c[2],
                   struct ls_page_tables t[2])
{
        int error = ls_page_cells_init(&c[0], page->report, 0);

        if (!error)
                error = ls_page_tables_init(&t[0], page->report, &c[0], NULL, NULL);
        if (!error && page->base)
                error = ls_page_cells_init(&c[1], page->base, 1);
        if (!error && page->base)
                error = ls_page_tables_init(&t[1], page->base, &c[1], &t[0], page->same_function);
        return error;
}

int ls_page_write(const struct ls_page *page)
{
        FILE *out = page->report->out;
        struct ls_page_cells c[2];
        struct ls_page_tables t[2];
        struct ls_js j = { .out = out, .is_script = 1 };
        int error;

        memset(c, 0, sizeof(c));
        memset(t, 0, sizeof(t));
        error = collect(page, c, t);
        if (!error) {
                fwrite(ls_page_head, 1, ls_page_head_len, out);
                error = put_data(page, t, &j);
                fwrite(ls_page_tail, 1, ls_page_tail_len, out);
        }
        for (int i = 0; i < 2; i++) {
                ls_page_tables_done(&t[i]);
                ls_page_cells_done(&c[i]);
        }
        return error ? error : j.failed;
}

static int page_chosen(const struct ls_report_options *o)
{
        return o->html;
}

/* The page reads the samples itself, with their times. */
static unsigned page_dims(const struct ls_report_options *o)
{
        (void)o;
        return 0;
}

static int page_text(const struct ls_report *r)
{
        return ls_page_write(&(struct ls_page){ .report = r, .title = r->o->input });
}

const struct ls_view ls_view_page = {
        .name = "page",
        .is_document = 1,
        .chosen = page_chosen,
        .dims = page_dims,
        .text = page_text,
};
