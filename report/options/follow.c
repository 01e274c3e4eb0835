/* A time of the store that goes on: see follow.h.
 *
 * Chunks were written of programs that nobody trusts, so what parses them must not have the rights
 * that open the store. A process that reads nothing makes a child at each look, which opens the
 * chunks, gives up its rights, merges them into a file that was open before, and ends. */
#include "report/options/follow.h"

#include "cli/command.h"
#include "formats/trace/reader.h"
#include "report/options/range.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

int (*ls_follow_drop)(void), (*ls_follow_show)(void);

#define RECENT "10m"
#define LOOK_MS 60000                   /* a look that takes longer is the last */
#define SLOT 1                          /* bits of a question: which slot, and whether what fails is
                                         * said on stderr */
#define LOUD 2

struct answer {
        int status;                     /* to exit with */
        char time[64];                  /* as --time has it; empty = all of the trace */
        struct ls_time_bound from, to;
};

static int copy(int from, int to)
{
        char part[65536];
        ssize_t n;
        off_t at = 0;

        for (; (n = pread(from, part, sizeof(part), at)) > 0; at += n)
                if (write(to, part, (size_t)n) != n)
                        return -EIO;
        return n < 0 ? -errno : 0;
}

/* The child of one look. Returns the status that it exits with. */
static int merge_into(const struct ls_follow *f, int slot, int answer_fd, int loud)
{
        struct ls_filter_options want = { .time = NULL };
        struct answer a = { .status = 0 };
        const char *name;
        int null = loud ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC);

        if (!loud && (null < 0 || dup2(null, STDERR_FILENO) < 0))
                return LS_EXIT_FAIL;
        a.status = ls_range_open(f->command, NULL, &name);
        if (!a.status && ls_follow_drop && ls_follow_drop())
                a.status = LS_EXIT_FAIL;
        if (!a.status)
                a.status = ls_range_read(f->command);
        if (a.status)
                return a.status;
        ls_range_bounds(name, &want);
        snprintf(a.time, sizeof(a.time), "%s", want.time ? want.time : "");
        a.from = want.from;
        a.to = want.to;
        if (copy(ls_range_fd(name), f->slots[slot]))
                return LS_EXIT_FAIL;
        return write(answer_fd, &a, sizeof(a)) == sizeof(a) ? 0 : LS_EXIT_FAIL;
}

/* The process that may open the store: until the other end is closed. */
static void __attribute__((noreturn)) serve(const struct ls_follow *f, int fd)
{
        char question;

        setsid();
        while (read(fd, &question, 1) == 1) {
                struct answer a = { .status = LS_EXIT_FAIL };
                int slot = question & SLOT, status = 0;
                pid_t pid = -1;

                if (!ftruncate(f->slots[slot], 0) && lseek(f->slots[slot], 0, SEEK_SET) == 0)
                        pid = fork();
                if (pid == 0)
                        _exit(merge_into(f, slot, fd, question & LOUD));
                if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status))
                        a.status = WEXITSTATUS(status);
                if (a.status && write(fd, &a, sizeof(a)) != sizeof(a))
                        break;
        }
        _exit(0);
}

static int ask(struct ls_follow *f, int slot, int loud, struct answer *a)
{
        char question = (char)(slot | (loud ? LOUD : 0));
        struct pollfd p = { .fd = f->fd, .events = POLLIN };

        if (f->fd < 0)
                return -EPIPE;
        if (write(f->fd, &question, 1) == 1 && poll(&p, 1, LOOK_MS) == 1 &&
            recv(f->fd, a, sizeof(*a), MSG_WAITALL) == sizeof(*a))
                return 0;
        close(f->fd);           /* an answer that comes late would be taken for the next one */
        f->fd = -1;
        return -EPIPE;
}

int ls_follow_start(const char *command, struct ls_follow *f)
{
        struct answer a = { .status = 0 };
        int fds[2];
        pid_t pid;

        *f = (struct ls_follow){ .command = command, .fd = -1, .shown = 1 };
        ls_range_recent(RECENT);
        for (int i = 0; i < 2; i++)
                f->slots[i] = memfd_create("luasample-top", MFD_CLOEXEC);
        if (f->slots[0] < 0 || f->slots[1] < 0 ||
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 || (pid = fork()) < 0) {
                ls_error("%s: cannot look at the store: %s", command, strerror(errno));
                return LS_EXIT_FAIL;
        }
        if (pid == 0) {
                close(fds[0]);
                serve(f, fds[1]);
        }
        close(fds[1]);
        f->fd = fds[0];
        if (ask(f, 0, 1, &a)) {
                ls_error("%s: cannot look at the store: %s", command, strerror(EPIPE));
                return LS_EXIT_FAIL;
        }
        if (!a.status && ls_follow_show && ls_follow_show()) {
                ls_error("%s: the rights to read the store cannot be given up", command);
                return LS_EXIT_FAIL;
        }
        return a.status;
}

/* A user who has named another time of the trace keeps it. */
static void follow_bounds(struct ls_follow *f, const struct answer *a,
                          struct ls_filter_options *want)
{
        char *text;

        if ((want->time && strcmp(want->time, f->time)) || !a->time[0] || !(text = strdup(a->time)))
                return;
        memcpy(f->time, a->time, sizeof(f->time));
        free((char *)(uintptr_t)want->time);
        want->time = text;
        want->from = a->from;
        want->to = a->to;
}

int ls_follow_look(struct ls_follow *f, struct ls_filter_options *want, struct ls_profile **ret)
{
        struct answer a = { .status = 0 };
        const char *why;
        int r = ask(f, !f->shown, 0, &a);

        if (!r && a.status)
                r = -EIO;
        if (!r)
                r = ls_profile_open_fd(f->slots[!f->shown], ret, &why);
        a.time[sizeof(a.time) - 1] = '\0';
        if (!r)
                follow_bounds(f, &a, want);
        return r;
}

void ls_follow_shown(struct ls_follow *f)
{
        f->shown = !f->shown;
}

void ls_follow_done(struct ls_follow *f)
{
        if (f->fd >= 0)
                close(f->fd);
        for (int i = 0; i < 2; i++)
                if (f->slots[i] >= 0)
                        close(f->slots[i]);
}
