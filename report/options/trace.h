/* Opens the trace that a command reads. Used by report, dump and info. */
#ifndef LS_REPORT_OPTIONS_TRACE_H
#define LS_REPORT_OPTIONS_TRACE_H

#include "formats/profile.h"

#define LS_DEFAULT_TRACE "luasample.data"

/* Returns 0, or the exit status after it said what is wrong. */
int ls_open_trace(const char *command, const char *path, struct ls_profile **ret);

#endif
