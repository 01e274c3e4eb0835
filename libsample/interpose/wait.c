/* Calls that a signal handler makes return early although it has SA_RESTART: the tick must not.
 * Where the call takes a signal mask the tick's signal is put into it; around the others it is
 * blocked. Ticks are not lost by that: the one that is pending comes when the call returns, and its
 * weight is CPU time. */

#include "libsample/interpose/wait.h"

#include <string.h>

#include "libsample/interpose/interpose.h"

int ls_socket_timeouts;

#define LS_REAL(ret, name, params)
#define LS_WAIT(ret, name, params, args, when)          \
        LS_EXPORT ret name params                       \
        {                                               \
                struct ls_wait wait;                    \
                ret r;                                  \
                                                        \
                ls_wait_begin(&wait, when);             \
                r = ls_libc()->name args;               \
                ls_wait_end(&wait);                     \
                return r;                               \
        }
#include "libsample/libc/real.def"
#undef LS_REAL
#undef LS_WAIT

LS_EXPORT int __nanosleep(const struct timespec *request, struct timespec *left)
{
        return nanosleep(request, left);
}

LS_EXPORT int __select(int n, fd_set *rd, fd_set *wr, fd_set *ex, struct timeval *timeout)
{
        return select(n, rd, wr, ex, timeout);
}

LS_EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
        if (level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO))
                ls_socket_timeouts = 1;
        return ls_libc()->setsockopt(fd, level, name, value, len);
}

/* The mask for the call: asked with the tick's signal, or the current one where asked is NULL.
 * Returns asked itself when there is nothing to add. */
static const sigset_t *mask_with_tick(const sigset_t *asked, sigset_t *room)
{
        if (!ls_wait_needed())
                return asked;
        if (asked)
                *room = *asked;
        else if (ls_real.sigprocmask(SIG_BLOCK, NULL, room) < 0)
                return NULL;
        if (sigismember(room, LS_TICK_SIGNAL))
                return asked;
        sigaddset(room, LS_TICK_SIGNAL);
        return room;
}

static const struct timespec *from_ms(int ms, struct timespec *room)
{
        *room = (struct timespec){ ms / 1000, ms % 1000 * 1000000L };
        return ms < 0 ? NULL : room;
}

LS_EXPORT int poll(struct pollfd *fds, nfds_t n, int timeout)
{
        sigset_t room;
        const sigset_t *mask = mask_with_tick(NULL, &room);
        struct timespec t;

        if (!mask)
                return ls_libc()->poll(fds, n, timeout);
        return ls_libc()->ppoll(fds, n, from_ms(timeout, &t), mask);
}

LS_EXPORT int __poll(struct pollfd *fds, nfds_t n, int timeout)
{
        return poll(fds, n, timeout);
}

LS_EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size)
{
        sigset_t room;
        const sigset_t *mask = mask_with_tick(NULL, &room);
        struct timespec t;

        if (!mask)
                return ls_libc()->__poll_chk(fds, n, timeout, size);
        return ls_libc()->__ppoll_chk(fds, n, from_ms(timeout, &t), mask, size);
}

LS_EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                    const sigset_t *mask)
{
        sigset_t room;

        return ls_libc()->ppoll(fds, n, timeout, mask_with_tick(mask, &room));
}

LS_EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                          const sigset_t *mask, size_t size)
{
        sigset_t room;

        return ls_libc()->__ppoll_chk(fds, n, timeout, mask_with_tick(mask, &room), size);
}

LS_EXPORT int pselect(int n, fd_set *rd, fd_set *wr, fd_set *ex, const struct timespec *timeout,
                      const sigset_t *mask)
{
        sigset_t room;

        return ls_libc()->pselect(n, rd, wr, ex, timeout, mask_with_tick(mask, &room));
}

LS_EXPORT int epoll_wait(int epfd, struct epoll_event *events, int n, int timeout)
{
        sigset_t room;
        const sigset_t *mask = mask_with_tick(NULL, &room);

        if (!mask)
                return ls_libc()->epoll_wait(epfd, events, n, timeout);
        return ls_libc()->epoll_pwait(epfd, events, n, timeout, mask);
}

LS_EXPORT int epoll_pwait(int epfd, struct epoll_event *events, int n, int timeout,
                          const sigset_t *mask)
{
        sigset_t room;

        return ls_libc()->epoll_pwait(epfd, events, n, timeout, mask_with_tick(mask, &room));
}

LS_EXPORT int epoll_pwait2(int epfd, struct epoll_event *events, int n,
                           const struct timespec *timeout, const sigset_t *mask)
{
        sigset_t room;

        return ls_libc()->epoll_pwait2(epfd, events, n, timeout, mask_with_tick(mask, &room));
}

LS_EXPORT int sigsuspend(const sigset_t *mask)
{
        sigset_t room;

        return ls_libc()->sigsuspend(mask_with_tick(mask, &room));
}

LS_EXPORT int __sigsuspend(const sigset_t *mask)
{
        return sigsuspend(mask);
}
