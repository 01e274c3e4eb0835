/* Filters as text: see filter_text.c. */
#ifndef LS_REPORT_MODEL_FILTER_TEXT_H
#define LS_REPORT_MODEL_FILTER_TEXT_H

#include "report/model/options.h"

/* The filters as the user wrote them: "--zone render --vmstate gc". To be freed; NULL = none or no
 * memory. */
char *ls_filter_text(const struct ls_filter_options *want);
/* The same as a line for ls_filter_options_read, byte for byte. To be freed; empty = no filters;
 * NULL = no memory. */
char *ls_filter_line(const struct ls_filter_options *want);
/* The pattern that matches this text alone. To be freed; NULL = no memory. */
char *ls_filter_literal(const char *text);

#endif
