/* The HTTP process: see http.h. libmicrohttpd does the protocol, in our loop: a call waits for its
 * time, then for the daemon, and is suspended meanwhile. */
#include "daemon/http/http.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <yajl/yajl_tree.h>

#include "formats/escape.h"
#include "formats/export/export.h"
#include "record/worker/confine.h"
#include "record/writer/wire.h"
#include "store/store.h"

#define REQUEST_MEMORY (32u << 10)
#define UPLOAD_MOST 8192u
#define WRITTEN_MS 1500u                /* after its time until all of it is in the files */
#define WAIT_MOST_MS 1000u              /* the clock may be set */
#define JSON_MOST (16u << 20)

static struct ls_http_setup setup;
static struct ls_http_call *calls[2 * LS_HTTP_CALLS_MOST];
#define N_CALLS (sizeof(calls) / sizeof(*calls))
static uint32_t last_id;
static struct ls_http_count counts[16];
static unsigned n_counts;

const struct ls_http_count *ls_http_counts(unsigned *ret_n)
{
        *ret_n = n_counts;
        return counts;
}

static void count(unsigned status)
{
        unsigned i = 0;

        while (i < n_counts && counts[i].status != status)
                i++;
        if (i == sizeof(counts) / sizeof(*counts))
                return;
        n_counts = i == n_counts ? n_counts + 1 : n_counts;
        counts[i].status = status;
        counts[i].n++;
}

/* Takes response. */
static enum MHD_Result give(struct MHD_Connection *con, unsigned status, const char *type,
                            struct MHD_Response *r)
{
        enum MHD_Result result;

        if (!r)
                return MHD_NO;
        MHD_add_response_header(r, "Content-Type", type);
        MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
        MHD_add_response_header(r, "Cache-Control", "no-store");
        MHD_add_response_header(r, "X-Frame-Options", "DENY");
        MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
        MHD_add_response_header(r, "Content-Security-Policy",
                                "default-src 'none'; script-src 'unsafe-inline'; style-src "
                                "'unsafe-inline'; img-src data:; "
                                "form-action 'self'; frame-ancestors 'none'; base-uri 'none'");
        if (status == MHD_HTTP_UNAUTHORIZED)
                MHD_add_response_header(r, "WWW-Authenticate", "Basic realm=\"luasample\"");
        if (status == MHD_HTTP_TOO_MANY_REQUESTS)
                MHD_add_response_header(r, "Retry-After", "5");
        if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
                MHD_add_response_header(r, "Allow", "GET, HEAD, POST");
        count(status);
        result = MHD_queue_response(con, status, r);
        ls_http_reads(con);
        MHD_destroy_response(r);
        return result;
}

/* A line of text, without what could be more than text. */
static enum MHD_Result say(struct MHD_Connection *con, unsigned status, const char *text)
{
        char *visible = ls_visible(text, strlen(text)),
             *line = ls_print("%s\n", visible ? visible : "no memory");

        free(visible);
        if (!line)
                return MHD_NO;
        return give(con, status, "text/plain; charset=utf-8",
                    MHD_create_response_from_buffer(strlen(line), line, MHD_RESPMEM_MUST_FREE));
}

static const char *type_of(const struct ls_http_call *c)
{
        const struct ls_exporter *e = c->args.format;
        const char *end = e ? strrchr(e->suffix, '.') : NULL;

        if (c->endpoint->type)
                return c->endpoint->type;
        if (!e || e->flags & LS_EXPORT_BINARY)
                return "application/octet-stream";
        return !strcmp(end, ".json")  ? "application/json"
               : !strcmp(end, ".csv") ? "text/csv; charset=utf-8"
                                      : "text/plain; charset=utf-8";
}

/* The whole of an answer, with a 0 behind it; to be freed. NULL = it cannot be read. */
static char *read_answer(int fd, size_t *ret_n)
{
        struct stat st;
        char *text = NULL;
        size_t n = 0;
        ssize_t got = 1;

        if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < 0 || st.st_size > JSON_MOST)
                return NULL;
        text = malloc((size_t)st.st_size + 1);
        while (text && n < (size_t)st.st_size && got > 0) {
                got = pread(fd, text + n, (size_t)st.st_size - n, (off_t)n);
                n += got > 0 ? (size_t)got : 0;
        }
        if (text)
                text[n] = 0;
        *ret_n = n;
        return text;
}

