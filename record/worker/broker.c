/* Files of one process for a worker: see broker.h. */
#include "record/worker/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char *const names[] = { "mem", "maps", "schedstat", "syscall", "stat", "comm" };
#define NNAMES   (sizeof(names) / sizeof(*names))
/* Not files: */
#define OUTER_ID NNAMES                 /* the number of a thread */
#define READY    (NNAMES + 1)

struct request { uint32_t what; int32_t tid; };

struct ls_broker {
        pthread_t thread;
        int socket;                     /* the recorder's end */
        _Atomic pid_t pid;              /* 0 = not known yet */
        _Atomic int pidfd;              /* of it, -1 = none: a number alone may be another process's
                                         * by now */
        atomic_int ready;
        pid_t (*outer_id)(pid_t pid, pid_t inner);
        struct ls_rights rights;        /* the worker's, */
        struct ls_rights its;           /* and the process's, when it was named */
};

union control { struct cmsghdr head; char bytes[CMSG_SPACE(sizeof(int))]; };

/* Whether the process is still that one, and no mightier than the worker: it may have become a
 * program of root's by exec. Returns 0, -EPERM or another -errno. */
static int may_see(const struct ls_broker *b, pid_t pid)
{
        struct ls_rights now;
        int pidfd = atomic_load(&b->pidfd);

        int err = pidfd < 0 || pidfd_send_signal(pidfd, 0, NULL, 0) ? -ESRCH
                                                                    : ls_rights_of(pid, &now);

        if (err)
                return err;
        if (!b->rights.is_own && b->rights.uid && b->rights.uid != b->its.uid)
                return -EPERM;
        if (b->rights.uid == 0 && b->its.uid == 0)      /* it may have fewer by now */
                return 0;
        return now.uid == b->its.uid && now.gid == b->its.gid && now.all_same == b->its.all_same
                       ? 0
                       : -EPERM;
}

/* What is opened first and looked at afterwards is of the process that was looked at. */
static int open_file(const struct ls_broker *b, const struct request *q)
{
        pid_t pid = atomic_load(&b->pid);
        char path[64];
        int fd, err;

        if (!pid)
                return -EAGAIN;
        if (q->tid)
                snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)q->tid,
                         names[q->what]);
        else
                snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, names[q->what]);
        err = may_see(b, pid);          /* before and after */
        if (err)
                return err;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        err = may_see(b, pid);
        if (!err)
                return fd;
        close(fd);
        return err;
}

/* Sends a number, and the descriptor when it is one: takes it. */
static void answer(int socket, int32_t number, int fd)
{
        struct iovec v = { &number, sizeof(number) };
        union control control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
                                            .cmsg_level = SOL_SOCKET,
                                            .cmsg_type = SCM_RIGHTS } };
        struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

        if (fd >= 0) {
                memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
                m.msg_control = &control;
                m.msg_controllen = sizeof(control);
        }
        sendmsg(socket, &m, MSG_NOSIGNAL);
        if (fd >= 0)
                close(fd);
}

static void *serve(void *arg)
{
        struct ls_broker *b = arg;
        struct request q;
        ssize_t n;

        while ((n = recv(b->socket, &q, sizeof(q), 0)) > 0 || (n < 0 && errno == EINTR)) {
                int fd;

                if (n != sizeof(q) || q.what > READY || q.tid < 0) {
                        answer(b->socket, -EINVAL, -1);
                } else if (q.what == READY) {
                        atomic_store(&b->ready, 1);
                        answer(b->socket, 0, -1);
                } else if (q.what == OUTER_ID) {
                        answer(b->socket, (int32_t)b->outer_id(atomic_load(&b->pid), q.tid), -1);
                } else {
                        fd = open_file(b, &q);
                        answer(b->socket, fd < 0 ? fd : 0, fd);
                }
        }
        return NULL;
}

/* A thread that gets no signal. Returns 0 or an errno. */
static int start_thread(struct ls_broker *b)
{
        sigset_t all, before;
        int err;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        err = pthread_create(&b->thread, NULL, serve, b);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return err;
}

struct ls_broker *ls_broker_start(const struct ls_rights *rights,
                                  pid_t (*outer_id)(pid_t pid, pid_t inner), const void *first,
                                  size_t n, int *ret_socket)
{
        struct ls_broker *b = calloc(1, sizeof(*b));
        int pair[2], err;

        if (!b || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
                free(b);
                return NULL;
        }
        b->socket = pair[0];
        b->rights = *rights;
        b->outer_id = outer_id;
        atomic_store(&b->pidfd, -1);
        err = n && send(b->socket, first, n, MSG_NOSIGNAL) != (ssize_t)n ? EPIPE : start_thread(b);
        if (err) {
                close(pair[0]);
                close(pair[1]);
                free(b);
                errno = err;
                return NULL;
        }
        *ret_socket = pair[1];
        return b;
}

void ls_broker_target(struct ls_broker *b, pid_t pid)
{
        if (atomic_load(&b->pid))
                return;
        if (ls_rights_of(pid, &b->its) < 0)
                return;
        atomic_store(&b->pidfd, pidfd_open(pid, 0));
        atomic_store(&b->pid, pid);
}

int ls_broker_await(struct ls_broker *b, int ms)
{
        const struct timespec moment = { 0, 1000000 };

        for (; ms > 0 && !atomic_load(&b->ready); ms--)
                nanosleep(&moment, NULL);
        return atomic_load(&b->ready) ? 0 : -ETIME;
}

void ls_broker_stop(struct ls_broker *b)
{
        if (!b)
                return;
        shutdown(b->socket, SHUT_RDWR);
        pthread_join(b->thread, NULL);
        close(b->socket);
        if (atomic_load(&b->pidfd) >= 0)
                close(atomic_load(&b->pidfd));
        free(b);
}

/* Returns the number that came, and the descriptor in *ret_fd, -1 = none. */
static int ask(int socket, const struct request *q, int *ret_fd)
{
        int32_t number = -EPIPE;
        struct iovec v = { &number, sizeof(number) };
        union control control;
        struct msghdr m = { .msg_iov = &v,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control) };
        const struct cmsghdr *c;

        *ret_fd = -1;
        if (send(socket, q, sizeof(*q), MSG_NOSIGNAL) != sizeof(*q) ||
            recvmsg(socket, &m, MSG_CMSG_CLOEXEC) <= 0)
                return -EPIPE;
        c = CMSG_FIRSTHDR(&m);
        if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
                memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
        /* A descriptor that found no room here was there, and is lost. */
        return number == 0 && *ret_fd < 0 && q->what < NNAMES ? -EMFILE : number;
}

int ls_broker_first(int socket, void *to, size_t n)
{
        return recv(socket, to, n, 0) == (ssize_t)n ? 0 : -EPROTO;
}

int ls_broker_say_ready(int socket)
{
        const struct request q = { .what = READY };
        int fd;

        return ask(socket, &q, &fd);
}

int ls_broker_open(int socket, pid_t tid, const char *name)
{
        struct request q = { .tid = tid };
        int fd, err;

        while (q.what < NNAMES && strcmp(names[q.what], name) != 0)
                q.what++;
        err = q.what < NNAMES ? ask(socket, &q, &fd) : -EINVAL;
        return err < 0 ? err : fd;
}

pid_t ls_broker_outer_id(int socket, pid_t inner)
{
        const struct request q = { .what = OUTER_ID, .tid = inner };
        int fd, tid = ask(socket, &q, &fd);

        return tid > 0 ? tid : 0;
}
