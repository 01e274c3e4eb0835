/* The coverage of files as a page for people. Called by command.c. */
#ifndef LS_REPORT_COVERAGE_HTML_H
#define LS_REPORT_COVERAGE_HTML_H

#include <stdio.h>

#include "report/coverage/data.h"

/* One file that loads nothing. The caller checks out for errors. */
void ls_coverage_html(FILE *out, const struct ls_coverage *c);

#endif
