/* The process that keeps its rights: see keep.h. The child may be taken over by what it reads: of
 * what it says nothing is believed but which of its files it means. */
#include "cli/keep.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/keeper.h"
#include "cli/output.h"
#include "cli/pager.h"
#include "formats/wire/open_file.h"

struct keeper {
        int fd, signals;
        pid_t child;
        sigset_t mask;                  /* before it was one */
        struct ls_output out;
        int open;
        unsigned wrong;                 /* texts that were not as was said */
        char path[4096];                /* of out */
};

/* error, and a descriptor unless that is -1. */
static int answer(int socket, int error, int fd)
{
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(sizeof(int))];
        } control = { .room = { 0 } };
        struct iovec part = { &error, sizeof(error) };
        struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

        if (fd >= 0) {
                m.msg_control = control.room;
                m.msg_controllen = sizeof(control.room);
                control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
                                                 .cmsg_level = SOL_SOCKET,
                                                 .cmsg_type = SCM_RIGHTS };
                memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
        }
        return sendmsg(socket, &m, MSG_NOSIGNAL) == sizeof(error) ? 0 : -EPIPE;
}

static int open_part(struct keeper *k, uint32_t part, mode_t more)
{
        const char *path = ls_keeper_named();
        mode_t mask;
        int n, r;

        if (k->open || !path || part > LS_KEEPER_PARTS)
                return -EPERM;
        n = part ? snprintf(k->path, sizeof(k->path), "%s-%02u", path, part) :
                   snprintf(k->path, sizeof(k->path), "%s", path);
        if (n < 0 || (size_t)n >= sizeof(k->path))
                return -ENAMETOOLONG;
        mask = umask(0777);
        umask(mask | (more & 0777));
        r = ls_output_open(&k->out, k->path, LS_COLOR_NEVER, 0);
        umask(mask);
        k->open = !r;
        return r;
}

static int close_part(struct keeper *k, int failed)
{
        if (!k->open)
                return -EBADF;
        k->open = 0;
        return ls_output_close(&k->out, failed);
}

/* The pager has the signals that this command was started with. */
static int start_pager(struct keeper *k)
{
        sigset_t now;
        int there;

        sigprocmask(SIG_SETMASK, &k->mask, &now);
        there = ls_pager_start();
        sigprocmask(SIG_SETMASK, &now, NULL);
        return there;
}

/* Into memory, so that what is handed on is what was looked at. Returns a descriptor or -errno. */
static int copy_text(int from, uint64_t size, uint64_t hash)
{
        XXH64_state_t state;
        char part[65536];
        uint64_t done = 0;
        int fd = memfd_create("luasample-text", MFD_CLOEXEC), r = fd < 0 ? -errno : 0;

        XXH64_reset(&state, 0);
        while (!r && done < size) {
                size_t more = size - done < sizeof(part) ? size - done : sizeof(part);
                ssize_t n = read(from, part, more);

                if (n <= 0)
                        r = n < 0 ? -errno : -ESTALE;
                else if (write(fd, part, (size_t)n) != n)
                        r = -ENOMEM;
                else
                        XXH64_update(&state, part, (size_t)n);
                done += n > 0 ? (uint64_t)n : 0;
        }
        if (!r && (XXH64_digest(&state) != hash || lseek(fd, 0, SEEK_SET) < 0))
                r = -ESTALE;
        if (r && fd >= 0)
                close(fd);
        return r ? r : fd;
}

/* A source that a trace names may be any file: only who knows what is in it gets it. */
static int open_text(struct keeper *k, const char *path, uint64_t size, uint64_t hash)
{
        struct stat st;
        int from, fd;

        if (k->wrong > LS_KEEPER_TEXTS_WRONG || size > LS_KEEPER_TEXT_MOST)
                return -EPERM;
        from = ls_open_regular(path, &st);
        if (from < 0)
                return from == -ENOENT ? from : -EACCES;
        fd = (uint64_t)st.st_size == size ? copy_text(from, size, hash) : -ESTALE;
        close(from);
        k->wrong += fd < 0;
        return fd < 0 && fd != -ESTALE ? -EACCES : fd;
}

