/* What the user asked of luasample report. Filled by options.c, read by all views. */
#ifndef LS_REPORT_OPTIONS_H
#define LS_REPORT_OPTIONS_H

#include <stdint.h>

#include "cli/command.h"
#include "cli/output.h"
#include "formats/export.h"
#include "report/keys.h"

enum ls_sort { LS_SORT_SELF, LS_SORT_TOTAL, LS_SORT_NAME };

struct ls_time_bound {                  /* one end of --time */
        enum { LS_BOUND_OPEN, LS_BOUND_NS, LS_BOUND_PERCENT } kind;
        uint64_t ns;                    /* from the start */
        double percent;                 /* of the elapsed time */
};

struct ls_report_options {
        const char *input;
        const char *output;             /* NULL = stdout */
        /* view */
        const struct ls_key *by[2];     /* by[1] NULL = one level */
        const char *by_text;            /* as given; NULL = the default */
        int depth;                      /* frames of a stack, at least 1 */
        int split, callees, tree, inverse;
        int annotate, whole_file;
        const char *annotate_what;      /* file or function; NULL = all */
        const char *source_dir[16];
        unsigned n_source_dirs;
        const struct ls_exporter *exporter;     /* --format, NULL = a view */
        int per_thread, experimental;   /* of exporters */
        int json;
        /* look */
        double min;                     /* percent; below 0 = not given */
        int raw, full_path;
        enum ls_sort sort;
        int sort_given;
        enum ls_color_when color;
        int no_pager;
        /* filters; patterns are for fnmatch, NULL = all */
        const char *zone, *vmstate, *process, *thread, *vm, *time_text, *region;
        const char *functions[16], *excludes[16];
        unsigned n_functions, n_excludes;
        struct ls_time_bound from, to;
        unsigned vmstates;              /* bits by enum ls_vmstate; 0 = all */
        int no_regions;
};

extern const struct poptOption ls_filter_option_table[];        /* included by all commands that filter samples */
extern const struct poptOption ls_report_option_table[];

/* Reads the command line of a command whose options are among these tables. Returns 0, else the status to exit with + 1 (help was shown, or an error was said). The
 * strings belong to the process. */
int ls_report_options_read(const struct ls_command *cmd, int argc, const char **argv, struct ls_report_options *ret);

#endif
