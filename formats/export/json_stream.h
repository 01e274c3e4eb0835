/* JSON as a stream of bytes, without line ends and without memory of its own, for exports of millions of numbers, which cost
 * a fifth of what they cost with yajl. Used by the exporters of samples in time; the views of report/ use yajl
 * (report/view/json.h). The caller keeps to the order of JSON and checks the file for errors. */
#ifndef LS_FORMATS_EXPORT_JSON_STREAM_H
#define LS_FORMATS_EXPORT_JSON_STREAM_H

#include <stdint.h>
#include <stdio.h>

#include "formats/profile.h"

struct ls_js {
        FILE *out;
        int comma;                      /* something stands before the next value */
        int failed;                     /* -ENOMEM while a string was made visible; what follows is still sound JSON */
};

void ls_js_open(struct ls_js *j, char bracket);         /* '{' or '[' */
void ls_js_close(struct ls_js *j, char bracket);        /* '}' or ']' */
void ls_js_key(struct ls_js *j, const char *key);       /* plain text of ours */

void ls_js_u64(struct ls_js *j, uint64_t n);
/* null for what JSON has no number for. */
void ls_js_real(struct ls_js *j, double value);
void ls_js_minus_one(struct ls_js *j);
void ls_js_null(struct ls_js *j);
void ls_js_bool(struct ls_js *j, int value);
/* n / 1000000 and n / 1000 as decimal fractions: nanoseconds as milliseconds and as microseconds. Exact, and never NaN. */
void ls_js_millionths(struct ls_js *j, uint64_t n);
void ls_js_thousandths(struct ls_js *j, uint64_t n);
/* Arbitrary bytes, made visible (formats/escape.h), so the text is valid UTF-8. */
void ls_js_text(struct ls_js *j, struct ls_str text);
void ls_js_string(struct ls_js *j, const char *text);

/* A key and its value. */
static inline void ls_js_key_u64(struct ls_js *j, const char *key, uint64_t n)
{
        ls_js_key(j, key);
        ls_js_u64(j, n);
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

/* What an exporter that has written with j returns: r, else what went wrong with j. Errors of out are its caller's. */
int ls_js_result(const struct ls_js *j, int r);

static inline void ls_js_key_open(struct ls_js *j, const char *key, char bracket)
{
        ls_js_key(j, key);
        ls_js_open(j, bracket);
}

#endif
