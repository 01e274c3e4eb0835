/* libFuzzer target: any bytes as what clients of --control send. The first byte of each piece says
 * which client, whether it comes or leaves, and how long the piece is. Every line has one answer,
 * and an answer is a line. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "record/control.h"
#include "record/session.h"
#include "tests/fuzz/touch.h"

#define CLIENTS 4u

static struct ls_session session;

static void join(unsigned i, int ends[CLIENTS])
{
        struct ls_control_client *c = &session.control.clients[i];
        int pair[2];

        must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
        memset(c, 0, sizeof(*c));
        c->in = c->out = pair[0];
        c->serial = ++session.control.serial;
        ends[i] = pair[1];
}

static void leave(unsigned i, int ends[CLIENTS])
{
        close(ends[i]);
        ends[i] = -1;
}

/* Reads what has been answered: whole lines. */
static void hear(int end)
{
        char answers[65536];
        ssize_t n = recv(end, answers, sizeof(answers), MSG_DONTWAIT);

        for (ssize_t at = 0; at < n;) {
                const char *line = answers + at, *newline = memchr(line, '\n', (size_t)(n - at));

                must(newline != NULL);
                must(!strncmp(line, "ack\n", 4) || !strncmp(line, "ack agent_ns=", 13) ||
                     !strncmp(line, "error: ", 7));
                at += newline - line + 1;
        }
}

static void play(const uint8_t *data, size_t size, int ends[CLIENTS])
{
        for (size_t at = 0; at + 2 <= size && !session.control.stop;) {
                unsigned i = data[at] % CLIENTS, leaves = data[at] & 0x80;
                size_t n = data[at + 1];

                at += 2;
                if (n > size - at)
                        n = size - at;
                if (ends[i] < 0)
                        join(i, ends);
                must(send(ends[i], data + at, n, MSG_NOSIGNAL) >= 0 || errno == EPIPE);
                at += n;
                if (leaves)
                        shutdown(ends[i], SHUT_WR);
                ls_control_handle(&session);
                hear(ends[i]);
                if (session.control.clients[i].in < 0)
                        leave(i, ends);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        /* Not a file of its own: a snapshot is refused, whatever it is to be called. */
        static const struct ls_record_options options = { .output = (char *)"-" };
        int ends[CLIENTS];

        memset(&session, 0, sizeof(session));
        session.o = &options;
        session.trace_fd = -1;
        session.flight.out_fd = -1;
        session.control.listener = -1;
        for (unsigned i = 0; i < LS_CONTROL_CLIENTS; i++)
                session.control.clients[i].in = session.control.clients[i].out = -1;
        for (unsigned i = 0; i < CLIENTS; i++)
                ends[i] = -1;
        play(data, size, ends);
        ls_control_done(&session.control);
        for (unsigned i = 0; i < CLIENTS; i++)
                if (ends[i] >= 0)
                        leave(i, ends);
        return 0;
}
