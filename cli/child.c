/* Begins a child: see child.h. */
#include "cli/child.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli/command.h"

static int limit(const struct ls_child *c)
{
        const struct rlimit cpu = { c->cpu_s, c->cpu_s + 1 };   /* a signal first that says why */
        const struct rlimit memory = { c->memory, c->memory }, file = { c->file, c->file };

        int failed = c->cpu_s && setrlimit(RLIMIT_CPU, &cpu) < 0;

        failed |= c->memory && setrlimit(RLIMIT_AS, &memory) < 0;
        failed |= c->file && setrlimit(RLIMIT_FSIZE, &file) < 0;
        failed |= c->nice && setpriority(PRIO_PROCESS, 0, c->nice) < 0;
        return failed ? -1 : 0;
}

static int open_stdio(const struct ls_child *c)
{
        const int from[] = { c->in, c->out, c->err };
        int null = open("/dev/null", O_RDWR), failed = null < 0;

        for (int fd = 0; fd <= STDERR_FILENO; fd++)
                failed |= dup2(from[fd] ? from[fd] : null, fd) < 0;
        if (null > STDERR_FILENO)
                close(null);
        return failed ? -1 : 0;
}

void ls_child_become(const struct ls_child *c)
{
        sigset_t none;

        setsid();
        sigemptyset(&none);
        if (!c->keeps_mask)
                sigprocmask(SIG_SETMASK, &none, NULL);
        prctl(PR_SET_PDEATHSIG, c->end_signal);
        if (getppid() != c->parent)     /* it has ended before it could be seen */
                _exit(LS_EXIT_FAIL);
        if (limit(c) < 0 || open_stdio(c) < 0)
                _exit(LS_EXIT_FAIL);
        execve(c->path ? c->path : "/proc/self/exe", (char *const *)(uintptr_t)c->words,
               c->env ? c->env : environ);
        _exit(LS_EXIT_NOEXEC);
}
