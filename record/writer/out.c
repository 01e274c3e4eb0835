/* The recorder's end of the writer: see out.h. */
#include "record/writer/out.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "formats/wire/clock.h"
#include "record/process/descriptors.h"
#include "record/worker/confine.h"
#include "record/worker/worker.h"
#include "record/writer/answer.h"
#include "record/writer/main.h"

#define HANG_MS                                                                                    \
        300000u /* of a writer that the program has taken over: names take two minutes at most */
#define END_MS 100

struct ls_out {
        struct ls_out_config cfg;
        int socket, ask;                /* -1 = not open */
        pid_t pid;                      /* 0 = it has ended, or is a copy */
        uint64_t cpu_ns;                /* when it had ended */
        struct ls_out_figures *figures;
        pid_t pids[LS_TARGETS_MAX];     /* of targets, 0 = the number is free */
        size_t used;                    /* of what is to be sent */
        _Alignas(8) char buf[LS_OUT_ROOM];
};

static const uint8_t answered[] = {
#define LS_OUT(NAME, yes) [LS_OUT_##NAME] = yes,
#include "record/writer/ops.def"
#undef LS_OUT
};

static void close_fd(int *fd)
{
        if (*fd >= 0)
                close(*fd);
        *fd = -1;
}

/* It has died, or is to die. */
static void give_up(struct ls_out *o)
{
        struct rusage used;

        close_fd(&o->socket);
        close_fd(&o->ask);
        o->used = 0;
        if (o->pid && ls_worker_end(o->pid, END_MS, &used))
                o->cpu_ns = ls_rusage_ns(&used);
        o->pid = 0;
}

static int spawn(struct ls_out *o, int socket, int ask, int page)
{
        const int fds[] = { socket, ask, page, o->cfg.full_fd };
        char uid[16], gid[16];
        const char *argv[] = { LS_WORKER_ARGV0, LS_OUT_ROLE, uid, gid, NULL };
        struct ls_rights rights;
        pid_t pid;

        ls_rights_nobody(&rights);
        snprintf(uid, sizeof(uid), "%u", (unsigned)rights.uid);
        snprintf(gid, sizeof(gid), "%u", (unsigned)rights.gid);
        pid = ls_worker_spawn(argv, NULL, fds, o->cfg.full_fd >= 0 ? 4 : 3);
        o->pid = pid > 0 ? pid : 0;
        return pid < 0 ? (int)pid : 0;
}

/* Two ends, of which ours is in nobody's way. */
static int pair(int *ret_ours, int *ret_other)
{
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        *ret_ours = ls_fd_above_stdio(fds[0]);
        *ret_other = ls_fd_above_stdio(fds[1]);
        return *ret_ours < 0 ? *ret_ours : *ret_other < 0 ? *ret_other : 0;
}

static int start(struct ls_out *o)
{
        int socket = -1, ask = -1, err = pair(&o->socket, &socket), page = -1;
        int kernel = o->cfg.setup.native
                             ? ls_fd_above_stdio(open("/proc/kallsyms", O_RDONLY | O_CLOEXEC))
                             : -1;
        struct ls_out_message setup = { .op = LS_OUT_SETUP,
                                        .data = &o->cfg.setup,
                                        .len = sizeof(o->cfg.setup),
                                        .fds = { kernel > 0 ? kernel : 0 } };
        void *figures;

        if (!err)
                err = pair(&o->ask, &ask);
        if (!err) {
                page = ls_memory_share(sizeof(*o->figures), &figures);
                err = page < 0 ? page : 0;
        }
        if (!err) {
                o->figures = figures;
                err = spawn(o, socket, ask, page);
        }
        if (!err)
                ls_out_tell(o, &setup, NULL);
        close_fd(&socket);
        close_fd(&ask);
        close_fd(&page);
        close_fd(&kernel);
        return err;
}

int ls_out_start(const struct ls_out_config *cfg, struct ls_out **ret)
{
        struct ls_out *o = calloc(1, sizeof(*o));
        int err;

        if (!o)
                return -ENOMEM;
        o->cfg = *cfg;
        o->socket = o->ask = -1;
        err = start(o);
        if (err < 0)
                ls_out_end(o);
        else
                *ret = o;
        return err;
}

