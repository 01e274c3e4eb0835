/* The command line of luasample push: options.c, read by command.c. */
#ifndef LS_PUSH_OPTIONS_H
#define LS_PUSH_OPTIONS_H

#include "cli/command.h"
#include "push/sink.h"
#include "report/model/options.h"

#define LS_PUSH_WORDS 16u               /* headers, labels of samples */

extern const struct poptOption ls_push_option_table[];

struct ls_push_options {
        struct ls_report_options report;
        struct ls_push push;
        const char *label_keys[LS_PUSH_WORDS + 1];      /* labels of samples that are sent, ended by
                                                         * NULL */
        unsigned without;               /* LS_DIM_* that are not */
        const char *headers[LS_PUSH_WORDS + 1];
        uint64_t retries, skip;
        int porcelain, range;           /* range: a time of the store is read */
};

/* Returns LS_GO_ON or the status to exit with. Nothing of a target has been read then. */
int ls_push_options_read(int argc, const char **argv, struct ls_push_options *ret);

#endif
