/* Reads the options of report, export, tui, top and diff: options.c, and of filters filter.c. */
#ifndef LS_REPORT_OPTIONS_OPTIONS_H
#define LS_REPORT_OPTIONS_OPTIONS_H

#include <stdint.h>

#include "cli/command.h"
#include "report/model/options.h"

extern const struct poptOption ls_filter_option_table[];        /* included by all commands that
                                                                 * filter samples */
extern const struct poptOption ls_report_option_table[];
extern const struct poptOption ls_tui_option_table[];
extern const struct poptOption ls_tui_look_option_table[];      /* of these, what luasample top
                                                                 * takes too */
extern const struct poptOption ls_export_option_table[];

/* Reads the command line of a command whose options are among these tables. Returns LS_GO_ON, else
 * the status to exit with (help was shown, or an error was said). The strings belong to the
 * process. */
int ls_report_options_read(const struct ls_command *cmd, int argc, const char **argv,
                           struct ls_report_options *ret);
/* The same for a command that starts a program: ret_rest gets its words, which end argv. */
int ls_report_options_read_rest(const struct ls_command *cmd, int argc, const char **argv,
                                struct ls_report_options *ret, const char ***ret_rest);

/* Reads a line of filters as the command line has them, "--zone render --vmstate gc", and puts
 * them in the place of those in want, whose strings stay allocated; the event stays when the line
 * names none. Returns 0, or -errno after one line of what is wrong (name: of the command); then
 * want is as before. */
int ls_filter_options_read(const char *name, const char *line, struct ls_filter_options *want);
/* Frees the filters: there are none then, but for the event. */
void ls_filter_options_forget(struct ls_filter_options *want);

/* For commands whose table is their own but includes ls_filter_option_table. Errors are said in
 * the name of the command that ls_options_of was told, which lives as long as the process; the
 * others return 0 or -EINVAL. */
void ls_options_of(const char *name);
int ls_options_value(struct ls_report_options *o, int val,
                     char *arg); /* for each val that popt returns: takes arg */
int ls_options_filters(struct ls_filter_options *want);                 /* after the last */
int ls_options_by(const char *text, struct ls_report_options *o);
int ls_options_percent(const char *option, const char *text, double *ret);
/* The place of text in words, which ends with NULL. */
int ls_options_one_of(const char *option, const char *text, const char *const *words, int *ret);
#define LS_OPTIONS_OWN 64               /* vals of a command's own table are from here on */

/* What options.c and filter.c share. */
/* Vals of popt: of the filters; of reports from the last on. */
enum { LS_VAL_FUNCTION = 1, LS_VAL_EXCLUDE, LS_VAL_REPORT };
/* For these vals of the filters: keeps arg in want. */
int ls_options_filter_value(struct ls_filter_options *want, int val, char *arg);
/* Says what is wrong with the value of an option. Always -EINVAL, so that callers can return it. */
int ls_options_bad(const char *option, const char *value, const char *what);
/* One more of what may come several times. */
int ls_options_add(const char **list, unsigned *n, unsigned max, const char *option, char *value);

#endif
