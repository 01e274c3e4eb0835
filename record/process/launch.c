/* Starts the program under the recorder: see launch.h. */
#include "record/process/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "record/process/descriptors.h"

static ssize_t read_all_intr(int fd, void *buf, size_t len)
{
        ssize_t n;

        do
                n = read(fd, buf, len);
        while (n < 0 && errno == EINTR);
        return n;
}

/* In the child. All our descriptors are close-on-exec. */
static void __attribute__((noreturn)) become_program(const struct ls_launch *l, int go, int error)
{
        char c;
        int err;

        if (read_all_intr(go, &c, 1) != 1)
                _exit(0);               /* cancelled, or the recorder is gone: nothing has run */
        /* Yama lets only those above a process read it; the watcher is beside it. Without Yama this
         * says EINVAL. */
        if (l->watcher > 0)
                prctl(PR_SET_PTRACER, (unsigned long)l->watcher, 0, 0, 0);
        sigaction(SIGCHLD, &l->saved->sigchld, NULL);
        sigprocmask(SIG_SETMASK, &l->saved->mask, NULL);
        execvpe(l->argv[0], (char *const *)l->argv, l->env);
        err = errno;
        if (write(error, &err, sizeof(err)) < 0)
                _exit(LS_EXIT_NOEXEC);
        _exit(err == ENOENT ? LS_EXIT_NOCMD : LS_EXIT_NOEXEC);
}

static int make_pipe(int fds[2])
{
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        fds[0] = ls_fd_above_stdio(fds[0]);
        fds[1] = ls_fd_above_stdio(fds[1]);
        return fds[0] < 0 ? fds[0] : fds[1] < 0 ? fds[1] : 0;
}

static void close_pipe(int fds[2])
{
        for (int i = 0; i < 2; i++)
                if (fds[i] >= 0)
                        close(fds[i]);
}

int ls_launch_fork(struct ls_launch *l)
{
        int go[2] = { -1, -1 }, error[2] = { -1, -1 }, err;

        err = make_pipe(go);
        if (err == 0)
                err = make_pipe(error);
        if (err == 0 && (l->pid = fork()) < 0)
                err = -errno;
        if (err < 0) {
                close_pipe(go);
                close_pipe(error);
                return err;
        }
        if (l->pid == 0) {
                close(go[1]);
                become_program(l, go[0], error[1]);
        }
        close(go[0]);
        close(error[1]);
        l->go_fd = go[1];
        l->error_fd = error[0];
        return 0;
}

int ls_launch_exec(struct ls_launch *l)
{
        int err = 0;
        ssize_t n;

        if (write(l->go_fd, "g", 1) != 1)
                err = EPIPE;            /* somebody has killed it already: its status tells */
        close(l->go_fd);
        n = err ? 0 : read_all_intr(l->error_fd, &err, sizeof(err));
        close(l->error_fd);
        if (n != sizeof(err))
                return 0;
        waitpid(l->pid, NULL, 0);
        return err > 0 ? -err : -EIO;
}

void ls_launch_cancel(struct ls_launch *l)
{
        close(l->go_fd);
        close(l->error_fd);
        waitpid(l->pid, NULL, 0);
}
