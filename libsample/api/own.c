/* A recorder of the program's own, where nobody records it: luasample.start begins `luasample
 * record -p` of this process, and luasample.stop ends it. The program must not notice: the recorder
 * is no child of its, has none of its descriptors but stderr, and the process in between sends no
 * SIGCHLD. Normal context; called by api/api.c, api/module.c, and by luasample.lua through the
 * FFI. */

#include "libsample/api/own.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/wire/attach.h"
#include "libsample/agent.h"
#include "libsample/attach/attached.h"
#include "libsample/handler/clock.h"
#include "libsample/libc/real.h"
#include "libsample/old_libc.h"
#include "libsample/recording/preload.h"

#define WORDS_MOST 64u
#define MEETS_MS 10000 /* for the recorder to say who it is: it is only loaded meanwhile */
#define RECORDS_MS 60000                /* to be at work, and to end */
#define PARENT_FD 3
#define PARENT_FD_TEXT "3"

static struct {
        atomic_int busy;                /* process of which a thread begins or ends one; 0 = none */
        atomic_int pid;                 /* of the recorder, 0 = none */
        atomic_int begun_by;            /* process that did that: a child that it forks is recorded
                                         * too, but ends none */
        char trace[PATH_MAX];           /* of it, or of the last one; "" = there was none */
} own;

static int is_program(const char *path)
{
        struct stat st;

        return ls_stat(AT_FDCWD, path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static int find_in_path(char path[PATH_MAX])
{
        const char *dir = secure_getenv("PATH");

        for (size_t n; dir && *dir; dir += n + (dir[n] == ':')) {
                n = strcspn(dir, ":");
                if (*dir == '/' &&
                    snprintf(path, PATH_MAX, "%.*s/luasample", (int)n, dir) < PATH_MAX &&
                    is_program(path))
                        return 0;
        }
        return -ENOENT;
}

/* $LUASAMPLE; beside this library, where it was built and where it was installed; in PATH. */
static int find_program(char path[PATH_MAX])
{
        static const char *const beside[] = { "../luasample", "../../bin/luasample",
                                              "../../../bin/luasample" };
        const char *named = secure_getenv("LUASAMPLE"), *library = ls_preload.library,
                   *slash = strrchr(library, '/');

        if (named)
                return snprintf(path, PATH_MAX, "%s", named) < PATH_MAX && *named == '/' &&
                                       is_program(named)
                               ? 0
                               : -ENOENT;
        for (unsigned i = 0; slash && i < sizeof beside / sizeof *beside; i++)
                if (snprintf(path, PATH_MAX, "%.*s/%s", (int)(slash - library), library,
                             beside[i]) < PATH_MAX &&
                    is_program(path))
                        return 0;
        return find_in_path(path);
}

/* In the process that becomes the recorder: descriptors, signals and session of its own. Only
 * system calls from here on. */
static void become(const char *program, const char **words, int parent)
{
        struct sigaction old, byself = { .sa_handler = SIG_DFL };
        sigset_t none;
        int null;

        for (int sig = 1; sig < NSIG; sig++)    /* the program's handlers are not for here; what it
                                                 * ignores stays so */
                if (sigaction(sig, NULL, &old) == 0 && old.sa_handler != SIG_IGN &&
                    old.sa_handler != SIG_DFL)
                        sigaction(sig, &byself, NULL);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        syscall(SYS_setsid);
        if (parent == PARENT_FD)
                ls_fcntl(parent, F_SETFD, 0);
        else
                syscall(SYS_dup2, parent, PARENT_FD);
        null = open("/dev/null", O_RDWR);       /* it may be one of the three, where the program has
                                                 * closed them */
        syscall(SYS_dup2, null, STDIN_FILENO);
        syscall(SYS_dup2, null, STDOUT_FILENO);
        if (syscall(LS_SYS_CLOSE_RANGE, PARENT_FD + 1, ~0u, 0))
                for (int fd = PARENT_FD + 1; fd < 4096; fd++)
                        syscall(SYS_close, fd);
        syscall(SYS_execve, program, words, environ);
}

/* Twice: the recorder's parent has ended when it begins, and the one in between ends without a
 * signal to this process, whose own waits do not see it. Not the C library's fork: handlers of the
 * program's are for children of its own. */
static int spawn(const char *program, const char **words, int parent)
{
        sigset_t all, mask;
        long child;
        int status;

        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &mask);
        child = syscall(SYS_clone, 0, 0, 0, 0, 0);
        if (child == 0) {
                if (syscall(SYS_clone, 0, 0, 0, 0, 0) == 0)
                        become(program, words, parent);
                syscall(SYS_exit_group, 0);
        }
        if (child > 0)
                syscall(SYS_wait4, child, &status, __WCLONE, NULL);
        status = child < 0 ? -errno : 0;
        sigprocmask(SIG_SETMASK, &mask, NULL);
        return status;
}

/* What the recorder says, up to a line's end or until it has closed the socket. Returns the length,
 * or -ETIMEDOUT. */
static int hear(int fd, int line, int patience_ms, char *text, size_t size)
{
        uint64_t until = ls_now_ns() + (uint64_t)patience_ms * 1000000u;
        size_t n = 0;

        while (n + 1 < size && !(line && n && text[n - 1] == '\n')) {
                uint64_t now = ls_now_ns();
                struct pollfd p = { .fd = fd, .events = POLLIN };
                ssize_t got;

                if (now >= until)
                        return -ETIMEDOUT;
                if (poll(&p, 1, (int)((until - now) / 1000000u) + 1) <= 0)
                        continue;
                got = read(fd, text + n, line ? 1 : size - 1 - n);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got <= 0)
                        break;
                n += (size_t)got;
        }
        text[n] = 0;
        return (int)n;
}

