/* The text of a source, as lines, from wherever it can be had. Used by report/view/annotate.c and
 * the terminal browser. */
#ifndef LS_REPORT_MODEL_SOURCE_H
#define LS_REPORT_MODEL_SOURCE_H

#include "formats/profile.h"
#include "report/model/options.h"

enum ls_source_problem {
        LS_SOURCE_OK,
        LS_SOURCE_CHANGED,              /* read, but it is not the file that was recorded: a
                                         * warning */
        LS_SOURCE_UNKNOWN,              /* read, but the trace has no hash to tell whether it is the
                                         * one: a warning */
        LS_SOURCE_WITHHELD,             /* not the file that was recorded, nor readable without
                                         * root's rights */
        LS_SOURCE_NOT_A_FILE,           /* a chunk from a string, whose text is not in the trace */
        LS_SOURCE_BYTECODE,
        LS_SOURCE_UNREADABLE,           /* error says why */
};

struct ls_source_text {
        enum ls_source_problem problem;
        int error;                      /* errno of LS_SOURCE_UNREADABLE */
        char *path;                     /* file that was read, or tried last; NULL = the text is
                                         * from the trace */
        char *bytes;                    /* of the text; NULL = there is none */
        size_t size;
        struct ls_str *lines;           /* line n is lines[n - 1] */
        uint32_t n_lines;
};

/* Looks in --source-dir, then at the recorded path, then in the trace. Returns 0, or -ENOMEM. */
int ls_source_read(const struct ls_profile *p, uint32_t source, const struct ls_report_options *o,
                   struct ls_source_text *ret);
void ls_source_done(struct ls_source_text *t);
/* "[Cannot annotate non-file]"; empty for LS_SOURCE_OK and LS_SOURCE_UNREADABLE. */
const char *ls_source_problem_text(enum ls_source_problem problem);

#endif
