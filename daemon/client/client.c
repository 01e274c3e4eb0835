/* The client's end of the control socket: see client.h. */
#include "daemon/client/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/places.h"
#include "formats/wire/clock.h"

#define WAIT_MS 30000
#define ANSWER_MOST (16u << 20)

/* Who answers must be the daemon of root, or of this user. */
static int is_trusted(int fd)
{
        struct ucred cred;
        socklen_t len = sizeof(cred);

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && len == sizeof(cred) &&
               (cred.uid == geteuid() || cred.uid == 0);
}

static int connect_to(const char *path)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        const struct timeval most = { .tv_sec = WAIT_MS / 1000 };
        int fd, error = 0;

        if (strlen(path) >= sizeof(a.sun_path))
                return -ENAMETOOLONG;
        strcpy(a.sun_path, path);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && fd <= STDERR_FILENO) {   /* these are the program's */
                int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

                close(fd);
                fd = above;
        }
        if (fd < 0)
                return -errno;
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most,
                   sizeof(most)); /* also until there is room in its queue */
        if (connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
                error = -errno;
        else if (!is_trusted(fd))
                error = -EPERM;
        if (!error)
                return fd;
        close(fd);
        return error;
}

static int left_ms(uint64_t begin_ns)
{
        uint64_t passed_ms = (ls_clock_ns(CLOCK_MONOTONIC) - begin_ns) / 1000000;

        return passed_ms < WAIT_MS ? (int)(WAIT_MS - passed_ms) : 0;
}

/* A line, without its end; to be freed. Returns 0 or -errno. */
static int read_line(int fd, char **ret)
{
        const uint64_t begin_ns = ls_clock_ns(CLOCK_MONOTONIC);
        size_t n = 0, room = 4096;
        char *text = malloc(room), *more;

        while (text && n < ANSWER_MOST) {
                struct pollfd p = { .fd = fd, .events = POLLIN };
                ssize_t got;

                if (n + 1 == room) {
                        more = realloc(text, room *= 2);
                        if (!more)
                                break;
                        text = more;
                }
                if (poll(&p, 1, left_ms(begin_ns)) <= 0) {
                        free(text);
                        return -ETIMEDOUT;
                }
                got = recv(fd, text + n, room - 1 - n, MSG_DONTWAIT);
                if (got < 0 && (errno == EAGAIN || errno == EINTR))
                        continue;
                if (got <= 0) {
                        free(text);
                        return got < 0 ? -errno : -ECONNRESET;
                }
                n += (size_t)got;
                text[n] = 0;
                if (text[n - 1] == '\n') {
                        text[n - 1] = 0;
                        *ret = text;
                        return 0;
                }
        }
        free(text);
        return -ENOMEM;
}

static int say(int fd, const char *request)
{
        size_t n = strlen(request);

        if (send(fd, request, n, MSG_NOSIGNAL) != (ssize_t)n ||
            send(fd, "\n", 1, MSG_NOSIGNAL) != 1)
                return errno == EAGAIN ? -EMSGSIZE : -EPIPE;
        return 0;
}

int ls_client_ask(const char *socket_path, const char *request, char **ret_answer)
{
        int fd = connect_to(socket_path), error;
        char *line = NULL;

        *ret_answer = NULL;
        if (fd < 0)
                return fd;
        error = say(fd, request);
        if (!error)
                error = read_line(fd, &line);
        if (!error && !strncmp(line, "ok ", 3)) {
                memmove(line, line + 3, strlen(line + 3) + 1);
        } else if (!error) {
                error = -EPROTO;
                if (!strncmp(line, "error: ", 7))
                        memmove(line, line + 7, strlen(line + 7) + 1);
        }
        *ret_answer = line;
        if (!error)
                return fd;
        close(fd);
        return error;
}

void ls_client_borrow(const char *pids)
{
        char *path = ls_place_of_socket(), *request, *answer = NULL;
        size_t room = strlen(pids) + 8;
        int fd;

        request = malloc(room);
        if (path && request) {
                strcpy(request, "lend ");
                strcat(request, pids);
                fd = ls_client_ask(path, request, &answer);
                if (fd == -EPROTO)
                        ls_warning("%s: the daemon does not lend %s: %s", path, pids, answer);
                /* The connection stays: its end, whatever ends us, gives the processes back. */
        }
        free(answer);
        free(request);
        free(path);
}
