/* Messages with descriptors: see wire.h. */
#include "record/writer/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control { struct cmsghdr head; char bytes[CMSG_SPACE(LS_OUT_FDS * sizeof(int))]; };

int ls_wire_send(int socket, const void *bytes, size_t len, const int *fds, int flags)
{
        union control control = { .head = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
        struct iovec v = { (void *)(uintptr_t)bytes, len };
        struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
        size_t n = 0;
        ssize_t sent;

        while (fds && n < LS_OUT_FDS && fds[n] > 0)
                n++;
        if (n) {
                memcpy(CMSG_DATA(&control.head), fds, n * sizeof(int));
                control.head.cmsg_len = CMSG_LEN(n * sizeof(int));
                m.msg_control = &control;
                m.msg_controllen = CMSG_SPACE(n * sizeof(int));
        }
        do
                sent = sendmsg(socket, &m, flags | MSG_NOSIGNAL);
        while (sent < 0 && errno == EINTR);
        return sent < 0 ? -errno : sent != (ssize_t)len ? -EMSGSIZE : 0;
}

ssize_t ls_wire_receive(int socket, void *bytes, size_t size, int fds[LS_OUT_FDS], int flags)
{
        union control control;
        struct iovec v = { bytes, size };
        struct msghdr m = { .msg_iov = &v,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control) };
        const struct cmsghdr *c;
        ssize_t n;

        memset(fds, -1, LS_OUT_FDS * sizeof(*fds));
        do
                n = recvmsg(socket, &m, flags | MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        c = n >= 0 ? CMSG_FIRSTHDR(&m) : NULL;
        if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len <= CMSG_LEN(LS_OUT_FDS * sizeof(int)))
                memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
        return n > 0 ? n : n == 0 ? -EPIPE : -errno;
}
