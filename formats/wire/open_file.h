/* Opening a file that the other side names: a program, or a trace. To open a FIFO may wait for ever
 * and to open a device may act, so it is looked at first, through a descriptor that does neither.
 * Used by the agent, the recorder and report; errno is not kept. */
#ifndef LS_WIRE_OPEN_FILE_H
#define LS_WIRE_OPEN_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LS_FD_PATH 32

/* "/proc/self/fd/N", without the functions that a child of vfork must not call. */
static inline void ls_fd_path(char path[LS_FD_PATH], int fd)
{
        unsigned n = (unsigned)fd, divisor = 1;
        char *p = (char *)memcpy(path, "/proc/self/fd/", 14) + 14;

        while (n / divisor >= 10)
                divisor *= 10;
        for (; divisor; divisor /= 10)
                *p++ = (char)('0' + n / divisor % 10);
        *p = '\0';
}

/* fstat is a function of new C libraries only, which the agent need not meet. A file of /proc gives
 * what the reader may see, not what who named it may. */
static inline int ls_look_at_regular(int seen, struct stat *ret_st)
{
        struct statfs fs;

        if (syscall(SYS_fstat, seen, ret_st) < 0 || fstatfs(seen, &fs) < 0)
                return -errno;
        if (!S_ISREG(ret_st->st_mode) || fs.f_type == PROC_SUPER_MAGIC)
                return S_ISDIR(ret_st->st_mode) ? -EISDIR : -EINVAL;
        return 0;
}

/* Opens what seen is, a descriptor of O_PATH, which it takes. flags: O_RDONLY or O_RDWR. Returns
 * the descriptor (close-on-exec, never blocking) or -errno. */
static inline int ls_open_seen(int seen, int flags)
{
        char again[LS_FD_PATH];
        int fd;

        ls_fd_path(again, seen);
        fd = open(again, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                fd = -errno;
        close(seen);
        return fd;
}

/* A descriptor of O_PATH of a regular file, which opens nothing, and its state; or -errno; -EINVAL:
 * it is no regular file, or one of /proc. */
static inline int ls_see_regular(const char *path, struct stat *ret_st)
{
        int seen = open(path, O_PATH | O_CLOEXEC), err;

        if (seen < 0)
                return -errno;
        err = ls_look_at_regular(seen, ret_st);
        if (err == 0)
                return seen;
        close(seen);
        return err;
}

/* Opens a regular file for reading. It may shrink at any time, so it is read, never mapped. Returns
 * the descriptor and the state of the file, or -errno as above. */
static inline int ls_open_regular(const char *path, struct stat *ret_st)
{
        int seen = ls_see_regular(path, ret_st);

        return seen < 0 ? seen : ls_open_seen(seen, O_RDONLY);
}

#endif
