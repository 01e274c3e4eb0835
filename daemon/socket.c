/* The control socket: see daemon.h. A client sends one line and gets one, "ok" and JSON or "error:
 * ...". Who is slow, sends too much or does not read is hung up on; nobody is waited for. */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/listen.h"
#include "formats/escape.h"

/* The directory is made when it is missing; nobody else may be able to put another socket there. */
int ls_socket_directory(const char *path)
{
        char *dir = strdup(path), *slash = dir ? strrchr(dir, '/') : NULL;
        struct stat st;
        int error = 0;

        if (!slash || slash == dir) {
                free(dir);
                return 0;
        }
        *slash = 0;
        if (mkdir(dir, 0700) < 0 && errno != EEXIST)
                error = -errno;
        if (!error && lstat(dir, &st) < 0)
                error = -errno;
        if (error)
                ls_error("%s: %s", dir, strerror(-error));
        else if (!S_ISDIR(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0) ||
                 st.st_mode & (S_IWGRP | S_IWOTH)) {
                ls_error("%s: the directory of the socket must be yours, and not writable by "
                         "others",
                         dir);
                error = -EPERM;
        }
        free(dir);
        return error;
}

#define LISTEN_MOST 64                  /* sockets that systemd gives */

/* systemd gives names to several: those of HTTP are called http, the other is that of ctl. */
int ls_socket_inherited(int which)
{
        const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS"),
                   *name = getenv("LISTEN_FDNAMES");
        long fds = pid && n && strtol(pid, NULL, 10) == getpid() ? strtol(n, NULL, 10) : 0;
        struct stat st;

        for (int i = 0; i < fds && i < LISTEN_MOST; i++)        /* none is a child's */
                fcntl(3 + i, F_SETFD, FD_CLOEXEC);
        for (int i = 0; i < fds && i < 2; i++) {
                size_t len = name ? strcspn(name, ":") : 0;
                int is_http = len == 4 && !strncmp(name, "http", 4);

                name = name && name[len] ? name + len + 1 : NULL;
                if (is_http != which || fstat(3 + i, &st) < 0 || !S_ISSOCK(st.st_mode))
                        continue;
                fcntl(3 + i, F_SETFD, FD_CLOEXEC);
                fcntl(3 + i, F_SETFL, O_NONBLOCK);
                return 3 + i;
        }
        return -1;
}

static int bind_socket(struct ls_daemon *d, const char *path)
{
        int error = ls_socket_directory(path);

        if (error)
                return error;
        d->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        error = d->listener < 0 ? -errno : ls_listen_at(d->listener, path, 16);
        if (error == -EADDRINUSE)
                ls_error("%s: another daemon listens there, or the name is taken: stop it, or give "
                         "another socket",
                         path);
        else if (error == -ENAMETOOLONG)
                ls_error("%s: the path of the socket is too long: %zu bytes are possible", path,
                         sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1);
        else if (error)
                ls_error("%s: %s", path, strerror(-error));
        else
                d->made_socket = strdup(path);
        return error;
}

int ls_socket_open(struct ls_daemon *d)
{
        for (unsigned i = 0; i < LS_CLIENTS_MOST; i++)
                d->clients[i].fd = -1;
        d->listener = ls_socket_inherited(0);
        return d->listener >= 0 ? 0 : bind_socket(d, d->config.socket);
}

static void hang_up(struct ls_daemon *d, struct ls_client *c)
{
        ls_request_gone(d, c);
        close(c->fd);
        free(c->out);
        free(c->flush_from);
        memset(c, 0, sizeof(*c));
        c->fd = -1;
}

void ls_socket_answer(struct ls_client *c, char *text)
{
        c->pending = LS_PENDING_NONE;
        if (c->out || !text) {
                free(text);
                return;
        }
        c->out = text;
        c->n_out = strlen(text);
        c->until_ns = ls_daemon_now() + LS_CLIENT_NS;
}

void ls_socket_error(struct ls_client *c, const char *fmt, ...)
{
        char text[1024], *visible;
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        visible = ls_visible(text, strlen(text));
        c->holds = 0;
        ls_socket_answer(c, ls_print("error: %s\n", visible ? visible : "no memory"));
        free(visible);
}

static int is_allowed(int fd)
{
        struct ucred cred;
        socklen_t len = sizeof(cred);

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && len == sizeof(cred) &&
               (cred.uid == geteuid() || cred.uid == 0);
}

