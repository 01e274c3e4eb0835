/* A report, from its options to its output: see report.c. */
#ifndef LS_REPORT_REPORT_H
#define LS_REPORT_REPORT_H

#include "formats/profile.h"
#include "report/model/options.h"

/* Everything after the options. Returns the exit status. */
int ls_report_run(const struct ls_report_options *o);
/* The same of a trace that is open. */
int ls_report_run_on(const struct ls_report_options *o, struct ls_profile *p);

#endif