/* What show makes of the daemon's answer. */
static enum MHD_Result give_shown(struct ls_http_call *c)
{
        char *made = NULL, *text;
        size_t n = 0, n_made = 0;
        FILE *out;
        int error = -ENOMEM;

        text = read_answer(c->fd, &n);
        out = text ? open_memstream(&made, &n_made) : NULL;
        if (out) {
                error = c->endpoint->show(c, text, out);
                if (fclose(out) && !error)
                        error = -ENOMEM;
        }
        free(text);
        if (error) {
                free(made);
                return say(c->connection, 500, "the daemon's answer is not understood");
        }
        return give(c->connection, 200,
                    c->openmetrics && c->endpoint->show == ls_http_metrics
                            ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                    : c->endpoint->show == ls_http_metrics
                            ? "text/plain; version=0.0.4; charset=utf-8"
                            : c->endpoint->type,
                    MHD_create_response_from_buffer(n_made, made, MHD_RESPMEM_MUST_FREE));
}

/* 202, and where to ask what came of it. */
static enum MHD_Result give_operation(struct ls_http_call *c)
{
        const char *key[] = { "operation", NULL };
        char why[64], location[64];
        size_t n = 0;
        char *text = read_answer(c->fd, &n);
        yajl_val v = text ? yajl_tree_parse(text, why, sizeof(why)) : NULL,
                 id = v ? yajl_tree_get(v, key, yajl_t_number) : NULL;
        struct MHD_Response *r;

        if (!id || !YAJL_IS_INTEGER(id)) {
                yajl_tree_free(v);
                free(text);
                return say(c->connection, 500, "the daemon's answer is not understood");
        }
        snprintf(location, sizeof(location), "/operations/%lld", YAJL_GET_INTEGER(id));
        yajl_tree_free(v);
        r = MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE);
        if (r)
                MHD_add_response_header(r, "Location", location);
        return give(c->connection, MHD_HTTP_ACCEPTED, c->endpoint->type, r);
}

static enum MHD_Result give_file(struct ls_http_call *c)
{
        struct MHD_Response *r;
        struct stat st;
        int fd = c->fd;

        if (fd < 0 || fstat(fd, &st) < 0)
                return say(c->connection, 500, "the daemon's answer is missing");
        c->fd = -1;
        r = MHD_create_response_from_fd((size_t)st.st_size, fd);
        if (!r) {
                close(fd);
                return MHD_NO;
        }
        if (c->endpoint->op == LS_HTTP_EXPORT) {
                const char *suffix = c->args.format ? c->args.format->suffix : ".pb.gz";
                char name[160];

                snprintf(name, sizeof(name), "attachment; filename=\"%s%s\"",
                         *c->args.service ? c->args.service : "profile", suffix);
                MHD_add_response_header(r, "Content-Disposition", name);
        }
        return give(c->connection, 200, type_of(c), r);
}

static enum MHD_Result give_answer(struct ls_http_call *c)
{
        c->answer.text[sizeof(c->answer.text) - 1] = 0;
        if (c->answer.status != 200)
                return say(c->connection,
                           c->answer.status >= 400 && c->answer.status < 600
                                   ? (unsigned)c->answer.status
                                   : 500,
                           c->answer.text);
        if (c->fd < 0)                  /* there was nothing to say */
                return say(c->connection, 200, "ok");
        if (c->endpoint->show)
                return give_shown(c);
        return strcmp(c->endpoint->method, "POST") ? give_file(c) : give_operation(c);
}

/* --- who may ask --- */

static int same_text(const char *a, const char *b)
{
        size_t n = strlen(a), m = strlen(b);
        unsigned differ = n != m;

        for (size_t i = 0; i < n; i++)  /* as long whatever is wrong */
                differ |= (unsigned char)a[i] ^ (unsigned char)b[m ? i % m : 0];
        return !differ;
}

static int has_token(struct MHD_Connection *con)
{
        const char *value = MHD_lookup_connection_value(con, MHD_HEADER_KIND, "Authorization");
        char *user = NULL, *password = NULL;
        int ok = 0;

        if (!*setup.token)
                return 1;
        if (value && !strncasecmp(value, "Bearer ", 7))
                return same_text(value + 7, setup.token);
        user = MHD_basic_auth_get_username_password(con, &password);
        ok = password && same_text(password, setup.token);
        MHD_free(user);
        MHD_free(password);
        return ok;
}

