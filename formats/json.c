/* JSON as a stream of bytes. Used by all that writes JSON. */
#include "formats/json.h"
#include "formats/escape.h"
#include "formats/real.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void put(struct ls_js *j, const char *text, size_t n)
{
        fwrite_unlocked(text, 1, n, j->out);
}

/* Where values have lines of their own. */
static void put_line(struct ls_js *j)
{
        if (j->indent)
                putc_unlocked('\n', j->out);
}

static void put_indent(struct ls_js *j)
{
        for (unsigned i = 0; i < j->depth * j->indent; i++)
                putc_unlocked(' ', j->out);
}

static void before_value(struct ls_js *j)
{
        if (j->comma) {
                putc_unlocked(',', j->out);
                put_line(j);
        }
        if (!j->after_key)
                put_indent(j);
        j->after_key = 0;
        j->comma = 1;
}

void ls_js_open(struct ls_js *j, char bracket)
{
        before_value(j);
        putc_unlocked(bracket, j->out);
        put_line(j);
        j->depth++;
        j->comma = 0;
}

void ls_js_close(struct ls_js *j, char bracket)
{
        j->depth--;
        put_line(j);
        put_indent(j);
        putc_unlocked(bracket, j->out);
        if (!j->depth)
                put_line(j);
        j->comma = 1;
}

/* What a string cannot have as it is. */
static int is_escaped(const struct ls_js *j, unsigned char c)
{
        return c < 0x20 || c == '"' || c == '\\' || (c == '<' && j->is_script);
}

static void put_quoted(struct ls_js *j, const char *text, size_t n)
{
        const char *end = text + n;

        putc_unlocked('"', j->out);
        while (text < end) {
                const char *plain = text;

                while (text < end && !is_escaped(j, (unsigned char)*text))
                        text++;
                put(j, plain, (size_t)(text - plain));
                if (text == end)
                        break;
                if (*text == '"' || *text == '\\')
                        fprintf(j->out, "\\%c", *text);
                else if (*text == '\t')
                        put(j, "\\t", 2);
                else
                        fprintf(j->out, "\\u%04x", (unsigned)*text);
                text++;
        }
        putc_unlocked('"', j->out);
}

void ls_js_key(struct ls_js *j, const char *key)
{
        before_value(j);
        put_quoted(j, key, strlen(key));
        put(j, ": ", j->indent ? 2 : 1);
        j->comma = 0;
        j->after_key = 1;
}

static void put_u64(struct ls_js *j, uint64_t n)
{
        char digits[20];
        size_t at = sizeof(digits);

        do {
                digits[--at] = (char)('0' + n % 10);
                n /= 10;
        } while (n);
        put(j, digits + at, sizeof(digits) - at);
}

void ls_js_u64(struct ls_js *j, uint64_t n)
{
        before_value(j);
        put_u64(j, n);
}

void ls_js_real(struct ls_js *j, double value)
{
        char text[LS_REAL_TEXT];

        if (!isfinite(value)) {
                ls_js_null(j);
                return;
        }
        before_value(j);
        ls_real_text(value, text);
        put(j, text, strlen(text));
}

void ls_js_fixed(struct ls_js *j, double value, int places)
{
        if (!isfinite(value)) {
                ls_js_null(j);
                return;
        }
        before_value(j);
        fprintf(j->out, "%.*f", places, value);
}

void ls_js_minus_one(struct ls_js *j)
{
        before_value(j);
        put(j, "-1", 2);
}

void ls_js_null(struct ls_js *j)
{
        before_value(j);
        put(j, "null", 4);
}

void ls_js_bool(struct ls_js *j, int value)
{
        before_value(j);
        put(j, value ? "true" : "false", value ? 4 : 5);
}

/* n / 10^places, without zeros at the end. */
static void put_fraction(struct ls_js *j, uint64_t n, unsigned places)
{
        uint64_t unit = 1;
        char digits[20];
        size_t len = places;

        for (unsigned i = 0; i < places; i++)
                unit *= 10;
        before_value(j);
        put_u64(j, n / unit);
        n %= unit;
        if (!n)
                return;
        for (unsigned i = places; i-- > 0; n /= 10)
                digits[i] = (char)('0' + n % 10);
        while (digits[len - 1] == '0')
                len--;
        putc_unlocked('.', j->out);
        put(j, digits, len);
}

void ls_js_millionths(struct ls_js *j, uint64_t n)
{
        put_fraction(j, n, 6);
}

void ls_js_thousandths(struct ls_js *j, uint64_t n)
{
        put_fraction(j, n, 3);
}

void ls_js_utf8(struct ls_js *j, const char *text, size_t n)
{
        before_value(j);
        put_quoted(j, text, n);
}

void ls_js_text(struct ls_js *j, struct ls_str text)
{
        char *visible = ls_visible(text.s, text.len);

        if (!visible)
                j->failed = -ENOMEM;
        ls_js_utf8(j, visible ? visible : "", visible ? strlen(visible) : 0);
        free(visible);
}

void ls_js_string(struct ls_js *j, const char *text)
{
        ls_js_text(j, (struct ls_str){ text, (uint32_t)strlen(text) });
}

int ls_js_result(const struct ls_js *j, int r)
{
        return ferror(j->out) ? 0 : r ? r : j->failed;
}
