/* The process that is read from outside: see remote.h. */
#include "libsample/outside/remote.h"

#include <sys/uio.h>

static pid_t process;
static const struct ls_core *dead;

void ls_remote_of_process(pid_t pid)
{
        process = pid;
        dead = NULL;
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
        struct iovec here = { to, n }, there = { (void *)(uintptr_t)at, n };

        if (dead)
                return ls_core_read(dead, at, to, n);
        return process_vm_readv(process, &here, 1, &there, 1, 0) == (ssize_t)n ? 0 : -1;
}

void ls_remote_pieces(const struct iovec *here, const struct iovec *there, unsigned n, uint8_t *ret_read)
{
        for (unsigned i = 0; i < n;) {
                ssize_t got = process_vm_readv(process, here + i, n - i, there + i, n - i, 0);

                for (; i < n && got >= (ssize_t)there[i].iov_len; i++) {
                        got -= (ssize_t)there[i].iov_len;
                        ret_read[i] = 1;
                }
                if (i < n)              /* it ends at the first one that cannot be read */
                        ret_read[i++] = 0;
        }
}

FILE *ls_remote_maps(void)
{
        char path[64];

        if (dead)
                snprintf(path, sizeof path, "/proc/self/fd/%d", dead->maps_fd);
        else
                snprintf(path, sizeof path, "/proc/%d/maps", (int)process);
        return fopen(path, "re");
}
