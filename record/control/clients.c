/* Who sends commands to a recording: see clients.h. */
#include "record/control/clients.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "record/process/descriptors.h"

#define ANSWER_MOST 512u

struct runner {                         /* what takes whole lines */
        void (*run)(void *ctx, struct ls_control_client *client);
        void *ctx;
};

static void put(struct ls_control_client *c, const char *text, size_t len)
{
        ssize_t n;

        if (c->out < 0)
                return;
        n = write(c->out, text, len);
        /* A piece of a line would be taken for another answer; who does not read gets no more. */
        if (n != (ssize_t)len && c->in == c->out) {
                close(c->in);
                c->in = c->out = -1;
        }
}

/* "ack" when there is no error. */
static void vanswer(struct ls_control_client *c, const char *error, va_list ap)
{
        char line[ANSWER_MOST] = "ack\n";
        size_t n = 4;

        if (error) {
                n = (size_t)snprintf(line, sizeof(line), "error: ");
                vsnprintf(line + n, sizeof(line) - n - 1, error, ap);
                for (n = strlen(line); n > 0 && line[n - 1] == '\n';)
                        n--;
                line[n++] = '\n';
        }
        put(c, line, n);
}

void ls_control_reply(struct ls_control_client *c, const char *error, ...)
{
        va_list ap;

        va_start(ap, error);
        vanswer(c, error, ap);
        va_end(ap);
}

void ls_control_tell(struct ls_control_client *c, const char *fmt, ...)
{
        char line[ANSWER_MOST] = "ack ";
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(line + 4, sizeof(line) - 5, fmt, ap);
        va_end(ap);
        strcat(line, "\n");
        put(c, line, strlen(line));
}

void ls_control_answer(struct ls_control *c, unsigned serial, const char *error, ...)
{
        va_list ap;

        va_start(ap, error);
        for (unsigned i = 0; i < LS_CONTROL_CLIENTS; i++)
                if (c->clients[i].in >= 0 && c->clients[i].serial == serial)
                        vanswer(&c->clients[i], error, ap);
        va_end(ap);
}

static void take_byte(const struct runner *r, struct ls_control_client *c, char byte)
{
        if (byte != '\n') {
                if (c->len + 1 < sizeof(c->line))
                        c->line[c->len++] = byte;
                else
                        c->too_long = 1;
                return;
        }
        if (c->too_long)
                ls_control_reply(c, "the line has more than %u bytes", LS_CONTROL_LINE - 1);
        else
                r->run(r->ctx, c);
        c->too_long = 0;
        c->len = 0;
}

/* One piece at a time: whoever writes without end does not keep the recorder from its work. */
static void take_input(const struct ls_control *all, const struct runner *r,
                       struct ls_control_client *c)
{
        char buf[4096];
        ssize_t n = read(c->in, buf, sizeof(buf));

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        for (ssize_t i = 0; i < n && c->in >= 0 && !all->stop; i++)
                take_byte(r, c, buf[i]);
        if (n <= 0 && c->in == c->out) {
                close(c->in);
                c->in = c->out = -1;
        }
}

static int is_allowed(int fd)
{
        struct ucred cred;
        socklen_t len = sizeof(cred);

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && len == sizeof(cred) &&
               (cred.uid == geteuid() || cred.uid == 0);
}

static struct ls_control_client *free_client(struct ls_control *c)
{
        for (unsigned i = 0; i < LS_CONTROL_CLIENTS; i++)
                if (c->clients[i].in < 0)
                        return &c->clients[i];
        return NULL;
}

static void take_client(struct ls_control *c)
{
        struct ls_control_client *client = free_client(c);
        int fd;

        if (!client)
                return;
        fd = ls_fd_above_stdio(accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd < 0)
                return;
        if (!is_allowed(fd)) {
                close(fd);
                return;
        }
        client->in = client->out = fd;
        client->serial = ++c->serial;
        client->len = 0;
        client->too_long = 0;
}

unsigned ls_control_poll(const struct ls_control *c, struct pollfd *p)
{
        unsigned n = 0, used = 0;

        for (unsigned i = 0; i < LS_CONTROL_CLIENTS; i++)
                if (c->clients[i].in >= 0) {
                        p[n++] = (struct pollfd){ .fd = c->clients[i].in, .events = POLLIN };
                        used++;
                }
        if (c->listener >= 0 && used < LS_CONTROL_CLIENTS)
                p[n++] = (struct pollfd){ .fd = c->listener, .events = POLLIN };
        return n;
}

void ls_control_read(struct ls_control *c,
                     void (*run)(void *ctx, struct ls_control_client *client), void *ctx)
{
        const struct runner r = { run, ctx };
        struct pollfd p[LS_CONTROL_FDS];
        unsigned n = ls_control_poll(c, p);

        if (!n || poll(p, n, 0) <= 0)
                return;
        for (unsigned i = 0; i < n; i++) {
                if (!p[i].revents)
                        continue;
                if (p[i].fd == c->listener)
                        take_client(c);
                for (unsigned k = 0; k < LS_CONTROL_CLIENTS && !c->stop; k++)
                        if (c->clients[k].in == p[i].fd)
                                take_input(c, &r, &c->clients[k]);
        }
}

static void remove_made(const struct ls_control_made *made)
{
        struct stat st;

        if (*made->path && lstat(made->path, &st) == 0 && st.st_dev == made->dev &&
            st.st_ino == made->ino)
                unlink(made->path);
}

void ls_control_done(struct ls_control *c)
{
        for (unsigned i = 0; i < 2; i++) {
                remove_made(&c->made[i]);
                *c->made[i].path = 0;
        }
        if (c->stopper)                 /* who hears this finds all as it was */
                ls_control_reply(c->stopper, NULL);
        c->stopper = NULL;
        for (unsigned i = 0; i < LS_CONTROL_CLIENTS; i++) {
                if (c->clients[i].in >= 0)
                        close(c->clients[i].in);
                if (c->clients[i].out >= 0 && c->clients[i].out != c->clients[i].in)
                        close(c->clients[i].out);
                c->clients[i].in = c->clients[i].out = -1;
        }
        if (c->listener >= 0)
                close(c->listener);
        c->listener = -1;
}
