/* JSON as a stream of bytes, without memory of its own. Used by all that writes JSON: commands,
 * views, the page, and exporters of millions of numbers. The caller keeps to the order of JSON and
 * checks the file for errors. */
#ifndef LS_FORMATS_JSON_H
#define LS_FORMATS_JSON_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "formats/profile.h"

/* A writer: out, and of the next two what is wanted. */
struct ls_js {
        FILE *out;
        unsigned indent;                /* columns of a level, and a value a line; 0 = one line, no
                                         * end */
        int is_script;                  /* within <script>: no '<' in any string */
        int failed;                     /* -ENOMEM for a string; what follows is still sound JSON */
        unsigned depth;                 /* this and what follows: the writer's own */
        int comma;                      /* something stands before the next value */
        int after_key;                  /* a key does */
};

void ls_js_open(struct ls_js *j, char bracket);         /* '{' or '[' */
void ls_js_close(struct ls_js *j, char bracket);        /* '}' or ']' */
void ls_js_key(struct ls_js *j, const char *key);       /* visible text */

void ls_js_u64(struct ls_js *j, uint64_t n);
/* The shortest text that is read back as value; a fixed number of places. null for nan and the
 * like. */
void ls_js_real(struct ls_js *j, double value);
void ls_js_fixed(struct ls_js *j, double value, int places);
void ls_js_minus_one(struct ls_js *j);
void ls_js_null(struct ls_js *j);
void ls_js_bool(struct ls_js *j, int value);
/* n / 1000000 and n / 1000 as decimal fractions: nanoseconds as milliseconds and as microseconds.
 * Exact, and never NaN. */
void ls_js_millionths(struct ls_js *j, uint64_t n);
void ls_js_thousandths(struct ls_js *j, uint64_t n);
/* Arbitrary bytes, made visible (formats/escape.h), so the text is valid UTF-8. */
void ls_js_text(struct ls_js *j, struct ls_str text);
void ls_js_string(struct ls_js *j, const char *text);
/* Valid UTF-8 as it is: tabs stay tabs. */
void ls_js_utf8(struct ls_js *j, const char *text, size_t n);

static inline void ls_js_share(struct ls_js *j, double value)
{
        ls_js_fixed(j, value, 6);
}

/* A key and its value. */
static inline void ls_js_key_open(struct ls_js *j, const char *key, char bracket)
{
        ls_js_key(j, key);
        ls_js_open(j, bracket);
}

static inline void ls_js_key_u64(struct ls_js *j, const char *key, uint64_t n)
{
        ls_js_key(j, key);
        ls_js_u64(j, n);
}

static inline void ls_js_key_share(struct ls_js *j, const char *key, double value)
{
        ls_js_key(j, key);
        ls_js_share(j, value);
}

static inline void ls_js_key_text(struct ls_js *j, const char *key, struct ls_str text)
{
        ls_js_key(j, key);
        ls_js_text(j, text);
}

static inline void ls_js_key_string(struct ls_js *j, const char *key, const char *text)
{
        ls_js_key(j, key);
        ls_js_string(j, text);
}

static inline void ls_js_key_bool(struct ls_js *j, const char *key, int value)
{
        ls_js_key(j, key);
        ls_js_bool(j, value);
}

/* What an exporter that has written with j returns: r, else what went wrong with j. Errors of out
 * are its caller's. */
int ls_js_result(const struct ls_js *j, int r);

#endif
