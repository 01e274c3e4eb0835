/* Starts the worker's processes: see worker.h. Called by worker.c and by all that run a role of
 * serve.c's in a process of its own. */
#include "record/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FDS_MOST 16u
#define FIRST_FD 3

/* Descriptors that are in nobody's way while they are put in order. */
static int lift(const int *fds, unsigned n, int *ret)
{
        for (unsigned i = 0; i < n; i++) {
                ret[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FIRST_FD + (int)FDS_MOST);
                if (ret[i] < 0) {
                        int err = -errno;

                        while (i)
                                close(ret[--i]);
                        return err;
                }
        }
        return 0;
}

static int fill_actions(posix_spawn_file_actions_t *a, const int *high, unsigned n)
{
        int err = posix_spawn_file_actions_addopen(a, 0, "/dev/null", O_RDWR, 0);

        for (int fd = 1; fd < FIRST_FD && !err; fd++)
                err = posix_spawn_file_actions_adddup2(a, 0, fd);
        for (unsigned i = 0; i < n && !err; i++)
                err = posix_spawn_file_actions_adddup2(a, high[i], FIRST_FD + (int)i);
        return err ? err : posix_spawn_file_actions_addclosefrom_np(a, FIRST_FD + (int)n);
}

/* No signal is blocked or ignored there, and the terminal's do not reach it. */
static int fill_attributes(posix_spawnattr_t *a)
{
        sigset_t none, all;
        int err;

        sigemptyset(&none);
        sigfillset(&all);
        err = posix_spawnattr_setsigmask(a, &none);
        if (!err)
                err = posix_spawnattr_setsigdefault(a, &all);
        return err ? err
                   : posix_spawnattr_setflags(a, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                         POSIX_SPAWN_SETSID);
}

int ls_worker_end(pid_t pid, int ms, struct rusage *ret_used)
{
        const struct timespec moment = { 0, 1000000 };
        pid_t r;

        kill(pid, SIGKILL);
        while ((r = wait4(pid, NULL, WNOHANG, ret_used)) == 0 && ms-- > 0)
                nanosleep(&moment, NULL);
        return r == pid;
}

pid_t ls_worker_spawn(const char *const argv[], char *const env[], const int *fds, unsigned n)
{
        char *const none[] = { NULL };
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        int high[FDS_MOST], err;
        pid_t pid = 0;

        err = n > FDS_MOST ? -E2BIG : lift(fds, n, high);
        if (err < 0)
                return err;
        posix_spawn_file_actions_init(&actions);
        posix_spawnattr_init(&attributes);
        err = fill_actions(&actions, high, n);
        if (!err)
                err = fill_attributes(&attributes);
        if (!err)
                err = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes,
                                  (char *const *)(uintptr_t)argv, env ? env : none);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
        for (unsigned i = 0; i < n; i++)
                close(high[i]);
        return err ? -err : pid;
}
