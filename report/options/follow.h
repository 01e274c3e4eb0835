/* A time of the store that goes on: looked at again and again, in a process that shows it. Used by
 * top. */
#ifndef LS_REPORT_OPTIONS_FOLLOW_H
#define LS_REPORT_OPTIONS_FOLLOW_H

#include "report/model/options.h"

struct ls_profile;

struct ls_follow {
        const char *command;
        int fd;                         /* to the process that finds chunks; -1 = it is gone */
        int slots[2], shown;            /* files of the trace that is shown and of the next one */
        char time[64];                  /* bounds that we have set, as --time has them */
};

/* Called in the process of each look when the chunks are open and none of them is read; NULL =
 * nothing to give up. Returns 0 or -errno. */
extern int (*ls_follow_drop)(void);
/* The same in the process that shows what they have merged. */
extern int (*ls_follow_show)(void);

/* Starts the process that finds chunks, and looks for the first time. Returns 0, or the status to
 * exit with, after a line. */
int ls_follow_start(const char *command, struct ls_follow *f);
/* Merges what the store has now, into a file beside the one that is shown. The bounds of want
 * follow, unless the user has set others. Returns 0 and a trace to be closed, or -errno. */
int ls_follow_look(struct ls_follow *f, struct ls_filter_options *want, struct ls_profile **ret);
/* The trace of the last look is shown, and the one before it is closed. */
void ls_follow_shown(struct ls_follow *f);
void ls_follow_done(struct ls_follow *f);

#endif
