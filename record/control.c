/* Commands to a recording that runs: see control.h. */
#include "record/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "record/process/descriptors.h"
#include "record/session.h"

#define ANSWER_MOST 512u

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

static void answer(struct ls_control_client *c, const char *error, ...) __attribute__((format(printf, 2, 3)));

static void answer(struct ls_control_client *c, const char *error, ...)
{
        va_list ap;

        va_start(ap, error);
        vanswer(c, error, ap);
        va_end(ap);
}

void ls_control_answer(struct ls_session *s, unsigned serial, const char *error, ...)
{
        va_list ap;

        va_start(ap, error);
        for (unsigned i = 0; i < LS_CONTROL_CLIENTS; i++)
                if (s->control.clients[i].in >= 0 && s->control.clients[i].serial == serial)
                        vanswer(&s->control.clients[i], error, ap);
        va_end(ap);
}

static void do_enable(struct ls_session *s, struct ls_control_client *c, const char *argument)
{
        (void)argument;
        ls_pause_set(s, 0);
        answer(c, NULL);
}

static void do_disable(struct ls_session *s, struct ls_control_client *c, const char *argument)
{
        (void)argument;
        ls_pause_set(s, 1);
        answer(c, NULL);
}

static void do_ping(struct ls_session *s, struct ls_control_client *c, const char *argument)
{
        (void)s, (void)argument;
        answer(c, NULL);
}

/* The file is whole when the answer comes. */
static void do_snapshot(struct ls_session *s, struct ls_control_client *c, const char *argument)
{
        int r;

        if (s->flight.out_fd >= 0) {
                r = ls_flight_write(s, argument, c->serial);
                if (r < 0)
                        answer(c, "snapshot: %s: %s", argument ? argument : s->o->output,
                               r == -EBUSY ? "others are being written; try again" : strerror(-r));
                return;
        }
        r = ls_rotate_now(s, argument);
        if (r == -ENOTSUP)
                answer(c, "snapshot: %s is not a file of its own", s->o->output);
        else if (r == -ESTALE)
                answer(c, "snapshot: %s is no longer the file that is being written", s->o->output);
        else if (r < 0)
                answer(c, "snapshot: %s: %s", argument ? argument : s->o->output, strerror(-r));
        else
                answer(c, NULL);
}

/* Its answer comes when the trace is whole. */
static void do_stop(struct ls_session *s, struct ls_control_client *c, const char *argument)
{
        (void)argument;
        s->control.stop = 1;
        s->control.stopper = c;
}

static const struct {
        const char *name;
        int takes_argument;
        void (*run)(struct ls_session *s, struct ls_control_client *c, const char *argument);
} commands[] = {
        { "enable", 0, do_enable },
        { "disable", 0, do_disable },
        { "snapshot", 1, do_snapshot },
        { "ping", 0, do_ping },
        { "stop", 0, do_stop },
};

static void run_line(struct ls_session *s, struct ls_control_client *c)
{
        char *line = c->line, *argument;
        size_t n = c->len;

        while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == ' '))
                n--;
        line[n] = 0;
        if (!n)
                return;
        argument = strchr(line, ' ');
        if (argument)
                *argument++ = 0;
        for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
                if (strcmp(line, commands[i].name) != 0)
                        continue;
                if (strlen(line) + (argument ? strlen(argument) + 1 : 0) != n)
                        answer(c, "%s: there is a zero byte in the line", line);
                else if (argument && !commands[i].takes_argument)
                        answer(c, "%s takes no argument", line);
                else
                        commands[i].run(s, c, argument);
                return;
        }
        answer(c, "no such command; there are: enable, disable, snapshot, ping, stop");
}

static void take_byte(struct ls_session *s, struct ls_control_client *c, char byte)
{
        if (byte != '\n') {
                if (c->len + 1 < sizeof(c->line))
                        c->line[c->len++] = byte;
                else
                        c->too_long = 1;
                return;
        }
        if (c->too_long)
                answer(c, "the line has more than %u bytes", LS_CONTROL_LINE - 1);
        else
                run_line(s, c);
        c->too_long = 0;
        c->len = 0;
}

/* One piece at a time: whoever writes without end does not keep the recorder from its work. */
static void take_input(struct ls_session *s, struct ls_control_client *c)
{
        char buf[4096];
        ssize_t n = read(c->in, buf, sizeof(buf));

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        for (ssize_t i = 0; i < n && c->in >= 0 && !s->control.stop; i++)
                take_byte(s, c, buf[i]);
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

void ls_control_handle(struct ls_session *s)
{
        struct pollfd p[LS_CONTROL_FDS];
        unsigned n = ls_control_poll(&s->control, p);

        if (!n || poll(p, n, 0) <= 0)
                return;
        for (unsigned i = 0; i < n; i++) {
                if (!p[i].revents)
                        continue;
                if (p[i].fd == s->control.listener)
                        take_client(&s->control);
                for (unsigned k = 0; k < LS_CONTROL_CLIENTS && !s->control.stop; k++)
                        if (s->control.clients[k].in == p[i].fd)
                                take_input(s, &s->control.clients[k]);
        }
}

static void remove_made(const struct ls_control_made *made)
{
        struct stat st;

        if (*made->path && lstat(made->path, &st) == 0 && st.st_dev == made->dev && st.st_ino == made->ino)
                unlink(made->path);
}

void ls_control_done(struct ls_control *c)
{
        for (unsigned i = 0; i < 2; i++) {
                remove_made(&c->made[i]);
                *c->made[i].path = 0;
        }
        if (c->stopper)                 /* who hears this finds all as it was */
                answer(c->stopper, NULL);
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