/* Recorder and program speak once: it says its number; it may trace this process then, and says
 * what went wrong, or "ok". */
static int meet(int fd, char *why, size_t size)
{
        char text[4096];
        int n = hear(fd, 1, MEETS_MS, text, sizeof text), pid = n > 0 ? atoi(text) : 0, ok;

        if (pid <= 0) {
                snprintf(why, size, "the recorder does not begin");
                return n < 0 ? n : -ECHILD;
        }
        prctl(PR_SET_PTRACER, (unsigned long)pid, 0, 0, 0);
        n = send(fd, "\n", 1, MSG_NOSIGNAL) == 1 ? hear(fd, 0, RECORDS_MS, text, sizeof text)
                                                 : -EPIPE;
        prctl(PR_SET_PTRACER, 0, 0, 0, 0);
        ok = n >= 3 && !strcmp(text + n - 3, "ok\n");
        if (ok) {
                atomic_store(&own.begun_by, (int)getpid());
                atomic_store(&own.pid, pid);
                return 1;
        }
        text[strcspn(text, "\n")] = 0;
        snprintf(why, size, "%s", n < 0 || !*text ? "the recorder has ended" :
                 !strncmp(text, "luasample: ", 11) ? text + 11 : text);
        return n == -ETIMEDOUT ? n : -EPERM;
}

/* "record" and its words; room for WORDS_MOST. Returns 0 or -E2BIG. */
static int fill_words(const char **words, const char *file, const char *const *options,
                      const char *pid)
{
        static const char *const first[] = { "luasample",    "record", "--parent",
                                             PARENT_FD_TEXT, "-q",     "-p" };
        unsigned n = sizeof first / sizeof *first;

        memcpy(words, first, sizeof first);
        words[n++] = pid;
        words[n++] = "-o";
        words[n++] = file;
        for (; options && *options; options++) {
                if (n + 1 >= WORDS_MOST)
                        return -E2BIG;
                words[n++] = *options;
        }
        words[n] = NULL;
        return 0;
}

static int begin(const char *file, const char *const *options, char *why, size_t size)
{
        const char *words[WORDS_MOST];
        char program[PATH_MAX], pid[16];
        int pair[2], err = find_program(program);

        if (err < 0)
                return 0;               /* not installed */
        snprintf(pid, sizeof pid, "%d", (int)getpid());
        err = strlen(file) < sizeof own.trace ? fill_words(words, file, options, pid)
                                              : -ENAMETOOLONG;
        if (!err && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                err = -errno;
        if (!err) {
                err = spawn(program, words, pair[1]);
                close(pair[1]);
                err = err ? err : meet(pair[0], why, size);
                close(pair[0]);
        }
        if (err > 0)
                strcpy(own.trace, file);
        else if (!*why)
                snprintf(why, size, "no recorder can be begun: %s", strerror(-err));
        return err;
}

/* Returns 0 when another thread is at it. One of the process that forked this one is not here. */
static int take(void)
{
        int holder = atomic_load(&own.busy), me = (int)getpid();

        return holder != me && atomic_compare_exchange_strong(&own.busy, &holder, me);
}

/* Exported for luasample.lua. */
LS_EXPORT int luasample_agent_begin(const char *file, const char *const *options, char *why,
                                    int size)
{
        int saved = errno, r = 0;
        char text[8];

        if (!why || size <= 0) {
                why = text;
                size = sizeof text;
        }
        *why = 0;
        if (!take()) {
                snprintf(why, (size_t)size, "another thread begins or ends a recording");
                return -EBUSY;
        }
        if (!ls_agent_live() && !luasample_attach_status.preloaded && !ls_preload.registry.pid)
                r = begin(file && *file ? file : "luasample.data", options, why, (size_t)size);
        atomic_store(&own.busy, 0);
        errno = saved;
        return r;
}

const char *ls_own_trace(void)
{
        return own.trace[0] ? own.trace : NULL;
}

int ls_own_is_at_work(void)
{
        return ls_agent_live() && ls_agent.attached && atomic_load(&own.pid) &&
               atomic_load(&own.begun_by) == getpid() &&
               (uint32_t)atomic_load(&own.pid) == ls_agent.shm->recorder_pid;
}

int ls_own_end(void)
{
        int saved = errno, r = 0, fd;

        if (!ls_own_is_at_work() || !take())
                return 0;
        fd = (int)syscall(SYS_pidfd_open, atomic_load(&own.pid), 0);
        if (fd >= 0 && !ls_shm_recorder_has_ended(ls_agent.shm) &&
            syscall(SYS_pidfd_send_signal, fd, SIGINT, NULL, 0) == 0) {
                uint64_t until = ls_now_ns() + (uint64_t)RECORDS_MS * 1000000u, now;
                struct pollfd p = { .fd = fd, .events = POLLIN };

                while (!r && (now = ls_now_ns()) < until)
                        r = poll(&p, 1, (int)((until - now) / 1000000u) + 1) > 0;
        }
        if (fd >= 0)
                close(fd);
        atomic_store(&own.pid, 0);
        atomic_store(&own.busy, 0);
        errno = saved;
        return r;
}
