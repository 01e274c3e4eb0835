/* Questions to workers: see worker.h. */
#include "record/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "formats/wire/clock.h"
#include "record/worker/confine.h"
#include "record/worker/serve.h"

#define WORKERS_MOST 32u                /* users at a time; further ones get the least rights */
#define STARTS_MOST 8u /* of one worker, and one more a minute: what kills so many is left alone */
#define IDLE_MS      60000u             /* until one that nobody holds is ended */
#define BAD_MOST     64u                /* files that are not asked about any more, the last ones */
#define SOON_ALL_MS 2000u /* for all such questions, and one part in so many of the time: */
#define SOON_SHARE   20u
#define LATE_ALL_MS  60000u             /* the same for names */
#define NOTICES_MOST 4u
#define END_MS       100                /* for the end of one that is killed */
#define SOON_MS      2000               /* for what the recorder's rings wait */
#define HEADERS_MS   5000               /* for headers in memory: no ring waits */
#define LATE_MS      15000              /* for names: debug information of large programs */
#define SERVER_MS 120000 /* where a debuginfod server may be asked; symbols.c gives those up */

struct ls_worker {
        struct ls_workers *all;
        struct ls_rights rights;
        int root_fd;                    /* the target's root directory when it is not ours; -1 =
                                         * ours */
        int socket;                     /* -1 = it does not run */
        pid_t pid;
        uint32_t generation;            /* of all workers: which process this is */
        uint32_t tenant;                /* of its place: users that have had it before */
        unsigned starts;
        unsigned held;                  /* by so many targets */
        unsigned files;                 /* that it was told of since its start */
        uint64_t used_ms;               /* CLOCK_MONOTONIC when somebody wanted it last */
        uint64_t began_ms, soon_ms, late_ms;    /* its first question; time for answers of both
                                                 * kinds */
};

struct ls_workers {
        struct ls_worker list[WORKERS_MOST + 1];        /* the last: of the least rights */
        unsigned n;
        uint32_t generation;
        uint64_t cpu_ns;                /* of those that have ended */
        char *bad[BAD_MOST];            /* paths: a worker died of them, or took too long */
        unsigned n_bad;
        unsigned notices;
        void (*notice)(void *ctx, const char *text);
        void *ctx;
        const struct ls_workers_door *door;     /* NULL = this process starts and ends them */
};

static struct ls_worker_request request;        /* 8 KiB; there is one thread */
static int request_fds[LS_WORKER_FDS] = { -1, -1 };    /* go with it */
static struct ls_worker_reply reply;

static uint64_t now_ms(void)
{
        return ls_clock_ns(CLOCK_MONOTONIC) / 1000000u;
}

struct ls_workers *ls_workers_new(void (*notice)(void *ctx, const char *text), void *ctx)
{
        struct ls_workers *ws = calloc(1, sizeof(*ws));

        if (!ws)
                return NULL;
        ws->notice = notice;
        ws->ctx = ctx;
        for (unsigned i = 0; i <= WORKERS_MOST; i++)
                ws->list[i] = (struct ls_worker){ .all = ws, .root_fd = -1, .socket = -1 };
        ls_rights_nobody(&ws->list[WORKERS_MOST].rights);
        return ws;
}

static void stop(struct ls_worker *w)
{
        struct rusage used;

        if (w->socket < 0)
                return;
        close(w->socket);
        w->socket = -1;
        w->files = 0;
        if (w->all->door)
                w->all->door->end(ls_worker_place(w, NULL));
        else if (ls_worker_end(w->pid, END_MS, &used))
                w->all->cpu_ns += ls_rusage_ns(&used);
}

void ls_workers_free(struct ls_workers *ws)
{
        if (!ws)
                return;
        for (unsigned i = 0; i <= WORKERS_MOST; i++) {
                stop(&ws->list[i]);
                if (ws->list[i].root_fd >= 0)
                        close(ws->list[i].root_fd);
        }
        for (unsigned i = 0; i < BAD_MOST; i++)
                free(ws->bad[i]);
        free(ws);
}

uint64_t ls_workers_cpu_ns(const struct ls_workers *ws)
{
        uint64_t sum = ws ? ws->cpu_ns : 0;

        for (unsigned i = 0; ws && i <= WORKERS_MOST; i++) {
                clockid_t clock;

                if (ws->list[i].socket >= 0 && clock_getcpuclockid(ws->list[i].pid, &clock) == 0)
                        sum += ls_clock_ns(clock);
        }
        return sum;
}

