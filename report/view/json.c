/* JSON output with yajl, straight to a file. Used by the views, info and dump. */
#include "report/view/json.h"
#include "formats/escape.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void print(void *ctx, const char *s, size_t n)
{
        fwrite(s, 1, n, ctx);
}

yajl_gen ls_json_begin(FILE *out)
{
        yajl_gen g = yajl_gen_alloc(NULL);

        if (!g)
                return NULL;
        yajl_gen_config(g, yajl_gen_beautify, 1);
        yajl_gen_config(g, yajl_gen_indent_string, " ");
        yajl_gen_config(g, yajl_gen_print_callback, print, out);
        return g;
}

/* In JSON a '<' can only be in a string, where an escape may stand for it. */
static void print_script(void *ctx, const char *s, size_t n)
{
        while (n) {
                const char *at = memchr(s, '<', n);
                size_t plain = at ? (size_t)(at - s) : n;

                fwrite(s, 1, plain, ctx);
                if (at)
                        fputs("\\u003c", ctx);
                s += plain + (at != NULL);
                n -= plain + (at != NULL);
        }
}

yajl_gen ls_json_begin_script(FILE *out)
{
        yajl_gen g = yajl_gen_alloc(NULL);

        if (g)
                yajl_gen_config(g, yajl_gen_print_callback, print_script, out);
        return g;
}

void ls_json_end(yajl_gen g)
{
        yajl_gen_free(g);
}

void ls_json_key(yajl_gen g, const char *key)
{
        if (key)
                yajl_gen_string(g, (const unsigned char *)key, strlen(key));
}

void ls_json_str(yajl_gen g, const char *key, const char *value)
{
        ls_json_text(g, key, (struct ls_str){ value, (uint32_t)strlen(value) });
}

void ls_json_text(yajl_gen g, const char *key, struct ls_str value)
{
        char *visible = ls_visible(value.s, value.len);

        ls_json_key(g, key);
        yajl_gen_string(g, (const unsigned char *)(visible ? visible : ""), visible ? strlen(visible) : 0);
        free(visible);
}

void ls_json_u64(yajl_gen g, const char *key, uint64_t value)
{
        char text[24];
        int n = snprintf(text, sizeof(text), "%" PRIu64, value);        /* yajl's own integers are signed */

        ls_json_key(g, key);
        yajl_gen_number(g, text, (size_t)n);
}

void ls_json_double(yajl_gen g, const char *key, double value)
{
        char text[64];
        int n = snprintf(text, sizeof(text), "%.6f", value);

        ls_json_key(g, key);
        yajl_gen_number(g, text, (size_t)n);
}

void ls_json_bool(yajl_gen g, const char *key, int value)
{
        ls_json_key(g, key);
        yajl_gen_bool(g, value);
}