static void take_client(struct ls_daemon *d, uint64_t now)
{
        struct ls_client *c = NULL;
        int fd;

        for (unsigned i = 0; i < LS_CLIENTS_MOST && !c; i++)
                if (d->clients[i].fd < 0)
                        c = &d->clients[i];
        if (!c)
                return;
        fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
                return;
        if (!is_allowed(fd)) {
                close(fd);
                return;
        }
        memset(c, 0, sizeof(*c));
        c->fd = fd;
        c->until_ns = now + LS_CLIENT_NS;
}

/* One piece at a time. Returns -1 when the client has gone, or says more than it may. */
static int take_input(struct ls_daemon *d, struct ls_client *c)
{
        ssize_t n = read(c->fd, c->in + c->n_in, sizeof(c->in) - 1 - c->n_in);
        char *end;

        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -1;
        if (n == 0 || c->out || c->pending)
                return -1;
        c->n_in += (size_t)n;
        end = memchr(c->in, '\n', c->n_in);
        if (!end && c->n_in == sizeof(c->in) - 1) {
                ls_socket_error(c, "the line has more than %u bytes", LS_REQUEST_MOST - 2);
                return 0;
        }
        if (!end)
                return 0;
        *end = 0;
        if (strlen(c->in) != (size_t)(end - c->in))
                ls_socket_error(c, "there is a zero byte in the line");
        else
                ls_request(d, c, c->in);
        return 0;
}

/* Returns -1 when all is said, or nobody listens. */
static int put_output(struct ls_client *c)
{
        ssize_t n =
                send(c->fd, c->out + c->at_out, c->n_out - c->at_out, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -1;
        c->at_out += (size_t)n;
        if (c->at_out < c->n_out)
                return 0;
        return c->holds ? 0 : -1;
}

static void attend(struct ls_daemon *d, struct ls_client *c, short events, uint64_t now)
{
        int said = c->out && c->at_out == c->n_out;

        if (events & (POLLIN | POLLHUP | POLLERR) && take_input(d, c) < 0) {
                hang_up(d, c);
                return;
        }
        if (c->pending)
                ls_request_pending(d, c, now);
        if (c->out && !said && put_output(c) < 0) {
                hang_up(d, c);
                return;
        }
        if (now > c->until_ns && !c->pending && !(c->holds && c->out && c->at_out == c->n_out))
                hang_up(d, c);
}

unsigned ls_socket_poll(struct ls_daemon *d, struct pollfd *p)
{
        unsigned n = 0, used = 0;

        for (unsigned i = 0; i < LS_CLIENTS_MOST; i++) {
                const struct ls_client *c = &d->clients[i];

                if (c->fd < 0)
                        continue;
                used++;
                p[n++] = (struct pollfd){
                        .fd = c->fd,
                        .events = (short)(POLLIN | (c->out && c->at_out < c->n_out ? POLLOUT : 0))
                };
        }
        if (d->listener >= 0 && used < LS_CLIENTS_MOST)
                p[n++] = (struct pollfd){ .fd = d->listener, .events = POLLIN };
        return n;
}

void ls_socket_handle(struct ls_daemon *d, uint64_t now)
{
        struct pollfd p[LS_CLIENTS_MOST + 1];
        unsigned n = ls_socket_poll(d, p);

        if (poll(p, n, 0) < 0)
                return;
        for (unsigned i = 0; i < n; i++) {
                if (p[i].fd == d->listener && p[i].revents)
                        take_client(d, now);
                for (unsigned k = 0; k < LS_CLIENTS_MOST; k++)
                        if (d->clients[k].fd >= 0 && d->clients[k].fd == p[i].fd)
                                attend(d, &d->clients[k], p[i].revents, now);
        }
}

void ls_socket_done(struct ls_daemon *d)
{
        for (unsigned i = 0; i < LS_CLIENTS_MOST; i++) {
                struct ls_client *c = &d->clients[i];

                if (c->fd < 0)
                        continue;
                if (c->pending == LS_PENDING_STOP)
                        ls_socket_answer(c, strdup("ok {}\n"));
                if (c->out)
                        put_output(c);
                hang_up(d, c);
        }
        if (d->listener >= 0)
                close(d->listener);
        if (d->made_socket)
                unlink(d->made_socket);
        free(d->made_socket);
}
