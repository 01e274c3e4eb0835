/* Output of a command's text: stdout, a pager, or a file that appears only when it is whole. Used
 * by the commands of report/. */
#ifndef LS_CLI_OUTPUT_H
#define LS_CLI_OUTPUT_H

#include <stdio.h>

enum ls_color_when { LS_COLOR_AUTO, LS_COLOR_ALWAYS, LS_COLOR_NEVER };

struct ls_output {
        FILE *file;             /* write here */
        int color;              /* 1 = escape sequences are wanted */
        unsigned width;         /* columns of the terminal; 0 = no limit */
        /* private */
        const char *path;       /* final name of -o, NULL = stdout */
        char *tmp;
        int kept;               /* another process has it */
};

/* "auto", "always" or "never". Returns 0 or -EINVAL. */
int ls_parse_color(const char *text, enum ls_color_when *ret);

/* path: NULL or "-" = stdout, through the pager when that is a terminal and use_pager is set.
 * Returns 0 or -errno. */
int ls_output_open(struct ls_output *o, const char *path, enum ls_color_when color, int use_pager);
/* Ends it: the file of -o gets its name now. With failed set, or after a failed write, the file of
 * before stays. Returns 0 or -errno; stdout is left to ls_finish_stdout. */
int ls_output_close(struct ls_output *o, int failed);

#endif
