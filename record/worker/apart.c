/* See apart.h. */
#include "record/worker/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/worker/confine.h"
#include "record/worker/worker.h"

#define END_MS 100

/* Returns the status to exit with. */
static int work(int (*fn)(void *ctx), void *ctx)
{
        int null = open("/dev/null", O_RDWR), err;
        struct ls_rights rights;

        for (int fd = 0; fd <= STDERR_FILENO; fd++)
                if (null < 0 || dup2(null, fd) < 0)
                        return EBADF;
        ls_rights_nobody(&rights);
        err = ls_confine(&rights, -1, LS_CONFINE_FILES, 1);
        if (!err)
                err = fn(ctx);
        return err < 0 ? -err & 0xff : 0;
}

int ls_apart(int (*fn)(void *ctx), void *ctx, int ms)
{
        const struct timespec moment = { 0, 200000 };
        pid_t pid = fork(), r;
        int status;

        if (pid < 0)
                return -errno;
        if (pid == 0)
                _exit(work(fn, ctx));
        for (long i = 0; (r = waitpid(pid, &status, WNOHANG)) == 0 && i < 5L * ms; i++)
                nanosleep(&moment, NULL);
        if (r == 0) {
                ls_worker_end(pid, END_MS, NULL);
                return -ETIME;
        }
        return r < 0 || !WIFEXITED(status) ? -EPIPE : -WEXITSTATUS(status);
}

int ls_apart_drop(void)
{
        struct ls_rights rights;

        ls_rights_nobody(&rights);
        return ls_confine(&rights, -1, LS_CONFINE_READER, 1);
}

int ls_apart_view(void)
{
        struct ls_rights rights;

        ls_rights_nobody(&rights);
        return ls_confine(&rights, -1, LS_CONFINE_VIEW, 1);
}