static int serve_text(struct keeper *k, const struct ls_keeper_question *q, const char *path)
{
        int fd = open_text(k, path, q->size, q->hash), r;

        if (fd < 0)
                return answer(k->fd, fd, -1);
        r = answer(k->fd, 0, fd);
        close(fd);
        return r;
}

static int serve(struct keeper *k)
{
        struct { struct ls_keeper_question q; char path[LS_KEEPER_PATH]; } all;
        ssize_t n = recv(k->fd, &all, sizeof(all) - 1, 0);
        struct ls_keeper_question q;

        if (n < (ssize_t)sizeof(q))
                return -EPIPE;
        ((char *)&all)[n] = '\0';
        q = all.q;
        if (q.what == LS_KEEPER_TEXT)
                return serve_text(k, &q, (char *)&all + sizeof(q));
        if (q.what == LS_KEEPER_OPEN) {
                int r = open_part(k, q.value, q.umask);

                return answer(k->fd, r, r ? -1 : fileno(k->out.file));
        }
        if (q.what == LS_KEEPER_CLOSE)
                return answer(k->fd, close_part(k, q.value != 0), -1);
        if (q.what == LS_KEEPER_PAGER)
                return answer(k->fd, 0, start_pager(k) ? STDOUT_FILENO : -1);
        return -EPROTO;
}

/* Ends as the child did. */
static void end(struct keeper *k, int status)
{
        if (k->open)
                ls_output_close(&k->out, 1);
        sigprocmask(SIG_SETMASK, &k->mask, NULL);       /* Ctrl-Z stops it beside the pager */
        if (ls_pager_finish() && WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE)
                _exit(0);               /* the user may quit the pager at any time */
        if (WIFSIGNALED(status)) {
                sigset_t none;

                signal(WTERMSIG(status), SIG_DFL);
                sigemptyset(&none);
                sigprocmask(SIG_SETMASK, &none, NULL);
                raise(WTERMSIG(status));
        }
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : LS_EXIT_FAIL);
}

/* Signals of the terminal come to both processes; those of another process are handed on. The child
 * stops first: it gives the terminal back as it was. */
static void hear(struct keeper *k)
{
        struct signalfd_siginfo si;
        int status;

        while (read(k->signals, &si, sizeof(si)) == sizeof(si))
                if (si.ssi_signo != SIGCHLD && si.ssi_code <= 0)
                        kill(k->child, (int)si.ssi_signo);
        while (waitpid(k->child, &status, WNOHANG | WUNTRACED) > 0) {
                if (!WIFSTOPPED(status))
                        end(k, status);
                raise(SIGSTOP);         /* the shell waits for this process */
                kill(k->child, SIGCONT);
        }
}

static void keep(struct keeper *k)
{
        struct pollfd p[2] = { { .fd = k->signals, .events = POLLIN },
                               { .fd = k->fd, .events = POLLIN } };

        for (;;) {
                if (poll(p, 2, -1) < 0)
                        continue;
                if (p[0].revents)
                        hear(k);
                if (p[1].revents && serve(k))
                        p[1].fd = -1;   /* it ends, or talks nonsense: nothing is done for it */
        }
}

static void keeper_signals(sigset_t *ret)
{
        static const int signals[] = { SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGTSTP };

        sigemptyset(ret);
        for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
                sigaddset(ret, signals[i]);
}

int ls_keep(int (*drop)(void))
{
        struct keeper k = { .open = 0 };
        sigset_t mask;
        int fds[2];

        fflush(NULL);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        signal(SIGCHLD, SIG_DFL);
        keeper_signals(&mask);
        sigprocmask(SIG_BLOCK, &mask, &k.mask);
        k.fd = fds[0];
        k.signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
        k.child = k.signals < 0 ? -1 : fork();
        if (k.child > 0) {
                close(fds[1]);
                keep(&k);
        }
        sigprocmask(SIG_SETMASK, &k.mask, NULL);
        if (k.signals >= 0)
                close(k.signals);
        close(fds[0]);
        if (k.child < 0) {
                close(fds[1]);
                return -EAGAIN;
        }
        ls_keeper_use(fds[1]);
        return drop();
}