void ls_out_end(struct ls_out *o)
{
        if (!o)
                return;
        give_up(o);
        if (o->figures)
                munmap(o->figures, sizeof(*o->figures));
        free(o);
}

int ls_out_fd(const struct ls_out *o)
{
        return o ? o->ask : -1;
}

int ls_out_is_dead(const struct ls_out *o)
{
        return o && o->socket < 0;
}

/* Whether this is a process of ours, whose files it may have. */
static int has_pid(const struct ls_out *o, pid_t pid)
{
        for (unsigned i = 0; i < LS_TARGETS_MAX; i++)
                if (pid > 0 && o->pids[i] == pid)
                        return 1;
        return 0;
}

static void answer(struct ls_out *o, struct ls_ask *ask)
{
        struct ls_answer a = { .error = 0 };
        int fd = 0, fds[LS_OUT_FDS] = { 0 };

        ask->text[sizeof(ask->text) - 1] = 0;
        if (ask->op == LS_ASK_NOTICE) {
                o->cfg.notice(o->cfg.ctx, ask->text);
                return;
        }
        if (ask->op == LS_ASK_LOOK) {
                o->cfg.look(o->cfg.ctx);
                return;
        }
        ls_answer(ask, has_pid(o, ask->pid), o->cfg.workers, &a, &fd);
        fds[0] = fd > 0 ? fd : 0;
        if (ls_wire_send(o->ask, &a, offsetof(struct ls_answer, text) + strlen(a.text) + 1, fds,
                         MSG_DONTWAIT) < 0)
                give_up(o);             /* it does not wait for answers: it is no longer ours */
        if (fd > 0 && ask->op != LS_ASK_WORKER)
                close(fd);
}

static void answer_all(struct ls_out *o)
{
        struct ls_ask ask;
        int fds[LS_OUT_FDS];
        ssize_t n;

        while (o->ask >= 0 &&
               (n = ls_wire_receive(o->ask, &ask, sizeof(ask), fds, MSG_DONTWAIT)) != -EAGAIN) {
                for (unsigned i = 0; i < LS_OUT_FDS; i++)
                        close_fd(&fds[i]);
                if (n != sizeof(ask))
                        give_up(o);
                else
                        answer(o, &ask);
        }
}

/* Until the socket is ready for these events. Returns 0 or -EOWNERDEAD. */
static int await(struct ls_out *o, short events)
{
        uint64_t until = ls_clock_ns(CLOCK_MONOTONIC) / 1000000u + HANG_MS;

        while (o->socket >= 0) {
                struct pollfd p[] = { { .fd = o->socket, .events = events },
                                      { .fd = o->ask, .events = POLLIN } };

                if (ls_clock_ns(CLOCK_MONOTONIC) / 1000000u > until)
                        give_up(o);
                else if (poll(p, 2, 1000) > 0) {
                        if (p[1].revents)
                                answer_all(o);
                        if (p[0].revents)
                                return 0;
                }
        }
        return -EOWNERDEAD;
}

static void send_all(struct ls_out *o, const int *fds)
{
        int err = o->used ? -EAGAIN : 0;

        while (o->socket >= 0 && err == -EAGAIN) {
                err = ls_wire_send(o->socket, o->buf, o->used, fds, MSG_DONTWAIT);
                if (err == -EAGAIN)
                        await(o, POLLOUT);
        }
        if (err < 0 && o->socket >= 0)
                give_up(o);
        o->used = 0;
}

/* Data that is too much for a message. Returns a descriptor or -1. */
static int put_into_file(const struct ls_out_message *m)
{
        int fd = ls_fd_above_stdio(memfd_create("luasample", MFD_CLOEXEC));

        for (size_t done = 0; fd >= 0 && done < m->len;) {
                ssize_t n = write(fd, (const char *)m->data + done, m->len - done);

                if (n <= 0)
                        close_fd(&fd);
                else
                        done += (size_t)n;
        }
        return fd;
}

