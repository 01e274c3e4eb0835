/* Listens at a name in the file system: see listen.h. */
#include "cli/listen.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Left behind by one that has ended: it is ours, and nobody listens to it any more. */
static int is_left_over(const struct sockaddr_un *a)
{
        struct stat st;
        int fd, gone;

        if (lstat(a->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
                return 0;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        gone = fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof(*a)) < 0 &&
               errno == ECONNREFUSED;
        if (fd >= 0)
                close(fd);
        return gone;
}

static int bind_to(int fd, const struct sockaddr_un *a)
{
        mode_t mask = umask(0177);
        int r = bind(fd, (const struct sockaddr *)a, sizeof(*a)) < 0 ? -errno : 0;

        umask(mask);
        return r;
}

int ls_listen_at(int fd, const char *path, int most)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        size_t n = strlen(path) + 1;
        int r;

        if (n > sizeof(a.sun_path))
                return -ENAMETOOLONG;
        memcpy(a.sun_path, path, n);
        r = bind_to(fd, &a);
        if (r == -EADDRINUSE && is_left_over(&a) && unlink(path) == 0)
                r = bind_to(fd, &a);
        if (r < 0)
                return r;
        return listen(fd, most) < 0 ? -errno : 0;
}
