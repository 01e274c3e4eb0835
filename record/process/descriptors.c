/* The recorder's own descriptors: see descriptors.h. */
#include "record/process/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

int ls_fd_above_stdio(int fd)
{
        int high, err;

        if (fd < 0 || fd > 2)
                return fd;
        high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        err = errno;
        close(fd);
        return high < 0 ? -err : high;
}

void ls_allow_files(unsigned n)
{
        struct rlimit r;

        if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < n) {
                r.rlim_cur = r.rlim_max < n ? r.rlim_max : n;
                setrlimit(RLIMIT_NOFILE, &r);
        }
}