static void post(struct ls_out *o, const struct ls_out_message *m)
{
        struct ls_out_head h = { .op = m->op,
                                 .target = m->target,
                                 .len = m->len,
                                 .arg = { m->arg[0], m->arg[1], m->arg[2] } };
        int large = sizeof(h) + m->len > LS_OUT_ROOM / 2, file = large ? put_into_file(m) : -1;
        const int *fds = large ? &file : m->fds;
        size_t len = large ? 0 : m->len;

        if (large && file < 0)
                return;                 /* a fact less */
        h.in_file = (uint32_t)large;
        if (o->used + sizeof(h) + len + 8 > LS_OUT_ROOM)
                send_all(o, NULL);
        memcpy(o->buf + o->used, &h, sizeof(h));
        memcpy(o->buf + o->used + sizeof(h), len ? m->data : "", len);
        o->used += (sizeof(h) + len + 7) / 8 * 8;
        if (fds[0] > 0 || answered[m->op])
                send_all(o, large ? (const int[]){ file, 0 } : fds);
        close_fd(&file);
}

static int receive(struct ls_out *o, struct ls_out_reply *ret)
{
        int fds[LS_OUT_FDS], err = await(o, POLLIN);
        ssize_t n = err < 0 ? err
                            : ls_wire_receive(o->socket, ret, sizeof(*ret), fds, MSG_DONTWAIT);

        for (unsigned i = 0; err == 0 && i < LS_OUT_FDS; i++)
                close_fd(&fds[i]);
        if (n == sizeof(*ret) && ret->error <= 0 && ret->error > -4096)
                return ret->error;
        give_up(o);
        return -EOWNERDEAD;
}

int ls_out_tell(struct ls_out *o, const struct ls_out_message *m, struct ls_out_reply *ret)
{
        struct ls_out_reply reply;

        if (!o || o->socket < 0)
                return -EOWNERDEAD;
        post(o, m);
        if (!answered[m->op] || (m->op == LS_OUT_CLOSE && !o->figures))
                return o->socket < 0 ? -EOWNERDEAD : 0;
        return receive(o, ret ? ret : &reply);
}

void ls_out_serve(struct ls_out *o)
{
        if (!o)
                return;
        send_all(o, NULL);
        answer_all(o);
}

int ls_out_number(struct ls_out *o, pid_t pid)
{
        for (int i = 0; o && i < LS_TARGETS_MAX; i++)
                if (!o->pids[i]) {
                        o->pids[i] = pid;
                        return i;
                }
        return -1;
}

void ls_out_done(struct ls_out *o, unsigned target)
{
        ls_out_tell(o, &(struct ls_out_message){ .op = LS_OUT_DONE, .target = target }, NULL);
        o->pids[target] = 0;
}

struct ls_out *ls_out_copy(struct ls_out *o)
{
        struct ls_out *copy = calloc(1, sizeof(*copy));
        struct ls_out_message m = { .op = LS_OUT_COPY };
        int err = copy ? pair(&copy->socket, &m.fds[0]) : -ENOMEM;

        if (!copy) {
                errno = ENOMEM;
                return NULL;
        }
        copy->ask = -1;
        if (err == 0)
                err = ls_out_tell(o, &m, NULL);
        if (m.fds[0] > 0)
                close(m.fds[0]);
        if (err == 0)
                return copy;
        ls_out_end(copy);
        errno = -err;
        return NULL;
}

int ls_out_has_closed(struct ls_out *copy, int wait, int *ret_error)
{
        struct ls_out_reply reply;
        struct pollfd p = { .fd = copy->socket, .events = POLLIN };

        send_all(copy, NULL);
        if (!wait && copy->socket >= 0 && poll(&p, 1, 0) == 0)
                return 0;
        *ret_error = receive(copy, &reply);
        return 1;
}

const struct ls_out_figures *ls_out_figures(const struct ls_out *o)
{
        static const struct ls_out_figures none;

        return o && o->figures ? o->figures : &none;
}

uint64_t ls_out_cpu_ns(const struct ls_out *o)
{
        clockid_t clock;
        uint64_t sum;

        if (!o)
                return 0;
        sum = o->cpu_ns + ls_workers_cpu_ns(o->cfg.workers);
        return sum + (o->pid && clock_getcpuclockid(o->pid, &clock) == 0 ? ls_clock_ns(clock) : 0);
}