/* The place becomes free for another user. */
static void give_back(struct ls_worker *w)
{
        stop(w);
        if (w->root_fd >= 0)
                close(w->root_fd);
        *w = (struct ls_worker){
                .all = w->all, .root_fd = -1, .socket = -1, .tenant = w->tenant + 1
        };
}

/* A place that is free, or of which nobody has asked for the longest time. NULL = all are held. */
static struct ls_worker *free_place(struct ls_workers *ws)
{
        struct ls_worker *oldest = NULL;

        if (ws->n < WORKERS_MOST)
                return &ws->list[ws->n++];
        for (unsigned i = 0; i < WORKERS_MOST; i++)
                if (!ws->list[i].held && (!oldest || ws->list[i].used_ms < oldest->used_ms))
                        oldest = &ws->list[i];
        if (oldest)
                give_back(oldest);
        return oldest;
}

void ls_workers_hold(struct ls_worker *w, struct ls_worker *last)
{
        if (w)
                w->held++;
        if (last)
                last->held--;
}

void ls_workers_second(struct ls_workers *ws)
{
        uint64_t now = now_ms();

        for (unsigned i = 0; ws && i < ws->n; i++)
                if (ws->list[i].used_ms && !ws->list[i].held && now - ws->list[i].used_ms > IDLE_MS)
                        give_back(&ws->list[i]);
}

struct ls_worker *ls_workers_of(struct ls_workers *ws, pid_t pid, struct ls_worker *last)
{
        struct ls_rights rights;
        struct ls_worker *w, *place;
        int root_fd;

        if (!ws)
                return NULL;
        w = &ws->list[WORKERS_MOST];
        if (w->rights.is_own)           /* whoever the program is: we can be nobody else */
                return w;
        if (!pid || ls_rights_of(pid, &rights) < 0)
                return last ? last : w;
        for (unsigned i = 0; i < ws->n; i++)
                if (ws->list[i].used_ms && ls_rights_same(&ws->list[i].rights, &rights)) {
                        ws->list[i].used_ms = now_ms();
                        return &ws->list[i];
                }
        root_fd = ls_rights_open_root(pid, &rights);
        if (root_fd == -ENOENT)         /* where it is cannot be told */
                return w;
        place = free_place(ws);
        if (!place) {
                if (root_fd >= 0)
                        close(root_fd);
                return w;
        }
        place->rights = rights;
        place->root_fd = root_fd;
        place->used_ms = now_ms();
        return place;
}

uid_t ls_worker_uid(const struct ls_worker *w)
{
        return w ? w->rights.uid : geteuid();
}

static int start_there(struct ls_worker *w)
{
        int fd = w->all->door->start(ls_worker_place(w, NULL));

        if (fd < 0)
                return fd;
        w->socket = fd;
        w->generation = ++w->all->generation;
        return 0;
}

static int start(struct ls_worker *w)
{
        char uid[16], gid[16];
        /* Servers are the user's own wish, for programs of his own. */
        int servers = getenv("DEBUGINFOD_URLS") && w->rights.uid == getuid() && w->root_fd < 0;
        const char *argv[] = {
                LS_WORKER_ARGV0, "files", uid, gid, w->root_fd >= 0 ? "root" : "-", NULL
        };
        int pair[2], fds[2];

        if (w->all->door)
                return start_there(w);
        if (w->starts >= STARTS_MOST + (now_ms() - w->began_ms) / 60000u)
                return -EPIPE;
        snprintf(uid, sizeof(uid), "%u", (unsigned)w->rights.uid);
        snprintf(gid, sizeof(gid), "%u", (unsigned)w->rights.gid);
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        fds[0] = pair[1];
        fds[1] = w->root_fd;
        w->pid = ls_worker_spawn(argv, servers ? environ : NULL, fds, w->root_fd >= 0 ? 2 : 1);
        close(pair[1]);
        if (w->pid < 0) {
                close(pair[0]);
                return w->pid;
        }
        w->starts++;
        w->socket = pair[0];
        w->generation = ++w->all->generation;
        return 0;
}

int ls_workers_lend(struct ls_workers *ws, unsigned place)
{
        struct ls_worker *w = place <= WORKERS_MOST ? &ws->list[place] : NULL;
        int err;

        if (!w || (place < WORKERS_MOST && !w->used_ms))
                return -EPERM;          /* nobody has it */
        stop(w);
        w->began_ms = w->began_ms ? w->began_ms : now_ms();
        err = start(w);
        return err < 0 ? err : w->socket;
}

void ls_workers_lent_end(struct ls_workers *ws, unsigned place)
{
        if (place <= WORKERS_MOST)
                stop(&ws->list[place]);
}

