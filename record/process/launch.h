/* Starts the program under the recorder: with the agent preloaded, and otherwise as if a shell had
 * started it. */
#ifndef LS_RECORD_PROCESS_LAUNCH_H
#define LS_RECORD_PROCESS_LAUNCH_H

#include <signal.h>
#include <sys/types.h>

#include "record/process/memory.h"

/* What must be in the program as it was in us before we changed it. */
struct ls_launch_saved {
        sigset_t mask;
        struct sigaction sigchld;
};

struct ls_launch {
        const char *const *argv;
        char *const *env;               /* environ, or with the agent in it */
        const struct ls_launch_saved *saved;
        pid_t watcher;                  /* a process that may read the program's memory, 0 = none */
        pid_t pid;                      /* result */
        int go_fd;                      /* the child waits until something is written here */
        int error_fd;                   /* errno of exec, or end of file when it worked */
};

/* Forks; the child waits before exec, so that the caller can prepare what needs its pid. Returns 0
 * or -errno. */
int ls_launch_fork(struct ls_launch *l);
/* Lets the child exec. Returns 0, or the -errno of exec: then the child is gone and reaped. */
int ls_launch_exec(struct ls_launch *l);
/* Instead of ls_launch_exec: ends the child, which has run nothing. */
void ls_launch_cancel(struct ls_launch *l);

#endif
