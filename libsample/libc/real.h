/* The original functions behind the interposed ones (real.def). For the files of interpose/. */
#ifndef LS_LIBSAMPLE_LIBC_REAL_H
#define LS_LIBSAMPLE_LIBC_REAL_H

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* An interposed function: seen by the program. */
#define LS_EXPORT __attribute__((visibility("default")))

#define LS_SYS_CLOSE_RANGE 436          /* older kernel headers have no name for it */

/* What libc exports and its headers declare only for some programs: other names of a function, and
 * the ones that check the buffer's size (_FORTIFY_SOURCE). */
sighandler_t bsd_signal(int sig, sighandler_t handler);
sighandler_t __sysv_signal(int sig, sighandler_t handler);
int __sigaction(int sig, const struct sigaction *act, struct sigaction *old);
int __sigsuspend(const sigset_t *mask);
int __nanosleep(const struct timespec *request, struct timespec *left);
int __select(int n, fd_set *rd, fd_set *wr, fd_set *ex, struct timeval *timeout);
int __poll(struct pollfd *fds, nfds_t n, int timeout);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
                size_t size);
ssize_t __read_chk(int fd, void *buf, size_t n, size_t size);
ssize_t __recv_chk(int fd, void *buf, size_t n, size_t size, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t size, int flags, struct sockaddr *addr,
                       socklen_t *len);

struct ls_libc {
#define LS_REAL(ret, name, params) ret (*name) params;
#define LS_WAIT(ret, name, params, args, when) ret (*name) params;
#include "libsample/libc/real.def"
#undef LS_REAL
#undef LS_WAIT
};

extern struct ls_libc ls_libc_table;
extern int ls_libc_resolved;

/* Fills ls_libc_table and ls_real. The constructor calls it; before that, an interposed function
 * that a library's constructor calls does. Not in signal handlers. */
void ls_libc_resolve(void);

static inline const struct ls_libc *ls_libc(void)
{
        if (__builtin_expect(!__atomic_load_n(&ls_libc_resolved, __ATOMIC_ACQUIRE), 0))
                ls_libc_resolve();
        return &ls_libc_table;
}

#endif
