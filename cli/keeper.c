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
static int ask(enum ls_keeper_what what, uint32_t value, int *ret_fd)
{
        const mode_t mask = umask(0777);
        const struct ls_keeper_question q = { what, value, mask };
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(sizeof(int))];
        } control = { .room = { 0 } };
        int error = 0;
        struct iovec part = { &error, sizeof(error) };
        struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room,
                            .msg_controllen = sizeof(control.room) };

        umask(mask);
        *ret_fd = -1;
        if (send(own.fd, &q, sizeof(q), MSG_NOSIGNAL) != sizeof(q) ||
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
        int r = part < 0 ? part : ask(LS_KEEPER_OPEN, (uint32_t)part, &fd);

        return r ? r : fd < 0 ? -EPIPE : fd;
}

int ls_keeper_close(int failed)
{
        int fd;

        return ask(LS_KEEPER_CLOSE, failed != 0, &fd);
}

void ls_keeper_pager(void)
{
        int fd;

        if (ask(LS_KEEPER_PAGER, 0, &fd) == 0 && fd >= 0) {
                fflush(stdout);
                dup2(fd, STDOUT_FILENO);
                close(fd);
                ls_pager_quiet();
        }
}