unsigned ls_worker_place(const struct ls_worker *w, uint32_t *ret_tenant)
{
        if (ret_tenant)
                *ret_tenant = w->tenant;
        return (unsigned)(w - w->all->list);
}

void ls_workers_through(struct ls_workers *ws, const struct ls_workers_door *door)
{
        ws->door = door;
}

struct ls_worker *ls_workers_place(struct ls_workers *ws, unsigned place, uint32_t tenant)
{
        struct ls_worker *w = &ws->list[place < WORKERS_MOST ? place : WORKERS_MOST];

        if (w->tenant != tenant) {      /* what ran there has been ended */
                if (w->socket >= 0)
                        close(w->socket);
                *w = (struct ls_worker){ .all = ws, .root_fd = -1, .socket = -1, .tenant = tenant };
        }
        return w;
}

/* Whether its names may come from a server, which takes long. */
static int has_servers(const struct ls_worker *w)
{
        return w && w->all->door ? w->all->door->servers : getenv("DEBUGINFOD_URLS") != NULL;
}

/* Waits for the answer. Returns its bytes, -ETIME, or -EPIPE: there is nobody. */
static ssize_t receive(struct ls_worker *w, int ms)
{
        uint64_t until = now_ms() + (uint64_t)ms, now;
        struct pollfd p = { .fd = w->socket, .events = POLLIN };
        ssize_t n;
        int r;

        do {
                now = now_ms();
                r = poll(&p, 1, until > now ? (int)(until - now) : 0);
        } while (r < 0 && errno == EINTR);
        if (r <= 0)
                return -ETIME;
        n = recv(w->socket, &reply, sizeof(reply), 0);
        return n > 0 ? n : -EPIPE;
}

static int check_exprs(const struct ls_cfi_exprs *e, size_t size)
{
        if (size < ls_cfi_exprs_size(0) || e->n_ops > LS_CFI_OPS_MAX ||
            size < ls_cfi_exprs_size(e->n_ops))
                return -EPROTO;
        if (!e->cfa.n)
                return -EPROTO;
        for (unsigned i = 0; i <= LS_NREGS; i++) {
                const struct ls_cfi_expr *x = i < LS_NREGS ? &e->reg[i] : &e->cfa;

                if (x->rule >= LS_CFI_NRULES || x->first > e->n_ops || x->n > e->n_ops - x->first)
                        return -EPROTO;
        }
        return 0;
}

static int check_row(const struct ls_cfi_row *row)
{
        int ok = row->cfa_reg < LS_NREGS;

        for (unsigned i = 0; i < LS_CFI_NSAVED; i++)
                ok &= row->rule[i] <= LS_CFI_LOST;
        return ok ? 0 : -EPROTO;
}

static int check_object(const struct ls_object *o)
{
        uint8_t flags = o->is_elf | o->bits32 | o->other_arch | o->has_interpreter | o->is_glibc |
                        o->is_musl | o->sanitizer | o->hides_luajit;

        /* Its addresses say nothing but where to look in the process itself. */
        if (o->thread.size > LS_OBJECT_TLS || o->thread.offset > 0 ||
            o->thread.offset < -LS_OBJECT_TLS_FAR)
                return -EPROTO;
        return flags > 1 || o->id_len > LS_OBJECT_ID || o->libc_version >= 10000 ? -EPROTO : 0;
}

/* Whether what came makes sense. Returns 0 or -EPROTO. */
static int check(uint32_t op, size_t size)
{
        size_t tail = size - offsetof(struct ls_worker_reply, text);

        if (size < offsetof(struct ls_worker_reply, text) || reply.error > 0)
                return -EPROTO;
        if (reply.error)
                return 0;
        if (op == LS_WORKER_ROW)
                return reply.row.exprs ? check_exprs(&reply.exprs, tail) : check_row(&reply.row);
        if (op == LS_WORKER_LOADED || op == LS_WORKER_IMAGE)
                return tail < sizeof(reply.object) ? -EPROTO : check_object(&reply.object);
        if (op == LS_WORKER_CORE)
                return tail < sizeof(reply.core) ||
                                       !memchr(reply.core.name, 0, sizeof(reply.core.name))
                               ? -EPROTO
                               : 0;
        if (reply.id_len > sizeof(reply.id) || reply.len > tail || reply.len >= sizeof(reply.text))
                return -EPROTO;
        if (memchr(reply.text, 0, reply.len))
                return -EPROTO;
        reply.text[reply.len] = 0;
        return 0;
}

/* Files may be such that each answer takes nearly as long as it may, and the recorder has more to
 * do. */