/* The kernel has let it connect, by the socket's mode; that may have been changed since. */
static int is_peer(struct MHD_Connection *con)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(con, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct ucred cred;
        socklen_t len = sizeof(cred);
        gid_t groups[256];

        if (!info || getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) ||
            len != sizeof(cred))
                return 0;
        if (!cred.uid || cred.uid == setup.owner || cred.gid == setup.group)
                return 1;
        len = sizeof(groups);
        if (getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len))
                return 0;
        for (size_t i = 0; i < len / sizeof(*groups); i++)
                if (groups[i] == setup.group)
                        return 1;
        return 0;
}

/* Host is a name of this host's that only we give out: a page of another name, which its owner lets
 * point here, is refused. */
static int is_host(const char *host)
{
        const char *own[] = { "localhost", "127.0.0.1", "[::1]", setup.address, setup.host };
        const char *colon = host ? strrchr(host, ':') : NULL,
                   *bracket = host ? strrchr(host, ']') : NULL;
        size_t n = !host                                    ? 0
                   : colon && (!bracket || bracket < colon) ? (size_t)(colon - host)
                                                            : strlen(host);

        for (size_t i = 0; n && i < sizeof(own) / sizeof(*own); i++)
                if (strlen(own[i]) == n && !strncasecmp(host, own[i], n))
                        return 1;
        return 0;
}

/* A form of another page may send, though not read: it says whose it is. */
static int is_own_origin(struct MHD_Connection *con)
{
        const char *origin = MHD_lookup_connection_value(con, MHD_HEADER_KIND, "Origin");
        const char *host = MHD_lookup_connection_value(con, MHD_HEADER_KIND, "Host");
        const char *site = MHD_lookup_connection_value(con, MHD_HEADER_KIND, "Sec-Fetch-Site");

        if (site && strcmp(site, "same-origin") && strcmp(site, "none"))
                return 0;
        if (!origin)
                return 1;
        origin = !strncmp(origin, "http://", 7)    ? origin + 7
                 : !strncmp(origin, "https://", 8) ? origin + 8
                                                   : "";
        return host && !strcasecmp(origin, host);
}

/* A person who follows a link to here. */
static int is_link(struct MHD_Connection *con, const char *method)
{
        const char *mode = MHD_lookup_connection_value(con, MHD_HEADER_KIND, "Sec-Fetch-Mode");

        return strcmp(method, "POST") && mode && !strcmp(mode, "navigate");
}

/* 0 = it may; else the status that says why not. */
static unsigned refuse(struct MHD_Connection *con, int is_unix, const char *method,
                       const char **why)
{
        *why = "this socket is for its owner and group";
        if (is_unix && !is_peer(con))
                return MHD_HTTP_FORBIDDEN;
        *why = "the Host of the request is none of this daemon's: name it in "
               "luasample-daemon.conf(5), host";
        if (!is_unix && !is_host(MHD_lookup_connection_value(con, MHD_HEADER_KIND, "Host")))
                return MHD_HTTP_FORBIDDEN;
        *why = "a token is needed: Authorization: Bearer TOKEN, or as the password";
        if (!is_unix && !has_token(con))
                return MHD_HTTP_UNAUTHORIZED;
        *why = "the request comes from a page of another site";
        return is_link(con, method) || is_own_origin(con) ? 0 : MHD_HTTP_FORBIDDEN;
}

/* --- calls --- */

static int ask(const struct ls_http_ask *a)
{
        return ls_wire_send(LS_HTTP_FD_CHANNEL, a, sizeof(*a), NULL, MSG_DONTWAIT);
}

static void call_free(struct ls_http_call *c)
{
        const struct ls_http_ask cancel = { .id = c->id, .op = LS_HTTP_CANCEL };

        if (c->state == LS_HTTP_ASKED)
                ask(&cancel);
        for (size_t i = 0; i < N_CALLS; i++)
                if (calls[i] == c)
                        calls[i] = NULL;
        if (c->fd >= 0)
                close(c->fd);
        free(c);
}

static void completed(void *cls, struct MHD_Connection *con, void **con_cls,
                      enum MHD_RequestTerminationCode why)
{
        (void)cls;
        (void)why;
        ls_http_sends(con);
        if (*con_cls)
                call_free(*con_cls);
        *con_cls = NULL;
}

