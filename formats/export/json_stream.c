/* JSON as a stream of bytes. Used by the exporters that write JSON. */
#include "formats/export/json_stream.h"
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

static void before_value(struct ls_js *j)
{
        if (j->comma)
                putc_unlocked(',', j->out);
        j->comma = 1;
}

void ls_js_open(struct ls_js *j, char bracket)
{
        before_value(j);
        putc_unlocked(bracket, j->out);
        j->comma = 0;
}

void ls_js_close(struct ls_js *j, char bracket)
{
        putc_unlocked(bracket, j->out);
        j->comma = 1;
}

void ls_js_key(struct ls_js *j, const char *key)
{
        before_value(j);
        putc_unlocked('"', j->out);
        put(j, key, strlen(key));
        put(j, "\":", 2);
        j->comma = 0;
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

void ls_js_text(struct ls_js *j, struct ls_str text)
{
        char *visible = ls_visible(text.s, text.len);

        before_value(j);
        if (!visible)
                j->failed = -ENOMEM;
        putc_unlocked('"', j->out);
        for (const char *at = visible ? visible : ""; *at;) {
                size_t plain = strcspn(at, "\"\\");

                put(j, at, plain);
                at += plain;
                if (*at) {
                        putc_unlocked('\\', j->out);
                        putc_unlocked(*at++, j->out);
                }
        }
        putc_unlocked('"', j->out);
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
