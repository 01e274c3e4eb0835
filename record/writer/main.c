/* The writer: a process that has given up all rights, and that alone looks at the rings of the
 * targets and writes the trace, as the recorder tells it. Started by out.c; luasample.c calls it by
 * its role. */
#include "record/writer/main.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/wire/clock.h"
#include "record/worker/confine.h"
#include "record/writer/ask.h"
#include "record/writer/ops.h"

#define SECOND_NS 1000000000ull
#define FULL_QUIET_NS 1000000ull        /* between two looks at rings that never stop to fill */

/* Data that were too much for a message: they end with a 0. Returns their bytes or -1. */
static ssize_t read_file(int fd, size_t len, char **ret)
{
        size_t done = 0;
        ssize_t n = 1;

        *ret = len < SIZE_MAX ? malloc(len + 1) : NULL;
        while (*ret && done < len && n > 0) {
                n = pread(fd, *ret + done, len - done, (off_t)done);
                done += n > 0 ? (size_t)n : 0;
        }
        if (!*ret || done < len)
                return -1;
        (*ret)[done] = 0;
        return (ssize_t)done;
}

/* Does it, and answers. Returns 0 or -errno: the recorder is no longer there. */
static int do_message(struct ls_serve *s, const struct ls_out_head *h, char *data,
                      int fds[LS_OUT_FDS])
{
        struct ls_out_reply reply = { .error = 0 };
        char *file = NULL, end;
        ssize_t len = h->in_file ? read_file(fds[0], h->len, &file) : (ssize_t)h->len;
        int err;

        if (len < 0) {
                free(file);
                return -EPROTO;
        }
        end = data[h->in_file ? 0 : len];
        if (!file)
                data[len] = 0;          /* texts end there: it is the first byte of what follows */
        err = ls_serve_op(s, h, file ? file : data, (size_t)len, fds, &reply.value);
        if (!file)
                data[len] = end;
        free(file);
        if (!ls_serve_answers(h->op) || err == LS_SERVE_QUIET)
                return 0;
        reply.error = err < 0 ? err : err > 0 ? -EIO : 0;
        return ls_wire_send(s->socket, &reply, sizeof(reply), NULL, 0);
}

/* The messages that have come together. Descriptors are the last one's. */
static int take_messages(struct ls_serve *s)
{
        static _Alignas(8) char buf[LS_OUT_ROOM + 8];
        int fds[LS_OUT_FDS], err = 0;
        ssize_t n = ls_wire_receive(s->socket, buf, LS_OUT_ROOM, fds, 0);

        for (size_t at = 0; n > 0 && err == 0 && at < (size_t)n;) {
                const struct ls_out_head *h = (const struct ls_out_head *)(const void *)(buf + at);
                size_t len = h->in_file ? 0 : h->len, size = (sizeof(*h) + len + 7) / 8 * 8;
                int none[LS_OUT_FDS] = { -1, -1 };

                if (sizeof(*h) + len > (size_t)n - at)
                        return -EPROTO;
                at += size;
                err = do_message(s, h, buf + at - size + sizeof(*h), at < (size_t)n ? none : fds);
        }
        return n < 0 ? (int)n : err;
}

static uint64_t next_look(const struct ls_serve *s, uint64_t now_ns)
{
        uint64_t due = now_ns + SECOND_NS;

        for (unsigned i = 0; i < s->n_targets && !s->settled; i++) {
                const struct ls_taken *t = s->targets[i];

                if (t && t->process && !t->finished && t->due_ns < due)
                        due = t->due_ns;
        }
        return due;
}

static int rings_fill_unseen(const struct ls_serve *s)
{
        for (unsigned i = 0; i < s->n_targets; i++)
                if (s->targets[i] && !s->targets[i]->process &&
                    atomic_load(&s->targets[i]->memory.shm->filling))
                        return 1;
        return 0;
}

/* Rings are looked at when they are due, or fill. */
static void look_at_rings(struct ls_serve *s, uint64_t now_ns, int fills)
{
        uint64_t n;

        if (fills) {
                s->full_ns = now_ns;
                while (read(s->full_fd, &n, sizeof(n)) == sizeof(n))
                        ;
                if (rings_fill_unseen(s))
                        ls_ask_look();
        }
        for (unsigned i = 0; i < s->n_targets; i++)
                if (s->targets[i])
                        ls_taken_work(s->targets[i], now_ns, 0);
        if (s->trace)
                ls_serve_flush(s, now_ns, 0);
}

static int turn(struct ls_serve *s)
{
        uint64_t now = ls_clock_ns(CLOCK_MONOTONIC), due = next_look(s, now);
        int quiet = s->settled || (s->full_ns && now - s->full_ns < FULL_QUIET_NS);
        struct pollfd p[] = { { .fd = s->socket, .events = POLLIN },
                              { .fd = quiet ? -1 : s->full_fd, .events = POLLIN } };
        struct timespec wait;

        if (quiet && !s->settled && s->full_ns + FULL_QUIET_NS < due)
                due = s->full_ns + FULL_QUIET_NS;
        due = due > now ? due - now : 0;
        wait = (struct timespec){ (time_t)(due / SECOND_NS), (long)(due % SECOND_NS) };
        if (ppoll(p, 2, &wait, NULL) < 0 && errno != EINTR)
                return -errno;
        if (p[0].revents)
                return take_messages(s);
        if (!s->settled)
                look_at_rings(s, ls_clock_ns(CLOCK_MONOTONIC), p[1].revents != 0);
        return 0;
}

/* Signals are the recorder's; a fault of our own ends us. A copy that has ended is nobody's to wait
 * for. */
static void leave_signals(void)
{
        static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
        sigset_t set;

        signal(SIGCHLD, SIG_IGN);
        sigfillset(&set);
        for (unsigned i = 0; i < sizeof(faults) / sizeof(*faults); i++)
                sigdelset(&set, faults[i]);
        sigprocmask(SIG_SETMASK, &set, NULL);
}

int ls_serve_main(int argc, const char **argv)
{
        static struct ls_serve s = { .socket = LS_OUT_FD_SOCKET, .full_fd = LS_OUT_FD_FULL };
        struct ls_rights rights;
        void *page = mmap(NULL, sizeof(*s.figures), PROT_READ | PROT_WRITE, MAP_SHARED,
                          LS_OUT_FD_FIGURES, 0);
        struct stat st;

        if (argc != 4 || page == MAP_FAILED)
                return 1;
        s.figures = page;
        close(LS_OUT_FD_FIGURES);
        if (fstat(LS_OUT_FD_FULL, &st) < 0)
                s.full_fd = -1;
        rights = (struct ls_rights){ .uid = (uid_t)strtoul(argv[2], NULL, 10),
                                     .gid = (gid_t)strtoul(argv[3], NULL, 10) };
        leave_signals();
        if (ls_confine(&rights, -1, LS_CONFINE_WRITER, 1) < 0)
                return 1;
        while (turn(&s) == 0)
                ;
        return 0;
}
