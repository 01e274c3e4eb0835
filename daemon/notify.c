/* Tells systemd how the daemon is: see daemon.h and sd_notify(3). */
#include "daemon/daemon.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void ls_notify(const char *state)
{
        const char *path = getenv("NOTIFY_SOCKET");
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        size_t n = path ? strlen(path) : 0;
        int fd;

        if (n < 2 || n >= sizeof(a.sun_path) || (*path != '/' && *path != '@'))
                return;
        memcpy(a.sun_path, path, n);
        if (*path == '@')
                a.sun_path[0] = 0;      /* a name that is in no file system */
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return;
        sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&a,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
        close(fd);
}
