/* The pager of commands with long output, as git has it. Used by cli/output.c; ended by
 * ls_finish_stdout. */
#include "cli/pager.h"
#include "cli/command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t pager_pid;

static const char *choose(void)
{
        const char *pager = getenv("LUASAMPLE_PAGER");

        if (!pager)
                pager = getenv("PAGER");
        if (!pager)
                pager = "less";
        if (!*pager || !strcmp(pager, "cat"))
                return NULL;
        return pager;
}

static void run_pager(const char *pager, const int fds[2])
{
        dup2(fds[0], STDIN_FILENO);
        close(fds[0]);
        close(fds[1]);
        setenv("LESS", "FRX", 0);
        setenv("LV", "-c", 0);
        execl("/bin/sh", "sh", "-c", pager, (char *)NULL);
        _exit(127);
}

void ls_pager_quiet(void)
{
        signal(SIGINT, SIG_IGN);
        signal(SIGQUIT, SIG_IGN);
        signal(SIGPIPE, SIG_IGN);
}

int ls_pager_start(void)
{
        const char *pager = choose();
        const char *term = getenv("TERM");
        int fds[2];

        if (!pager || pager_pid || !isatty(STDOUT_FILENO) || (term && !strcmp(term, "dumb")))
                return 0;
        fflush(stdout);
        if (pipe(fds) < 0)
                return 0;
        pager_pid = fork();
        if (pager_pid == 0)
                run_pager(pager, fds);
        close(fds[0]);
        if (pager_pid < 0) {
                pager_pid = 0;
                close(fds[1]);
                return 0;
        }
        dup2(fds[1], STDOUT_FILENO);
        close(fds[1]);
        ls_pager_quiet();
        return 1;
}

int ls_pager_finish(void)
{
        int status;

        if (!pager_pid)
                return 0;
        fflush(stdout);
        close(STDOUT_FILENO);
        while (waitpid(pager_pid, &status, 0) < 0 && errno == EINTR)
                ;
        pager_pid = 0;
        return 1;
}