static struct ls_http_call *call_new(struct MHD_Connection *con)
{
        struct ls_http_call *c;

        for (size_t i = 0; i < N_CALLS; i++) {
                if (calls[i])
                        continue;
                c = calloc(1, sizeof(*c));
                if (c) {
                        c->connection = con;
                        c->fd = -1;
                        calls[i] = c;
                }
                return c;
        }
        return NULL;
}

struct arguments {
        struct ls_http_call *c;
        char why[256];
        int wrong;
};

static enum MHD_Result take_argument(void *cls, enum MHD_ValueKind kind, const char *key,
                                     size_t n_key, const char *value, size_t n_value)
{
        struct arguments *a = cls;

        (void)kind;
        if (!a->wrong && (strlen(key) != n_key || (value && strlen(value) != n_value))) {
                snprintf(a->why, sizeof(a->why), "there is a zero byte in the arguments");
                a->wrong = 1;
        }
        if (!a->wrong && ls_http_argument(&a->c->args, a->c->endpoint->takes, key, value,
                                          ls_store_now_ms(), a->why, sizeof(a->why)))
                a->wrong = 1;
        return a->wrong ? MHD_NO : MHD_YES;
}

/* What ctl is asked for, with its target. Returns 0 or -EINVAL. */
static int make_words(struct ls_http_call *c, const char *url, char *why, size_t size)
{
        const struct ls_http_endpoint *e = c->endpoint;
        const char *id = url + strlen(e->path);

        if (!strcmp(e->path, "/operations/")) {
                if (!*id || strspn(id, "0123456789") != strlen(id) || strlen(id) > 10) {
                        snprintf(why, size, "an operation is a number");
                        return -EINVAL;
                }
                snprintf(c->words, sizeof(c->words), "%s %s", e->words, id);
        } else if (!strcmp(e->method, "POST")) {
                if (!*c->args.service == !c->args.pid) {
                        snprintf(why, size,
                                 e->takes & LS_HTTP_ARG_PID ? "give service or pid"
                                                            : "give service");
                        return -EINVAL;
                }
                if (c->args.pid)
                        snprintf(c->words, sizeof(c->words), "%s %d", e->words, (int)c->args.pid);
                else if (c->args.last_ms)
                        snprintf(c->words, sizeof(c->words), "%s %s %llums", e->words,
                                 c->args.service, (unsigned long long)c->args.last_ms);
                else
                        snprintf(c->words, sizeof(c->words), "%s %s", e->words, c->args.service);
        } else if (e->op == LS_HTTP_STACK && !c->args.pid) {
                snprintf(why, size, "give pid");
                return -EINVAL;
        }
        return 0;
}

static enum MHD_Result suspend(struct ls_http_call *c, int state)
{
        c->state = (unsigned)state;
        c->suspended = 1;
        ls_http_waits(c->connection);
        MHD_suspend_connection(c->connection);
        return MHD_YES;
}

static unsigned count_waits(void)
{
        unsigned n = 0;

        for (size_t i = 0; i < N_CALLS; i++)
                n += calls[i] && calls[i]->state == LS_HTTP_WAITS;
        return n;
}

/* Returns what the handler returns. */
static enum MHD_Result ask_daemon(struct ls_http_call *c)
{
        struct ls_http_ask a;

        c->id = ++last_id ? last_id : ++last_id;
        ls_http_make_ask(c, &a);
        if (ask(&a)) {
                c->answer.status = 503;
                snprintf(c->answer.text, sizeof(c->answer.text), "the daemon does not answer");
                c->state = LS_HTTP_DONE;
                return MHD_YES;
        }
        c->state = LS_HTTP_ASKED;
        return MHD_YES;
}

static enum MHD_Result begin(struct ls_http_call *c, const char *url)
{
        struct arguments a = { .c = c };
        const char *accept = MHD_lookup_connection_value(c->connection, MHD_HEADER_KIND, "Accept");
        const struct ls_http_endpoint *e = c->endpoint;

