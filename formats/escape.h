/* Makes text from a trace fit to be shown: control characters and bytes that are not UTF-8 become
 * visible escapes. Used by formats/label.c, the exporters, cli/ and report/. */
#ifndef LS_FORMATS_ESCAPE_H
#define LS_FORMATS_ESCAPE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Decodes one character of n bytes. Returns its length; 0 = these bytes are not UTF-8 (overlong
 * forms, surrogates and values past U+10FFFF too). */
size_t ls_utf8_decode(const char *s, size_t n, uint32_t *ret_char);

/* A zero-terminated copy, valid UTF-8 without control characters (nor the invisible ones that turn
 * the direction of text): "\n", "\x1b", "\u202e" stand for them. To be freed; NULL = no memory. */
char *ls_visible(const char *s, size_t n);

/* A cell of a CSV table (RFC 4180), which no program takes for a formula: where text begins with =
 * + - @ or ', an apostrophe stands before it. */
void ls_csv_text(FILE *out, const char *text);

/* Formatted text. To be freed; NULL = no memory. */
char *ls_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Columns that visible text takes on a terminal. */
size_t ls_text_columns(const char *visible);
/* Bytes of the longest start of visible text that fits into columns. */
size_t ls_fit(const char *visible, size_t columns);

#endif
