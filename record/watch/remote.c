/* The process that is read from outside: see remote.h. Its memory is read through a descriptor: the
 * right to it is asked for when that is opened, which need not happen in the process that reads. */
#include "record/watch/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

static pid_t process;
static int memory = -1;
static const struct ls_core *dead;
static int (*opener)(void *ctx, pid_t tid, const char *name);
static void *opener_ctx;

void ls_remote_opener(int (*fn)(void *ctx, pid_t tid, const char *name), void *ctx)
{
        opener = fn;
        opener_ctx = ctx;
}

int ls_remote_open(pid_t tid, const char *name)
{
        char path[64];
        int fd;

        if (opener)
                return opener(opener_ctx, tid, name);
        if (tid)
                snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)process, (int)tid, name);
        else
                snprintf(path, sizeof path, "/proc/%d/%s", (int)process, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int ls_remote_of_process(pid_t pid)
{
        if (memory >= 0)
                close(memory);
        process = pid;
        dead = NULL;
        memory = ls_remote_open(0, "mem");
        return memory < 0 ? memory : 0;
}

void ls_remote_of_core(const struct ls_core *core)
{
        dead = core;
}

int ls_remote_is_core(void)
{
        return dead != NULL;
}

int ls_remote_memory(uint64_t at, void *to, size_t n)
{
        if (dead)
                return ls_core_read(dead, at, to, n);
        return at <= INT64_MAX && pread(memory, to, n, (off_t)at) == (ssize_t)n ? 0 : -1;
}

void ls_remote_pieces(const struct iovec *here, const struct iovec *there, unsigned n,
                      uint8_t *ret_read)
{
        for (unsigned i = 0; i < n; i++)
                ret_read[i] = ls_remote_memory((uintptr_t)there[i].iov_base, here[i].iov_base,
                                               there[i].iov_len) == 0;
}

FILE *ls_remote_maps(void)
{
        int fd = dead ? dup(dead->maps_fd) : ls_remote_open(0, "maps");
        FILE *f;

        if (fd < 0) {
                errno = dead ? errno : -fd;
                return NULL;
        }
        lseek(fd, 0, SEEK_SET);
        f = fdopen(fd, "r");
        if (!f)
                close(fd);
        return f;
}
