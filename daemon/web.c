/* The daemon's end of HTTP: see daemon.h. The HTTP process (http/) has no rights; what it asks for
 * is checked here, and done by a child that gives up its own as soon as it has opened the chunks
 * (record/worker/apart.h), with limits. The answer is a file in memory, whose descriptor it
 * gets. */
#include "daemon/daemon.h"

#ifdef LS_HAVE_HTTP

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/command.h"
#include "cli/listen.h"
#include "daemon/http/wire.h"
#include "formats/escape.h"
#include "record/worker/apart.h"
#include "record/worker/worker.h"
#include "record/writer/wire.h"

#define LS_WEB_KEEP_NS UINT64_C(3600000000000)  /* that a snapshot may have */
#define WORDS_MOST 24
#define LISTEN_MOST 128                 /* that wait to be accepted */

struct ls_web_query {
        struct ls_http_ask ask;         /* id: 0 = none */
        pid_t pid;                      /* 0 = it waits for its turn */
        int out, err, cancelled;
        uint64_t until_ns;
};

struct ls_web {
        int unix_fd, tcp_fd;            /* -1 = none */
        char *made;                     /* the unix socket, to be removed at the end */
        pid_t pid;                      /* 0 = none */
        int channel;
        uint64_t retry_ns, began_ns;
        int again;                      /* it was ended to begin anew */
        struct ls_http_setup setup;
        struct ls_web_query queries[LS_QUERIES_MOST];
};

/* --- sockets, and who may ask --- */

static int read_secret(const char *path, char *to, size_t size, const char *what)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error = fd < 0 ? -errno : 0;
        struct stat st;
        ssize_t n = 0;

        if (!error && fstat(fd, &st) < 0)
                error = -errno;
        if (!error && (!S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0) ||
                       st.st_mode & (S_IWGRP | S_IWOTH))) {
                ls_error("%s: the %s must be a file of yours, and not writable by others", path,
                         what);
                close(fd);
                return -EPERM;
        }
        if (!error && (n = read(fd, to, size)) < 0)
                error = -errno;
        if (fd >= 0)
                close(fd);
        if (!error && (n == 0 || (size_t)n == size)) {
                ls_error("%s: the %s is empty, or has more than %zu bytes", path, what, size - 1);
                return -EINVAL;
        }
        if (error) {
                ls_error("%s: %s", path, strerror(-error));
                return error;
        }
        to[n] = 0;
        return 0;
}

static int read_secrets(const struct ls_config *c, struct ls_http_setup *s)
{
        int error = 0;

        if (c->http_token)
                error = read_secret(c->http_token, s->token, sizeof(s->token), "token");
        s->token[strcspn(s->token, "\r\n")] = 0;
        if (!error && c->http_token && strlen(s->token) < 16) {
                ls_error("%s: the token has less than 16 characters", c->http_token);
                error = -EINVAL;
        }
        if (!error && c->http_certificate)
                error = read_secret(c->http_certificate, s->certificate, sizeof(s->certificate),
                                    "certificate");
        if (!error && c->http_key)
                error = read_secret(c->http_key, s->key, sizeof(s->key), "key");
        s->has_tls = c->http_certificate != NULL;
        return error;
}

/* "127.0.0.1:6061", "[::1]:6061". Returns the length of the address, or -EINVAL. *ret_host: as Host
 * has it. */
