/* The coverage of files in the formats of other tools, and as a table. Called by command.c. The
 * caller checks out for errors. */
#ifndef LS_REPORT_COVERAGE_WRITE_H
#define LS_REPORT_COVERAGE_WRITE_H

#include <stdio.h>

#include "report/coverage/data.h"

/* For people: a row for each file, and the sum. width: of the terminal, 0 = no limit. */
void ls_coverage_text(FILE *out, const struct ls_coverage *c, unsigned width);
/* geninfo's tracefile: genhtml, Codecov, Coveralls and editors read it. */
void ls_coverage_lcov(FILE *out, const struct ls_coverage *c);
/* luacov.stats.out: luacov's reporters read it. */
void ls_coverage_luacov(FILE *out, const struct ls_coverage *c);
/* Cobertura's XML, for GitLab, Jenkins and others. */
void ls_coverage_cobertura(FILE *out, const struct ls_coverage *c);

/* Text in XML and HTML. */
void ls_coverage_xml(FILE *out, const char *s);
/* The path from here, where it is below. */
const char *ls_coverage_short_path(const char *path);
/* Percent of what there is; of nothing, 100. */
double ls_coverage_percent(size_t hit, size_t all);

#endif