        c->openmetrics = accept && strstr(accept, "application/openmetrics-text") != NULL;
        MHD_get_connection_values_n(c->connection, MHD_GET_ARGUMENT_KIND, take_argument, &a);
        if (!a.wrong && ls_http_arguments_end(&c->args, a.why, sizeof(a.why)))
                a.wrong = 1;
        if (!a.wrong && make_words(c, url, a.why, sizeof(a.why)))
                a.wrong = 1;
        if (a.wrong)
                return say(c->connection, 400, a.why);
        if (e->op < 0)
                return say(c->connection, 200, "ok");
        if (c->args.seconds || (e->seconds && !c->args.last_ms && !c->args.from_ms)) {
                if (count_waits() >= LS_HTTP_WAITS_MOST)
                        return say(c->connection, MHD_HTTP_TOO_MANY_REQUESTS,
                                   "too many wait for time that is to pass");
                c->due_ms = ls_store_now_ms() +
                            (c->args.seconds ? c->args.seconds : e->seconds) * 1000ull;
                return suspend(c, LS_HTTP_WAITS);
        }
        if (ask_daemon(c) == MHD_YES && c->state == LS_HTTP_ASKED)
                return suspend(c, LS_HTTP_ASKED);
        return give_answer(c);
}

static enum MHD_Result handle(void *cls, struct MHD_Connection *con, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **con_cls)
{
        struct ls_http_call *c = *con_cls;
        const char *why;
        unsigned status;
        int reads = !strcmp(method, "GET") || !strcmp(method, "HEAD");

        (void)version;
        (void)upload;
        if (!c) {
                status = refuse(con, cls != NULL, method, &why);
                if (status)
                        return say(con, status, why);
                c = *con_cls = call_new(con);
                if (!c)
                        return say(con, MHD_HTTP_TOO_MANY_REQUESTS,
                                   "too many requests at one time");
                c->endpoint = ls_http_find(url);
                return MHD_YES;
        }
        if (*upload_size) {             /* what it says is in the URL */
                c->upload += *upload_size;
                *upload_size = 0;
                return c->upload > UPLOAD_MOST ? MHD_NO : MHD_YES;
        }
        if (c->state == LS_HTTP_DONE)
                return give_answer(c);
        if (c->state != LS_HTTP_NEW)
                return MHD_YES;
        if (!c->endpoint)
                return say(con, 404, "there is nothing of that name; / lists what there is");
        if (strcmp(c->endpoint->method, "POST") ? !reads : strcmp(method, "POST"))
                return say(con, MHD_HTTP_METHOD_NOT_ALLOWED,
                           c->endpoint->method[0] == 'P' ? "this is done by POST"
                                                         : "this is read by GET");
        return begin(c, url);
}

static void resume(struct ls_http_call *c)
{
        c->state = LS_HTTP_DONE;
        if (c->suspended)
                MHD_resume_connection(c->connection);
        c->suspended = 0;
}

/* Returns -1 when the daemon has gone. */
static int take_answer(void)
{
        struct ls_http_answer answer;
        int fds[LS_OUT_FDS];
        ssize_t n = ls_wire_receive(LS_HTTP_FD_CHANNEL, &answer, sizeof(answer), fds, MSG_DONTWAIT);

        if (n == -EAGAIN || n == -EINTR)
                return 0;
        if (n != sizeof(answer))
                return -1;
        for (size_t i = 0; i < N_CALLS; i++) {
                struct ls_http_call *c = calls[i];

                if (!c || c->state != LS_HTTP_ASKED || c->id != answer.id)
                        continue;
                c->answer = answer;
                c->fd = fds[0];
                fds[0] = -1;
                resume(c);
        }
        for (unsigned i = 0; i < LS_OUT_FDS; i++)
                if (fds[i] >= 0)
                        close(fds[i]);
        return 0;
}

/* Its client has gone meanwhile: libmicrohttpd does not look at one that is suspended. */
static void leave(struct ls_http_call *c)
{
        const struct ls_http_ask cancel = { .id = c->id, .op = LS_HTTP_CANCEL };

        if (c->state == LS_HTTP_ASKED)
                ask(&cancel);
        c->answer.status = 503;
        resume(c);
}

