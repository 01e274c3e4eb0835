/* A report, from its options to its output: see report.c. */
#ifndef LS_REPORT_REPORT_H
#define LS_REPORT_REPORT_H

#include "report/model/options.h"

/* Everything after the options. Returns the exit status. */
int ls_report_run(const struct ls_report_options *o);

#endif
