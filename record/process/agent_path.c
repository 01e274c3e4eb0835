/* Finds the agent's shared object: see agent_path.h. */
#include "record/process/agent_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/process/descriptors.h"

/* Seen from the directory of this program. */
static const char *const beside[] = {
        "libsample/libsample.so",               /* build directory */
        "../libsample/libsample.so",            /* a test program in its build directory */
        "../../libsample/libsample.so",
        LS_AGENT_FROM_BIN "/libsample.so",      /* installed, perhaps moved as a whole */
};

int ls_agent_path(char *ret_path, size_t size)
{
        char exe[PATH_MAX], path[2 * PATH_MAX], real[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
        const char *found = NULL;
        char *slash;

        if (n > 0) {
                exe[n] = 0;
                slash = strrchr(exe, '/');
                if (slash)
                        *slash = 0;
                for (size_t i = 0; i < sizeof(beside) / sizeof(*beside) && !found; i++) {
                        snprintf(path, sizeof(path), "%s/%s", exe, beside[i]);
                        if (access(path, R_OK) == 0 && realpath(path, real))
                                found = real;
                }
        }
        if (!found && access(LS_AGENT_DIR "/libsample.so", R_OK) == 0)
                found = LS_AGENT_DIR "/libsample.so";
        if (!found)
                return -ENOENT;
        if (strlen(found) >= size)
                return -ENAMETOOLONG;
        strcpy(ret_path, found);
        return 0;
}

int ls_agent_preload_path(const char *path, char *ret_path, size_t size)
{
        int fd, n;

        if (!strpbrk(path, " :$")) {
                n = snprintf(ret_path, size, "%s", path);
        } else {
                fd = open(path, O_RDONLY | O_CLOEXEC);
                fd = ls_fd_above_stdio(fd < 0 ? -errno : fd);
                if (fd < 0)
                        return fd;
                n = snprintf(ret_path, size, "/proc/%d/fd/%d", (int)getpid(), fd);
        }
        return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}
