/* A program that began its own recorder (libsample/api/own.c) waits for it at a socket: see
 * parent.h. */
#include "record/process/parent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/command.h"

static int stderr_fd = -1;              /* while the program hears our errors */

int ls_parent_meet(const char *text)
{
        char *end, line[16];
        long fd = strtol(text, &end, 10);
        int n = snprintf(line, sizeof(line), "%d\n", (int)getpid());

        if (*text < '0' || *text > '9' || *end || fd <= STDERR_FILENO || fd > 1000000 ||
            fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0) {
                ls_error("--parent %s: for programs that begin their own recorder", text);
                return -EINVAL;
        }
        /* it lets us trace it before it says go on */
        if (write((int)fd, line, (size_t)n) != n || read((int)fd, line, 1) != 1)
                exit(LS_EXIT_FAIL);
        stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        dup2((int)fd, STDERR_FILENO);
        close((int)fd);
        return 0;
}

void ls_parent_go_on(void)
{
        static const char ok[] = "ok\n";

        if (stderr_fd < 0)
                return;
        if (write(STDERR_FILENO, ok, sizeof(ok) - 1) != (ssize_t)sizeof(ok) - 1)
                exit(LS_EXIT_FAIL);     /* the program has ended, or given up */
        dup2(stderr_fd, STDERR_FILENO);
        close(stderr_fd);
        stderr_fd = -1;
}
