/* The ways in for --control: a FIFO, with another one for the answers, or a socket. Nothing is
 * opened through a symbolic link, and nothing that others can write to is taken. See
 * open.h. */
#include "record/control/open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/listen.h"
#include "record/process/descriptors.h"

#define FIFO "fifo:"
#define UNIX "unix:"

static int failed(const char *path, const char *why)
{
        ls_error("--control: %s: %s", path, why);
        return -EINVAL;
}

int ls_control_check(const char *text)
{
        const char *path = text + strlen(FIFO), *comma;
        int is_fifo = !strncmp(text, FIFO, strlen(FIFO)),
            is_unix = !strncmp(text, UNIX, strlen(UNIX));

        comma = is_fifo ? strchr(path, ',') : NULL;
        if ((!is_fifo && !is_unix) || !*path || comma == path || (comma && !comma[1])) {
                ls_error("--control %s: give fifo:PATH, fifo:PATH,ANSWERS or unix:PATH", text);
                return -EINVAL;
        }
        if (strlen(path) >= (is_unix ? sizeof(((struct sockaddr_un *)0)->sun_path) : PATH_MAX))
                return failed(text, "the path is too long");
        return 0;
}

static void note_made(struct ls_control *c, const char *path)
{
        struct ls_control_made *made = *c->made[0].path ? &c->made[1] : &c->made[0];
        struct stat st;

        if (lstat(path, &st) < 0)
                return;
        snprintf(made->path, sizeof(made->path), "%s", path);
        made->dev = st.st_dev;
        made->ino = st.st_ino;
}

/* For reading and writing: so it never ends, and the answers may come before somebody reads
 * them. */
static int open_fifo(struct ls_control *c, const char *path)
{
        struct stat st;
        int made = mkfifo(path, 0600) == 0, fd;

        if (!made && errno != EEXIST)
                return failed(path, strerror(errno));
        if (made)
                note_made(c, path);
        fd = ls_fd_above_stdio(open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY));
        if (fd < 0)
                return failed(path, strerror(errno));
        if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode)) {
                close(fd);
                return failed(path, "not a FIFO; name one, or a file that is not there yet");
        }
        if ((st.st_uid != geteuid() && st.st_uid != 0) || st.st_mode & (S_IWGRP | S_IWOTH)) {
                close(fd);
                return failed(path, "others can write to it; use one of your own with mode 0600");
        }
        return fd;
}

static int open_fifos(struct ls_control *c, const char *text)
{
        char path[PATH_MAX], *comma;

        snprintf(path, sizeof(path), "%s", text);
        comma = strchr(path, ',');
        if (comma)
                *comma++ = 0;
        c->clients[0].serial = ++c->serial;
        c->clients[0].in = open_fifo(c, path);
        if (c->clients[0].in < 0)
                return c->clients[0].in;
        if (comma)
                c->clients[0].out = open_fifo(c, comma);
        return comma && c->clients[0].out < 0 ? c->clients[0].out : 0;
}

static int open_socket(struct ls_control *c, const char *path)
{
        int r;

        c->listener =
                ls_fd_above_stdio(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (c->listener < 0)
                return failed(path, strerror(errno));
        r = ls_listen_at(c->listener, path, (int)LS_CONTROL_CLIENTS);
        if (r < 0)
                return failed(path, r == -EADDRINUSE ? "it exists already; give another name"
                                                     : strerror(-r));
        note_made(c, path);
        return 0;
}

int ls_control_open(struct ls_control *c, const char *text)
{
        c->listener = -1;
        for (unsigned i = 0; i < LS_CONTROL_CLIENTS; i++)
                c->clients[i].in = c->clients[i].out = -1;
        if (!text)
                return 0;
        return !strncmp(text, FIFO, strlen(FIFO)) ? open_fifos(c, text + strlen(FIFO))
                                                  : open_socket(c, text + strlen(UNIX));
}