/* Those whose time has passed, and is written. Returns ms until the next one, -1 = none waits. */
static int ask_due(void)
{
        uint64_t now = ls_store_now_ms(), next = UINT64_MAX;

        for (size_t i = 0; i < N_CALLS; i++) {
                struct ls_http_call *c = calls[i];

                if (!c || !c->suspended)
                        continue;
                if (ls_http_has_gone(c->connection)) {
                        leave(c);
                        continue;
                }
                next = now + WAIT_MOST_MS < next ? now + WAIT_MOST_MS : next;
                if (c->state != LS_HTTP_WAITS)
                        continue;
                if (now < c->due_ms + WRITTEN_MS) {
                        next = c->due_ms + WRITTEN_MS < next ? c->due_ms + WRITTEN_MS : next;
                        continue;
                }
                ask_daemon(c);
                if (c->state == LS_HTTP_DONE)
                        resume(c);
        }
        return next == UINT64_MAX          ? -1
               : next - now < WAIT_MOST_MS ? (int)(next - now) + 1
                                           : (int)WAIT_MOST_MS;
}

/* cls of handle: not NULL = unix. */
static struct MHD_Daemon *serve_at(int fd, int is_unix)
{
        static char unix_mark;
        const struct MHD_OptionItem tls[] = {
                { MHD_OPTION_HTTPS_MEM_CERT, 0, setup.certificate },
                { MHD_OPTION_HTTPS_MEM_KEY, 0, setup.key },
                { MHD_OPTION_END, 0, NULL },
        };
        const struct MHD_OptionItem none[] = { { MHD_OPTION_END, 0, NULL } };
        int has_tls = !is_unix && setup.has_tls;

        return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
                                        (has_tls ? MHD_USE_TLS : 0),
                                0, NULL, NULL, handle, is_unix ? &unix_mark : NULL,
                                MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
                                LS_HTTP_CALLS_MOST, MHD_OPTION_CONNECTION_TIMEOUT, LS_HTTP_IDLE_S,
                                MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_MEMORY,
                                MHD_OPTION_NOTIFY_CONNECTION, ls_http_connection,
                                is_unix ? &unix_mark : NULL, MHD_OPTION_NOTIFY_COMPLETED, completed,
                                NULL, MHD_OPTION_ARRAY, has_tls ? tls : none, MHD_OPTION_END);
}

static int epoll_of(struct MHD_Daemon *d)
{
        const union MHD_DaemonInfo *info = d ? MHD_get_daemon_info(d, MHD_DAEMON_INFO_EPOLL_FD)
                                             : NULL;

        return info ? info->epoll_fd : -1;
}

static void loop(struct MHD_Daemon *d[2])
{
        for (;;) {
                struct pollfd p[] = { { .fd = LS_HTTP_FD_CHANNEL, .events = POLLIN },
                                      { .fd = epoll_of(d[0]), .events = POLLIN },
                                      { .fd = epoll_of(d[1]), .events = POLLIN } };
                MHD_UNSIGNED_LONG_LONG mhd_ms;
                int ms = ask_due(), late_ms = ls_http_late();

                if (late_ms >= 0 && (ms < 0 || late_ms < ms))
                        ms = late_ms;

                for (int i = 0; i < 2; i++)
                        if (d[i] && MHD_get_timeout(d[i], &mhd_ms) == MHD_YES &&
                            (ms < 0 || mhd_ms < (unsigned)ms))
                                ms = (int)mhd_ms;
                poll(p, 3, ms);
                if (p[0].revents && take_answer() < 0)
                        return;
                for (int i = 0; i < 2; i++)
                        if (d[i])
                                MHD_run(d[i]);
        }
}

/* Listens with what it was given, then has no rights any more, then serves. */
int ls_http_main(int argc, const char **argv)
{
        struct MHD_Daemon *d[2] = { NULL, NULL };
        struct ls_rights rights;
        int fds[LS_OUT_FDS];

        (void)argv;
        if (argc != 2 ||
            ls_wire_receive(LS_HTTP_FD_CHANNEL, &setup, sizeof(setup), fds, 0) != sizeof(setup))
                return 1;
        signal(SIGPIPE, SIG_IGN);
        tzset();
        if (setup.has_unix && !(d[0] = serve_at(LS_HTTP_FD_UNIX, 1)))
                return 1;
        if (setup.has_tcp && !(d[1] = serve_at(LS_HTTP_FD_TCP, 0)))
                return 2;
        ls_rights_nobody(&rights);
        if (ls_confine(&rights, -1, LS_CONFINE_HTTP, 1) < 0)
                return 3;
        loop(d);
        return 0;
}
