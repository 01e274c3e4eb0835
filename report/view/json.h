/* JSON output with yajl, straight to a file. Used by the views, info and dump. */
#ifndef LS_REPORT_VIEW_JSON_H
#define LS_REPORT_VIEW_JSON_H

#include <stdint.h>
#include <stdio.h>
#include <yajl/yajl_gen.h>

#include "formats/profile.h"

yajl_gen ls_json_begin(FILE *out);      /* NULL = no memory */
/* The same in one line and without '<', so that it can stand in a script element of a page. */
yajl_gen ls_json_begin_script(FILE *out);
void ls_json_end(yajl_gen g);           /* ends the text with a line end, frees g */

/* A name, and then its value. Strings are made visible first (formats/escape.h), so the text is valid UTF-8. */
void ls_json_key(yajl_gen g, const char *key);
void ls_json_str(yajl_gen g, const char *key, const char *value);
void ls_json_text(yajl_gen g, const char *key, struct ls_str value);
void ls_json_u64(yajl_gen g, const char *key, uint64_t value);
void ls_json_double(yajl_gen g, const char *key, double value);
void ls_json_bool(yajl_gen g, const char *key, int value);

#endif
