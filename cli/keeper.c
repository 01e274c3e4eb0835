/* The child's end: see keeper.h. */
#include "cli/keeper.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/pager.h"

static struct {
        int fd;                         /* -1 = there is no keeper */
        const char *path;
} own = { .fd = -1 };

void ls_keeper_name(const char *path)
{
        own.path = path;
}

const char *ls_keeper_named(void)
{
        return own.path;
}

void ls_keeper_use(int fd)
{
        own.fd = fd;
}

int ls_keeper_there(void)
{
        return own.fd >= 0;
}

/* Returns 0 or -errno, and the descriptor that came, or -1. */
static int ask(struct ls_keeper_question q, const char *path, int *ret_fd)
{
        const mode_t mask = umask(0777);
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(sizeof(int))];
        } control = { .room = { 0 } };
        int error = 0;
        struct iovec part = { &error, sizeof(error) };
        struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room,
                            .msg_controllen = sizeof(control.room) };
        struct iovec asked[] = { { &q, sizeof(q) },
                                 { (char *)(uintptr_t)path, path ? strlen(path) : 0 } };
        const struct msghdr question = { .msg_iov = asked, .msg_iovlen = 2 };

        umask(mask);
        q.umask = mask;
        *ret_fd = -1;
        if (sendmsg(own.fd, &question, MSG_NOSIGNAL) < (ssize_t)sizeof(q) ||
            recvmsg(own.fd, &m, MSG_CMSG_CLOEXEC) != sizeof(error))
                return -EPIPE;
        if (m.msg_controllen >= CMSG_LEN(sizeof(int)) && control.head.cmsg_type == SCM_RIGHTS)
                memcpy(ret_fd, CMSG_DATA(&control.head), sizeof(*ret_fd));
        return error;
}

/* Number of the part of the file that was named: 0 = the file itself, or -EPERM. */
static int part_of(const char *path)
{
        size_t n = own.path ? strlen(own.path) : 0;
        unsigned part = 0;

        if (own.path && !strcmp(path, own.path))
                return 0;
        if (!n || strncmp(path, own.path, n) || sscanf(path + n, "-%u", &part) != 1 || !part ||
            part > LS_KEEPER_PARTS)
                return -EPERM;
        return (int)part;
}

int ls_keeper_open(const char *path)
{
        int part = part_of(path), fd;
        const struct ls_keeper_question q = { LS_KEEPER_OPEN, (uint32_t)part };
        int r = part < 0 ? part : ask(q, NULL, &fd);

        return r ? r : fd < 0 ? -EPIPE : fd;
}

int ls_keeper_close(int failed)
{
        int fd;

        return ask((struct ls_keeper_question){ LS_KEEPER_CLOSE, failed != 0 }, NULL, &fd);
}

int ls_keeper_text(const char *path, uint64_t size, uint64_t hash)
{
        const struct ls_keeper_question q = { LS_KEEPER_TEXT, .size = size, .hash = hash };
        int fd, r = strlen(path) < LS_KEEPER_PATH ? ask(q, path, &fd) : -ENAMETOOLONG;

        return r ? r : fd < 0 ? -EPIPE : fd;
}

void ls_keeper_pager(void)
{
        int fd;

        if (ask((struct ls_keeper_question){ LS_KEEPER_PAGER }, NULL, &fd) == 0 && fd >= 0) {
                fflush(stdout);
                dup2(fd, STDOUT_FILENO);
                close(fd);
                ls_pager_quiet();
        }
}