static int read_address(const char *text, struct sockaddr_storage *ret, char *ret_host, size_t size,
                        int *ret_loopback)
{
        struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)ret;
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)ret;
        const char *colon = strrchr(text, ':');
        char host[64], *end;
        unsigned long port = colon && colon[1] ? strtoul(colon + 1, &end, 10) : 0;
        size_t n = colon ? (size_t)(colon - text) : 0;

        if (!port || port > 65535 || *end || !n || n >= sizeof(host))
                return -EINVAL;
        snprintf(ret_host, size, "%.*s", (int)n, text);
        memset(ret, 0, sizeof(*ret));
        if (*text == '[' && text[n - 1] == ']') {
                snprintf(host, sizeof(host), "%.*s", (int)n - 2, text + 1);
                v6->sin6_family = AF_INET6;
                v6->sin6_port = htons((uint16_t)port);
                *ret_loopback = inet_pton(AF_INET6, host, &v6->sin6_addr) == 1 &&
                                IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
                return inet_pton(AF_INET6, host, &v6->sin6_addr) == 1 ? (int)sizeof(*v6) : -EINVAL;
        }
        snprintf(host, sizeof(host), "%.*s", (int)n, text);
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        if (inet_pton(AF_INET, strcmp(host, "localhost") ? host : "127.0.0.1", &v4->sin_addr) != 1)
                return -EINVAL;
        *ret_loopback = ntohl(v4->sin_addr.s_addr) >> 24 == 127;
        return (int)sizeof(*v4);
}

static int listen_tcp(int fd, const void *address, unsigned len)
{
        return bind(fd, address, len) < 0 || listen(fd, LISTEN_MOST) < 0 ? -errno : 0;
}

static int listen_unix(int fd, const void *path, unsigned len)
{
        (void)len;
        return ls_listen_at(fd, path, LISTEN_MOST);
}

/* That of a daemon which was killed may be listened to for a moment, until its HTTP process has
 * ended, too: the store is ours, so there is no other daemon. */
static int listen_soon(int (*fn)(int fd, const void *at, unsigned len), int fd, const void *at,
                       unsigned len)
{
        const struct timespec moment = { 0, 20000000 };
        int error = fn(fd, at, len);

        for (int i = 0; error == -EADDRINUSE && i < 100; i++) {
                nanosleep(&moment, NULL);
                error = fn(fd, at, len);
        }
        return error;
}

static int is_guarded(const struct ls_config *c)
{
        if (c->http_token && c->http_certificate)
                return 1;
        ls_error("[http] listen = %s: off loopback give token-file, certificate and key too",
                 c->http_listen);
        return 0;
}