static int has_time(struct ls_worker *w, int ms)
{
        uint64_t now = now_ms();

        if (!w->began_ms)
                w->began_ms = now;
        return ms == SOON_MS ? w->soon_ms <= SOON_ALL_MS + (now - w->began_ms) / SOON_SHARE
                             : w->late_ms <= LATE_ALL_MS + (now - w->began_ms) / SOON_SHARE;
}

static ssize_t send_request(const struct ls_worker *w, size_t size)
{
        union { struct cmsghdr head; char bytes[CMSG_SPACE(sizeof(request_fds))]; } control = {
                .head = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
        struct iovec v = { &request, size };
        struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
        size_t n = request_fds[0] < 0 ? 0 : request_fds[1] < 0 ? sizeof(int) : 2 * sizeof(int);

        if (n) {
                memcpy(CMSG_DATA(&control.head), request_fds, n);
                control.head.cmsg_len = CMSG_LEN(n);
                m.msg_control = &control;
                m.msg_controllen = CMSG_SPACE(n);
        }
        return sendmsg(w->socket, &m, MSG_NOSIGNAL);
}

/* Has the request answered. Returns 0 with the reply, -errno of the answer, -EAGAIN: there is no
 * time for it, or -EPIPE: the worker died, hung or said nonsense; it is ended, and the next request
 * starts another. */
static int ask(struct ls_worker *w, int ms)
{
        size_t size = offsetof(struct ls_worker_request, text) + request.len[0] + request.len[1];
        uint64_t began;
        ssize_t n;
        int err;

        if (!w) {
                n = (ssize_t)ls_worker_answer(&request, size, request_fds, &reply);
                err = check(request.op, (size_t)n);
                return err ? err : reply.error;
        }
        if (!has_time(w, ms))
                return -EAGAIN;
        err = w->socket < 0 ? start(w) : 0;
        if (err)
                return err;
        began = now_ms();
        n = send_request(w, size) == (ssize_t)size ? receive(w, ms) : -EPIPE;
        *(ms == SOON_MS ? &w->soon_ms : &w->late_ms) += now_ms() - began;
        err = n < 0 ? (int)n : check(request.op, (size_t)n);
        if (!err)
                return reply.error;
        stop(w);
        return -EPIPE;
}

static void set_text(unsigned i, const char *text)
{
        size_t n = strnlen(text, PATH_MAX - 1);

        memcpy(request.text + (i ? request.len[0] : 0), text, n);
        request.len[i] = (uint32_t)n;
}

static void begin(enum ls_worker_op op, pid_t pid, const char *text)
{
        memset(&request, 0, offsetof(struct ls_worker_request, text));
        request.op = op;
        request.pid = (int32_t)pid;
        request_fds[0] = request_fds[1] = -1;
        set_text(0, text);
}

static void complain(struct ls_worker *w, const char *path)
{
        char text[PATH_MAX + 100];

        if (!w || !w->all->notice || w->all->notices++ >= NOTICES_MOST)
                return;
        snprintf(text, sizeof(text),
                 "%s could not be read: names and native stacks may be missing in it", path);
        w->all->notice(w->all->ctx, text);
}

static int is_bad(const struct ls_worker *w, const char *path)
{
        for (unsigned i = 0; w && i < BAD_MOST; i++)
                if (w->all->bad[i] && !strcmp(w->all->bad[i], path))
                        return 1;
        return 0;
}

static void note_bad(struct ls_worker *w, const char *path)
{
        char **at;

        complain(w, path);
        if (!w)
                return;
        at = &w->all->bad[w->all->n_bad++ % BAD_MOST];
        free(*at);
        *at = strdup(path);
}

static int blame(struct ls_worker *w, struct ls_worker_file *f, int err)
{
        if (err == -EPIPE) {
                f->bad = 1;
                note_bad(w, f->path);
        }
        return err;
}

/* Its table of files is full, of which most may be of programs that have ended. */
static void begin_anew(struct ls_worker *w)
{
        stop(w);
        w->starts--;
}

/* A request about the file, which the worker knows after this. */
static int begin_file(struct ls_worker *w, struct ls_worker_file *f, enum ls_worker_op op,
                      uint64_t offset)
{
        uint32_t generation = w ? w->generation : 1;
        int err;

        if (!f->generation)
                f->bad = is_bad(w, f->path);
        err = f->bad ? -ENOENT : 0;
        if (!err && (!f->generation || f->generation != generation || (w && w->socket < 0))) {
                if (w && w->files == LS_WORKER_FILES)
                        begin_anew(w);
                begin(LS_WORKER_OPEN, f->pid, f->path);
                request.id_len = f->build_id_len <= LS_WORKER_ID ? f->build_id_len : 0;
                if (request.id_len)
                        memcpy(request.id, f->build_id, request.id_len);
                err = blame(w, f, ask(w, SOON_MS));
                if (w && !err)
                        w->files++;
                f->number = reply.file;
                f->generation = w ? w->generation : 1;
        }
        begin(op, f->pid, "");
        request.file = f->number;
        request.offset = offset;
        return err;
}

int ls_worker_row(struct ls_worker *w, struct ls_worker_file *f, uint64_t offset,
                  struct ls_cfi_row *ret_row, uint64_t *ret_function)
{
        int err = begin_file(w, f, LS_WORKER_ROW, offset);

        if (!err)
                err = blame(w, f, ask(w, SOON_MS));
        if (err)
                return err;
        *ret_row = reply.row;
        ret_row->exprs = NULL;
        *ret_function = reply.function <= offset ? reply.function : offset;
        if (reply.row.exprs) {
                size_t size = ls_cfi_exprs_size(reply.exprs.n_ops);

                ret_row->exprs = malloc(size);
                if (!ret_row->exprs)
                        return -ENOMEM;
                memcpy(ret_row->exprs, &reply.exprs, size);
        }
        return 0;
}

int ls_worker_symbol(struct ls_worker *w, struct ls_worker_file *f, uint64_t offset, char *ret_name,
                     size_t size)
{
        int err = begin_file(w, f, LS_WORKER_SYMBOL, offset);

        if (!err)
                err = blame(w, f, ask(w, has_servers(w) ? SERVER_MS : LATE_MS));
        if (!err)
                snprintf(ret_name, size, "%s", reply.text);
        return err;
}

size_t ls_worker_build_id(struct ls_worker *w, pid_t pid, const char *path, uint8_t *ret_id,
                          size_t size)
{
        int err;

        if (is_bad(w, path))
                return 0;
        begin(LS_WORKER_BUILD_ID, pid, path);
        err = ask(w, SOON_MS);
        if (err == -EPIPE)
                note_bad(w, path);
        if (err || reply.id_len > size)
                return 0;
        memcpy(ret_id, reply.id, reply.id_len);
        return reply.id_len;
}

int ls_worker_same(struct ls_worker *w, pid_t pid, const char *a, const char *b)
{
        begin(LS_WORKER_SAME, pid, a);
        set_text(1, b);
        return ask(w, SOON_MS) == 0 && reply.size == 1;
}

int ls_worker_has_luajit(struct ls_worker *w, const char *path)
{
        const char *search = getenv("PATH");

        begin(LS_WORKER_HAS_LUAJIT, 0, path);
        set_text(1, search ? search : "");
        return ask(w, SOON_MS) == 0 && reply.size == 1;
}

int ls_worker_source(struct ls_worker *w, const char *dir, const char *name, char *ret_path,
                     uint64_t *ret_size, uint64_t *ret_hash)
{
        int err;

        begin(LS_WORKER_SOURCE, 0, dir);
        set_text(1, name);
        err = ask(w, SOON_MS);
        if (err)
                return err;
        memcpy(ret_path, reply.text, reply.len + 1u);
        *ret_size = reply.size;
        *ret_hash = reply.hash;
        return 0;
}

int ls_workers_memory(struct ls_workers *ws, pid_t pid, struct ls_worker **ret_worker)
{
        struct ls_worker *before = ls_workers_of(ws, pid, NULL);
        char path[64];
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        *ret_worker = ls_workers_of(ws, pid, NULL);
        if (*ret_worker == before)
                return fd;
        close(fd);
        return -ESRCH;
}

static int ask_object(struct ls_worker *w, struct ls_object *ret)
{
        int err = ask(w, HEADERS_MS);

        if (!err)
                *ret = reply.object;
        return err;
}

int ls_worker_loaded(struct ls_worker *w, int memory, uint64_t base, struct ls_object *ret)
{
        begin(LS_WORKER_LOADED, 0, "");
        request_fds[0] = memory;
        request.offset = base;
        return ask_object(w, ret);
}

int ls_worker_image(struct ls_worker *w, int seen, struct ls_object *ret)
{
        begin(LS_WORKER_IMAGE, 0, "");
        request_fds[0] = seen;
        return ask_object(w, ret);
}

int ls_worker_core(struct ls_worker *w, int core, int maps, struct ls_worker_core *ret)
{
        int err;

        begin(LS_WORKER_CORE, 0, "");
        request_fds[0] = core;
        request_fds[1] = maps;
        err = ask(w, LATE_MS);
        if (!err)
                *ret = reply.core;
        return err;
}
