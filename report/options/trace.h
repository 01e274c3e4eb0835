/* Opens the trace that a command reads. Used by report, dump and info. */
#ifndef LS_REPORT_OPTIONS_TRACE_H
#define LS_REPORT_OPTIONS_TRACE_H

#include "formats/profile.h"

#define LS_DEFAULT_TRACE "luasample.data"

/* Before the first of several is read: where rights are given up then, all are opened. Returns 0 or
 * -ENOMEM. */
int ls_open_traces_first(const char *const *paths, size_t n);
/* Returns 0, or the exit status after it said what is wrong. */
int ls_open_trace(const char *command, const char *path, struct ls_profile **ret);

#endif