static int open_tcp(const struct ls_config *c, struct ls_web *w)
{
        struct sockaddr_storage a;
        int loopback = 0, one = 1,
            len = read_address(c->http_listen, &a, w->setup.address, sizeof(w->setup.address),
                               &loopback);

        if (len < 0) {
                ls_error("[http] listen = %s: give an address with its port, such as "
                         "127.0.0.1:6061 or [::1]:6061",
                         c->http_listen);
                return len;
        }
        if (!loopback && !is_guarded(c))
                return -EINVAL;
        w->tcp_fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (w->tcp_fd < 0 || setsockopt(w->tcp_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
                len = -errno;
        else
                len = listen_soon(listen_tcp, w->tcp_fd, &a, (unsigned)len);
        if (!len) {
                w->setup.has_tcp = 1;
                return 0;
        }
        ls_error("[http] listen = %s: %s", c->http_listen, strerror(-len));
        return len;
}

static int read_group(const struct ls_config *c, struct ls_http_setup *s)
{
        const struct group *gr = c->http_group ? getgrnam(c->http_group) : NULL;

        if (c->http_group && !gr) {
                ls_error("[http] group = %s: there is no such group", c->http_group);
                return -EINVAL;
        }
        s->owner = geteuid();
        s->group = gr ? gr->gr_gid : getegid();
        return 0;
}

static int open_unix(struct ls_daemon *d, struct ls_web *w)
{
        const char *path = d->config.http_socket;
        int error = read_group(&d->config, &w->setup);

        if (error)
                return error;
        w->unix_fd = ls_socket_inherited(1);
        if (w->unix_fd < 0) {
                error = ls_socket_directory(path);
                if (error)
                        return error;
                w->unix_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
                error = w->unix_fd < 0 ? -errno : listen_soon(listen_unix, w->unix_fd, path, 0);
                if (!error &&
                    (lchown(path, (uid_t)-1, w->setup.group) < 0 || chmod(path, 0660) < 0))
                        error = -errno;
                if (error) {
                        ls_error("[http] socket = %s: %s", path, strerror(-error));
                        return error;
                }
                w->made = strdup(path);
        }
        w->setup.has_unix = 1;
        return 0;
}

int ls_web_open(struct ls_daemon *d)
{
        struct ls_web *w;
        int error;

        if (!d->config.http)
                return 0;
        w = d->web = calloc(1, sizeof(*w));
        if (!w)
                return -ENOMEM;
        w->unix_fd = w->tcp_fd = w->channel = -1;
        for (unsigned i = 0; i < LS_QUERIES_MOST; i++)
                w->queries[i].out = w->queries[i].err = -1;
        snprintf(w->setup.host, sizeof(w->setup.host), "%s",
                 d->config.http_host ? d->config.http_host : "");
        error = read_secrets(&d->config, &w->setup);
        if (!error)
                error = open_unix(d, w);
        if (!error && d->config.http_listen)
                error = open_tcp(&d->config, w);
        return error;
}

static int same(const char *a, const char *b)
{
        return a && b ? !strcmp(a, b) : a == b;
}

int ls_web_reload(struct ls_daemon *d, const struct ls_config *c)
{
        static struct ls_http_setup now;
        struct ls_web *w = d->web;
        struct sockaddr_storage a;
        int error, loopback = 1;

        if (d->config.http != c->http ||
            (c->http && (!same(d->config.http_socket, c->http_socket) ||
                         !same(d->config.http_listen, c->http_listen)))) {
                ls_error("%s: enable, socket and listen of [http] cannot be changed by a reload: "
                         "stop the daemon, and start it again",
                         d->config_path);
                return -EINVAL;
        }
        if (!w)
                return 0;
        now = w->setup;
        memset(now.token, 0, sizeof(now.token));
        memset(now.host, 0, sizeof(now.host));
        memset(now.certificate, 0, sizeof(now.certificate));
        memset(now.key, 0, sizeof(now.key));
        snprintf(now.host, sizeof(now.host), "%s", c->http_host ? c->http_host : "");
        error = read_secrets(c, &now);
        if (!error)
                error = read_group(c, &now);
        if (!error && c->http_listen &&
            read_address(c->http_listen, &a, now.address, sizeof(now.address), &loopback) > 0 &&
            !loopback && !is_guarded(c))
                error = -EINVAL;
        if (!error && w->made && now.group != w->setup.group &&
            lchown(w->made, (uid_t)-1, now.group) < 0) {
                error = -errno;
                ls_error("[http] group = %s: %s: %s", c->http_group, w->made, strerror(-error));
        }
        if (!error && memcmp(&now, &w->setup, sizeof(now))) {
                w->setup = now;
                w->retry_ns = 0;
                w->again = w->pid > 0;
                if (w->pid > 0)         /* what it serves is cut */
                        kill(w->pid, SIGKILL);
        }
        explicit_bzero(&now, sizeof(now));
        return error;
}

/* --- the process --- */

void ls_web_start(struct ls_daemon *d)
{
        const char *const words[] = { LS_WORKER_ARGV0, LS_HTTP_ROLE, NULL };
        struct ls_web *w = d->web;
        uint64_t now = ls_daemon_now();
        int pair[2], null, fds[3];
        pid_t pid;

        if (!w || w->pid || now < w->retry_ns || d->stopping)
                return;
        w->retry_ns = now + LS_BACK_OFF_NS;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return;
        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        fds[0] = pair[1];
        fds[1] = w->unix_fd >= 0 ? w->unix_fd : null;
        fds[2] = w->tcp_fd >= 0 ? w->tcp_fd : null;
        pid = ls_worker_spawn(words, NULL, fds, 3);
        close(pair[1]);
        if (null >= 0)
                close(null);
        if (pid <= 0 || ls_wire_send(pair[0], &w->setup, sizeof(w->setup), NULL, MSG_DONTWAIT)) {
                close(pair[0]);
                if (pid > 0)
                        kill(pid, SIGKILL);
                return;
        }
        fcntl(pair[0], F_SETFL, O_NONBLOCK);
        w->pid = pid;
        w->channel = pair[0];
        w->began_ns = now;
}

int ls_web_fd(const struct ls_daemon *d)
{
        return d->web ? d->web->channel : -1;
}

/* Takes fd; -1 = none. */
static void answer(struct ls_web *w, uint32_t id, int status, const char *text, int fd)
{
        struct ls_http_answer a = { .id = id, .status = status };
        int fds[LS_OUT_FDS];

        memset(fds, -1, sizeof(fds));
        fds[0] = fd;
        snprintf(a.text, sizeof(a.text), "%s", text);
        if (w->channel >= 0)
                ls_wire_send(w->channel, &a, sizeof(a), fd >= 0 ? fds : NULL, MSG_DONTWAIT);
        if (fd >= 0)
                close(fd);
}

/* --- what needs no trace --- */

static int put_all(int fd, const char *text, size_t n)
{
        while (n) {
                ssize_t done = write(fd, text, n);

                if (done <= 0)
                        return -EIO;
                text += done;
                n -= (size_t)done;
        }
        return 0;
}

/* As ctl asks for it. Returns the answer without "ok ", or NULL with why. */
static char *ask_own(struct ls_daemon *d, const char *words, char *why, size_t size)
{
        static struct ls_client c;
        char line[160], *text = NULL;

        memset(&c, 0, sizeof(c));
        c.fd = -1;
        snprintf(line, sizeof(line), "%s", words);
        ls_request(d, &c, line);
        if (c.out && !strncmp(c.out, "ok ", 3))
                text = strdup(c.out + 3);
        else
                snprintf(why, size, "%.*s", c.out ? (int)strcspn(c.out + 7, "\n") : 0,
                         c.out ? c.out + 7 : "");
        free(c.out);
        return text;
}

static char *ask_all(struct ls_daemon *d)
{
        char why[64], *status = ask_own(d, "status", why, sizeof(why)),
                      *targets = ask_own(d, "targets", why, sizeof(why));
        char *text = status && targets
                             ? ls_print("{\"status\":%s,\"targets\":%s}\n", status, targets)
                             : NULL;

        free(status);
        free(targets);
        return text;
}

/* What HTTP may ask for: nothing that stops or detaches. */
static int may_ask(const char *words)
{
        static const char *const known[] = { "status", "targets", "burst", "snapshot",
                                             "operation" };
        size_t n = strcspn(words, " ");

        for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
                if (strlen(known[i]) == n && !strncmp(known[i], words, n))
                        return strcspn(words, "\r\n") == strlen(words);
        return 0;
}

/* What is kept is never pruned: over HTTP not a whole store is. */
static int keeps_much(const char *words)
{
        const char *time = strrchr(words, ' ');
        uint64_t ns;

        if (strncmp(words, "snapshot ", 9) || ls_parse_duration(time + 1, "", &ns))
                return 0;
        return ns > LS_WEB_KEEP_NS;
}

static void do_request(struct ls_daemon *d, const struct ls_http_ask *q)
{
        char why[LS_HTTP_TEXT] = "no memory", *text;
        int fd;

        if (!strcmp(q->text, "ready")) {
                answer(d->web, q->id, d->full || d->stopping ? 503 : 200,
                       d->full ? "the store's disk is full" : "the daemon ends", -1);
                return;
        }
        if (strcmp(q->text, "all") && !may_ask(q->text)) {
                answer(d->web, q->id, 400, "this cannot be asked for", -1);
                return;
        }
        if (keeps_much(q->text)) {
                answer(d->web, q->id, 400,
                       "over HTTP the last hour at most is kept; see ctl snapshot", -1);
                return;
        }
        text = strcmp(q->text, "all") ? ask_own(d, q->text, why, sizeof(why)) : ask_all(d);
        fd = text ? memfd_create("luasample-answer", MFD_CLOEXEC) : -1;
        if (fd >= 0 && put_all(fd, text, strlen(text)) == 0)
                answer(d->web, q->id, 200, "", fd);
        else
                answer(d->web, q->id, !strncmp(why, "there is no ", 12) ? 404 : 409, why, fd);
        free(text);
}

/* --- what reads traces --- */

struct web_words {
        char *v[WORDS_MOST + 1];
        unsigned n;
};

static void add(struct web_words *w, char *text)
{
        if (text && w->n < WORDS_MOST)
                w->v[w->n++] = text;
}

static char *time_word(const char *key, uint64_t ms)
{
        return ls_print("--%s=@%" PRIu64 ".%03u", key, ms / 1000, (unsigned)(ms % 1000));
}

/* Only words that were checked, each with its option. */
static void make_words(struct web_words *w, const struct ls_daemon *d, const struct ls_http_ask *q)
{
        static const char *const commands[] = { [LS_HTTP_EXPORT] = "export",
                                                [LS_HTTP_FLAME] = "report",
                                                [LS_HTTP_DIFF] = "diff",
                                                [LS_HTTP_STACK] = "stack" };

        add(w, strdup(q->op == LS_HTTP_STACK ? "luasample" : LS_APART_ARGV0));
        add(w, strdup(commands[q->op]));
        if (q->op == LS_HTTP_STACK) {
                add(w, ls_print("%d", (int)q->pid));
                return;
        }
        add(w, ls_print("--store=%s", d->store.path));
        if (*q->service)
                add(w, ls_print("--service=%s", q->service));
        add(w, time_word("since", q->from_ms));
        add(w, time_word("until", q->to_ms));
        if (q->pid)
                add(w, ls_print("--process=%d", (int)q->pid));
        if (q->op == LS_HTTP_EXPORT) {
                add(w, ls_print("--format=%s", q->format));
                if (*q->event)
                        add(w, ls_print("--event=%s", q->event));
                if (!strcmp(q->format, "otlp"))
                        add(w, strdup("--experimental"));
        } else {
                add(w, strdup("--html"));
        }
        if (q->op == LS_HTTP_DIFF)
                add(w, ls_print("--before=%" PRIu64 "ms", q->before_ms));
}

static void become_query(const struct ls_daemon *d, const struct ls_web_query *q, pid_t parent)
{
        const int is_stack = q->ask.op == LS_HTTP_STACK;        /* its workers have own limits */
        struct web_words words = { .n = 0 };
        const struct ls_child query = { .words = (const char *const *)(uintptr_t)words.v,
                                        .parent = parent,
                                        .end_signal = is_stack ? SIGTERM : SIGKILL,
                                        .out = q->out,
                                        .err = q->err,
                                        .nice = 10,
                                        .cpu_s = is_stack ? 0 : LS_QUERY_CPU_S,
                                        .memory = is_stack ? 0 : LS_QUERY_BYTES,
                                        .file = is_stack ? 0 : LS_QUERY_FILE };

        make_words(&words, d, &q->ask);
        ls_child_become(&query);
}

static void query_done(struct ls_web_query *q)
{
        if (q->out >= 0)
                close(q->out);
        if (q->err >= 0)
                close(q->err);
        memset(q, 0, sizeof(*q));
        q->out = q->err = -1;
}

static int start_query(struct ls_daemon *d, struct ls_web_query *q)
{
        pid_t self = getpid();

        q->out = memfd_create("luasample-answer", MFD_CLOEXEC);
        q->err = memfd_create("luasample-answer", MFD_CLOEXEC);
        q->pid = q->out < 0 || q->err < 0 ? -1 : fork();
        if (q->pid == 0)
                become_query(d, q, self);
        if (q->pid < 0) {
                q->pid = 0;
                return -EAGAIN;
        }
        q->until_ns = ls_daemon_now() + LS_QUERY_NS;
        return 0;
}

/* The next ones, when there is room. */
static void start_queries(struct ls_daemon *d)
{
        unsigned running = 0;

        for (unsigned i = 0; i < LS_QUERIES_MOST; i++)
                running += d->web->queries[i].pid > 0;
        for (unsigned i = 0; i < LS_QUERIES_MOST && running < LS_QUERIES_AT_ONCE; i++) {
                struct ls_web_query *q = &d->web->queries[i];

                if (!q->ask.id || q->pid || q->cancelled)
                        continue;
                if (start_query(d, q) == 0) {
                        running++;
                        continue;
                }
                answer(d->web, q->ask.id, 503, "no process can be started", -1);
                query_done(q);
        }
}

/* Of the HTTP process, which others may have: each text ends, and is what it says. Returns NULL, or
 * what is wrong. */
static const char *check_query(struct ls_daemon *d, struct ls_http_ask *q)
{
        const struct ls_watched *w = q->pid > 0 ? ls_daemon_find(d, q->pid) : NULL;

        q->service[sizeof(q->service) - 1] = q->event[sizeof(q->event) - 1] =
                q->format[sizeof(q->format) - 1] = 0;
        if (*q->service && !ls_service_name_ok(q->service))
                return "service: not a name";
        if (strspn(q->event, "abcdefghijklmnopqrstuvwxyz") != strlen(q->event) ||
            strspn(q->format, "abcdefghijklmnopqrstuvwxyz-") != strlen(q->format) ||
            *q->format == '-')
                return "not a format";
        if (q->pid < 0 || q->from_ms >= q->to_ms || !q->before_ms)
                return "from is not before to, or before now";
        if (q->op == LS_HTTP_STACK && !w)
                return "no rule names this process";
        if (w && !*q->service)
                memcpy(q->service, w->service, sizeof(w->service));
        return NULL;
}

static void do_query(struct ls_daemon *d, struct ls_http_ask *ask)
{
        const char *wrong = check_query(d, ask);

        if (wrong) {
                answer(d->web, ask->id, ask->op == LS_HTTP_STACK ? 404 : 400, wrong, -1);
                return;
        }
        for (unsigned i = 0; i < LS_QUERIES_MOST; i++) {
                struct ls_web_query *q = &d->web->queries[i];

                if (q->ask.id)
                        continue;
                q->ask = *ask;
                start_queries(d);
                return;
        }
        answer(d->web, ask->id, 429, "too many questions at one time", -1);
}

static void cancel(struct ls_daemon *d, uint32_t id)
{
        for (unsigned i = 0; i < LS_QUERIES_MOST; i++) {
                struct ls_web_query *q = &d->web->queries[i];

                if (!q->ask.id || (id && q->ask.id != id))
                        continue;
                if (q->pid > 0) {
                        q->cancelled = 1;
                        kill(q->pid, q->ask.op == LS_HTTP_STACK ? SIGTERM : SIGKILL);
                } else {
                        query_done(q);
                }
        }
}

/* What it has said, without the command's name; in text. Returns 1 when a line of it is no
 * warning. */
static int first_error(int fd, char *text, size_t size)
{
        char buf[2048], *line, *rest = buf;
        ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);

        buf[n > 0 ? n : 0] = 0;
        snprintf(text, size, "it failed");
        while ((line = strsep(&rest, "\n"))) {
                const char *said = strncmp(line, "luasample: ", 11) ? line : line + 11;
                const char *colon = strchr(said, ':');

                if (!*line || !strncmp(said, "warning: ", 9))
                        continue;
                snprintf(text, size, "%s",
                         colon && colon[1] == ' ' && strcspn(said, " ") > (size_t)(colon - said)
                                 ? colon + 2
                                 : said);
                return 1;
        }
        return 0;
}

/* Exit statuses are those of run_apart in luasample.c. */
static int http_status(const struct ls_web_query *q, int status, int failed)
{
        struct stat st;
        int n = fstat(q->out, &st) == 0 && st.st_size > 0;

        if (WIFSIGNALED(status))
                return WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGXFSZ ||
                                       WTERMSIG(status) == SIGKILL
                               ? 429
                               : 500;
        switch (WEXITSTATUS(status)) {
        case 0:
                return 200;
        case LS_EXIT_FAIL:              /* no samples in that time are an answer, too */
                return q->ask.op == LS_HTTP_STACK ? 404 : !failed && n ? 200 : 400;
        case LS_EXIT_USAGE:
                return 400;
        case LS_STORE_EXIT_NONE:
                return 404;
        case LS_STORE_EXIT_MUCH:
                return 429;
        default:
                return 500;
        }
}

int ls_web_ended(struct ls_daemon *d, pid_t pid, int status)
{
        struct ls_web *w = d->web;

        if (!w || pid <= 0)
                return 0;
        if (pid == w->pid) {
                if (w->again)
                        ls_daemon_say("HTTP is served anew, by what [http] says now");
                else if (!d->stopping)
                        ls_daemon_say("the HTTP process ended with %s %d",
                                      WIFSIGNALED(status) ? "signal" : "status",
                                      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
                cancel(d, 0);
                close(w->channel);
                w->channel = -1;
                w->pid = w->again = 0;
                ls_web_start(d);
                return 1;
        }
        for (unsigned i = 0; i < LS_QUERIES_MOST; i++) {
                struct ls_web_query *q = &w->queries[i];
                char text[LS_HTTP_TEXT];
                int failed, code;

                if (q->pid != pid)
                        continue;
                failed = first_error(q->err, text, sizeof(text));
                code = http_status(q, status, failed);
                if (code == 429 && !failed)
                        snprintf(text, sizeof(text), "this takes too much: choose a shorter time");
                if (!q->cancelled) {
                        answer(w, q->ask.id, code, code == 200 ? "" : text,
                               code == 200 ? q->out : -1);
                        q->out = code == 200 ? -1 : q->out;
                }
                query_done(q);
                start_queries(d);
                return 1;
        }
        return 0;
}

void ls_web_read(struct ls_daemon *d)
{
        struct ls_web *w = d->web;
        struct ls_http_ask q;
        ssize_t n;

        ls_web_start(d);
        for (int i = 0; w && w->channel >= 0 && i < 64; i++) {
                n = recv(w->channel, &q, sizeof(q), MSG_DONTWAIT);      /* without descriptors */
                if (n == 0 && w->pid > 0)       /* closed, and the process lives on */
                        kill(w->pid, SIGKILL);
                if (n != sizeof(q))
                        break;
                q.text[sizeof(q.text) - 1] = 0;
                if (q.op == LS_HTTP_CANCEL)
                        cancel(d, q.id);
                else if (q.op == LS_HTTP_REQUEST)
                        do_request(d, &q);
                else if (q.op < LS_HTTP_CANCEL && q.id)
                        do_query(d, &q);
        }
        for (unsigned i = 0; w && i < LS_QUERIES_MOST; i++)
                if (w->queries[i].pid > 0 && ls_daemon_now() > w->queries[i].until_ns)
                        kill(w->queries[i].pid, SIGKILL);
}

void ls_web_done(struct ls_daemon *d)
{
        struct ls_web *w = d->web;

        if (!w)
                return;
        cancel(d, 0);
        for (unsigned i = 0; i < LS_QUERIES_MOST; i++)
                if (w->queries[i].pid > 0)
                        waitpid(w->queries[i].pid, NULL, 0);
        if (w->channel >= 0)
                close(w->channel);
        if (w->pid > 0) {
                kill(w->pid, SIGKILL);
                waitpid(w->pid, NULL, 0);
        }
        if (w->unix_fd >= 0)
                close(w->unix_fd);
        if (w->tcp_fd >= 0)
                close(w->tcp_fd);
        if (w->made)
                unlink(w->made);
        free(w->made);
        explicit_bzero(w, sizeof(*w));
        free(w);
        d->web = NULL;
}

#else

#include <errno.h>

#include "cli/command.h"

int ls_web_open(struct ls_daemon *d)
{
        if (!d->config.http_listen)
                return 0;
        ls_error("[http] listen = %s: this luasample was built without libmicrohttpd",
                 d->config.http_listen);
        return -ENOTSUP;
}

int ls_web_reload(struct ls_daemon *d, const struct ls_config *c)
{
        (void)d;
        (void)c;
        return 0;
}

void ls_web_start(struct ls_daemon *d)
{
        (void)d;
}

int ls_web_fd(const struct ls_daemon *d)
{
        (void)d;
        return -1;
}

void ls_web_read(struct ls_daemon *d)
{
        (void)d;
}

int ls_web_ended(struct ls_daemon *d, pid_t pid, int status)
{
        (void)d;
        (void)pid;
        (void)status;
        return 0;
}

void ls_web_done(struct ls_daemon *d)
{
        (void)d;
}

#endif
