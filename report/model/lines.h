/* Ticks by line of each source. Made for the listings: report/view/annotate.c and the terminal
 * browser. */
#ifndef LS_REPORT_MODEL_LINES_H
#define LS_REPORT_MODEL_LINES_H

#include "report/model/report.h"

struct ls_line {
        uint32_t source, line;          /* line 0 = in this source, it is not known where */
        int stripped;                   /* line 0 of a function that has no lines */
        uint64_t ticks;                 /* of the line, and of the builtins and C functions that it
                                         * called */
        uint64_t total;                 /* while it was on the stack: with all that it called; 0 of
                                         * line 0 */
};

struct ls_line_file {                           /* the lines of one source */
        uint32_t source;
        size_t first, n;                /* in lines[] */
        uint64_t ticks, most;           /* sum, and the hottest line */
        uint64_t not_recorded;          /* ticks whose line was not recorded */
        uint64_t stripped;              /* ticks in functions without line information */
        uint32_t from, to;              /* lines wanted: of one function; 1 .. UINT32_MAX = all */
};

struct ls_lines {
        const struct ls_report *r;
        struct ls_line *lines;
        size_t n_lines;
        struct ls_line_file *files;
        size_t n_files;
        uint8_t *wanted;                /* [n_functions] for --annotate=FUNCTION; NULL = all */
};

/* what: the files or the functions that it names, as --annotate=WHAT; NULL = all. Returns 0,
 * -ENOENT when nothing is called so, or -errno. */
int ls_lines_init(struct ls_lines *l, const struct ls_report *r, const char *what);
void ls_lines_done(struct ls_lines *l);

/* A line of source as shown: tabs are eight columns, as Lua programmers have them. To be freed;
 * NULL = no memory. */
char *ls_line_visible(struct ls_str line);

#endif
