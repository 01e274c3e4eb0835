/* Makes text from a trace fit to be shown. Used by formats/label.c, the exporters, cli/ and
 * report/. */
#include "formats/escape.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

size_t ls_utf8_decode(const char *s, size_t n, uint32_t *ret_char)
{
        static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
        const unsigned char *b = (const unsigned char *)s;
        size_t len;
        uint32_t c;

        if (n == 0)
                return 0;
        if (b[0] < 0x80) {
                *ret_char = b[0];
                return 1;
        }
        len = b[0] >= 0xf0 && b[0] < 0xf8   ? 4
              : b[0] >= 0xe0 && b[0] < 0xf0 ? 3
              : b[0] >= 0xc0 && b[0] < 0xe0 ? 2
                                            : 0;
        if (len == 0 || len > n)
                return 0;
        c = b[0] & (0x7fu >> len);
        for (size_t i = 1; i < len; i++) {
                if ((b[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (b[i] & 0x3f);
        }
        if (c < smallest[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
                return 0;
        *ret_char = c;
        return len;
}

/* Characters that act on a terminal or hide: C0, DEL, C1, line separators, direction marks,
 * tags. */
static int is_hidden(uint32_t c)
{
        return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) ||
               (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
               (c >= 0xe0000 && c <= 0xe007f);
}

char *ls_visible(const char *s, size_t n)
{
        char *out, *p;

        if (n > (SIZE_MAX - 1) / 10)
                return NULL;
        for (size_t i = 0; i < n; i++) {        /* most text is plain: no wider copy for it */
                if ((unsigned char)s[i] < 0x20 || (unsigned char)s[i] >= 0x7f)
                        goto wide;
        }
        out = malloc(n + 1);
        if (out) {
                if (n)
                        memcpy(out, s, n);
                out[n] = '\0';
        }
        return out;
wide:
        p = out = malloc(n * 10 + 1);
        if (!out)
                return NULL;
        while (n > 0) {
                uint32_t c = 0;
                size_t len = ls_utf8_decode(s, n, &c);

                if (len == 0) {
                        p += sprintf(p, "\\x%02x", (unsigned char)*s);
                        len = 1;
                } else if (c == '\n' || c == '\t' || c == '\r') {
                        p += sprintf(p, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
                } else if (is_hidden(c)) {
                        p += sprintf(p, c < 0x80 ? "\\x%02x" : "\\u%04x", c);
                } else {
                        memcpy(p, s, len);
                        p += len;
                }
                s += len;
                n -= len;
        }
        *p = '\0';
        return out;
}

static size_t char_columns(uint32_t c)
{
        int w = c < 0x80 ? 1 : wcwidth((wchar_t)c);

        return w < 0 ? 1 : (size_t)w;   /* the C locale knows no width beyond ASCII */
}

size_t ls_text_columns(const char *visible)
{
        size_t n = strlen(visible), columns = 0;

        while (n > 0) {
                uint32_t c = 0;
                size_t len = ls_utf8_decode(visible, n, &c);

                if (len == 0)
                        len = 1;
                columns += char_columns(c);
                visible += len;
                n -= len;
        }
        return columns;
}

size_t ls_fit(const char *visible, size_t columns)
{
        size_t n = strlen(visible), at = 0;

        while (at < n) {
                uint32_t c = 0;
                size_t len = ls_utf8_decode(visible + at, n - at, &c), w;

                if (len == 0)
                        len = 1;
                w = char_columns(c);
                if (w > columns)
                        break;
                columns -= w;
                at += len;
        }
        return at;
}

char *ls_print(const char *fmt, ...)
{
        char *text;
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vasprintf(&text, fmt, ap);
        va_end(ap);
        return n < 0 ? NULL : text;
}

void ls_csv_text(FILE *out, const char *text)
{
        int is_quoted = text[strcspn(text, ",;\"\r\n")] != '\0';

        if (is_quoted)
                fputc_unlocked('"', out);
        if (*text && strchr("=+-@'", *text))
                fputc_unlocked('\'', out);
        for (; *text; text++) {
                if (*text == '"')
                        fputc_unlocked('"', out);
                fputc_unlocked(*text, out);
        }
        if (is_quoted)
                fputc_unlocked('"', out);
}
