/* A time of a service in the daemon's store, in the place of a trace's file. Used by report,
 * export, tui and diff. */
#ifndef LS_REPORT_OPTIONS_RANGE_H
#define LS_REPORT_OPTIONS_RANGE_H

#include "cli/command.h"
#include "report/model/options.h"

extern const struct poptOption ls_range_option_table[];         /* --service, --since, --until,
                                                                 * --store */

/* Whether the command line names one. */
int ls_range_wanted(void);
/* Where it names no time: from then on ("10m"). */
void ls_range_recent(const char *since);
/* Finds the time that the command line names, or, with shift, the same so long before ("24h").
 * *ret_name stands for it wherever a trace is named, and lives as long as the process. Returns 0,
 * or the status to exit with, after a line. */
int ls_range_open(const char *command, const char *shift, const char **ret_name);
/* Reads all that were found. Returns 0, or the status to exit with, after a line. */
int ls_range_read(const char *command);
/* For report, export and tui: the same, and o reads it. input: what the command line names with -i,
 * or NULL. */
int ls_range_use(struct ls_report_options *o, const char *input);
/* The bounds of a name of ls_range_open; what is no such name leaves them as they are. */
void ls_range_bounds(const char *name, struct ls_filter_options *want);
/* When such a name begins and ends, CLOCK_REALTIME; 0 = as what is there does, or not yet. */
void ls_range_times(const char *name, uint64_t *ret_from_ns, uint64_t *ret_to_ns);
/* The open file behind a name; -1 = it is no such name. */
int ls_range_fd(const char *name);

#endif
