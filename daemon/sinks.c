/* [sink NAME]: what the store has goes to other stores, a window of time after the other.
 *
 * Each sink has its place in the store, sinks/NAME: the time until which all was sent; of the
 * window that is being sent its end, the last service that is through, and how many profiles of the
 * next one were taken. A window is never changed once it was begun, so what is sent again after a
 * crash is the same, with the same ids. `luasample push` does the sending, a child that becomes
 * nobody before it reads a chunk; here nothing is read but its last words. */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/command.h"
#include "formats/escape.h"

#define REFUSED 76                      /* status of push: the store would again */
#define WAIT_MOST_MS UINT64_C(3600000)  /* that a store can ask for */
#define LONGEST_MS 3600000u             /* a merged chunk may go on so long */

static int open_dir(const struct ls_daemon *d)
{
        if (mkdirat(d->store.fd, "sinks", 0700) < 0 && errno != EEXIST)
                return -errno;
        return openat(d->store.fd, "sinks", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static void read_place(const struct ls_daemon *d, struct ls_sending *s)
{
        char text[256] = "";
        int dir = open_dir(d),
            fd = dir >= 0 ? openat(dir, s->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
        ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

        if (n <= 0 || sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %63s", &s->from_ms,
                             &s->until_ms, &s->parts, s->done) < 3)
                s->from_ms = s->until_ms = s->parts = 0;
        if (!ls_service_name_ok(s->done))
                s->done[0] = 0;
        if (fd >= 0)
                close(fd);
        if (dir >= 0)
                close(dir);
}

static int write_file(int dir, const char *name, const char *text)
{
        int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600),
            error;

        if (fd < 0)
                return -errno;
        error = write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fsync(fd);
        close(fd);
        return error ? -EIO : 0;
}

/* Before anything more is sent. */
static void write_place(const struct ls_daemon *d, struct ls_sending *s)
{
        char *text = ls_print("%" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", s->from_ms, s->until_ms,
                              s->parts, s->done);
        char *next = ls_print(".%s.new", s->name);
        int dir = open_dir(d), error = text && next ? 0 : -ENOMEM;

        if (!error)
                error = dir < 0 ? dir : write_file(dir, next, text);
        if (!error && renameat(dir, next, dir, s->name))
                error = -errno;
        if (error)
                snprintf(s->last, sizeof(s->last), "its place cannot be written: %s",
                         strerror(-error));
        s->unwritten = error != 0;
        if (dir >= 0)
                close(dir);
        free(text);
        free(next);
}

static void no_window(struct ls_sending *s)
{
        s->until_ms = s->parts = 0;
        s->done[0] = 0;
}

struct ls_sending *ls_sending(struct ls_daemon *d, const char *name)
{
        struct ls_sending *s;
        unsigned i = 0;

        while (i < d->n_sendings && strcmp(d->sendings[i].name, name))
                i++;
        if (i < d->n_sendings)
                return &d->sendings[i];
        if (i == LS_SINKS_MOST)         /* one that an earlier configuration had */
                for (i = 0; i < LS_SINKS_MOST - 1 && d->sendings[i].child; i++)
                        ;
        else
                d->n_sendings++;
        s = &d->sendings[i];
        if (s->child)
                return NULL;
        *s = (struct ls_sending){ .fd = -1 };
        strcpy(s->name, name);
        read_place(d, s);
        return s;
}

/* All that began before is committed then, but for what comes late. */
static uint64_t lag_ms(const struct ls_daemon *d)
{
        return 2 * d->config.chunk_ns / 1000000 + LS_SINK_LAG_MS;
}

/* The window that is to be sent. Returns 1 when there is one. */
static int find_window(struct ls_daemon *d, const struct ls_sink_rule *rule, struct ls_sending *s)
{
        const uint64_t now = ls_store_now_ms(), lag = lag_ms(d), every = rule->every_ns / 1000000;
        const uint64_t settled = now > lag ? now - lag : 0, age = rule->max_age_ns / 1000000;
        const uint64_t safe = s->flush_ms > settled ? s->flush_ms : settled; /* it is committed */

        if (s->unwritten)
                write_place(d, s);
        if (!s->from_ms || s->from_ms > now + lag) {    /* the first time, or the clock has stepped
                                                         * back */
                s->from_ms = settled;
                no_window(s);
                write_place(d, s);
        }
        if (now > age && s->from_ms < now - age) {
                s->given_up_ms += now - age - s->from_ms;
                s->from_ms = now - age;
                no_window(s);
                write_place(d, s);
        }
        if (!s->until_ms && (s->from_ms + every <= safe || s->from_ms < s->flush_ms)) {
                uint64_t most = every > LS_SINK_WINDOW_MS ? every : LS_SINK_WINDOW_MS;

                s->until_ms = safe - s->from_ms < most ? safe : s->from_ms + most;
                write_place(d, s);
        }
        return s->until_ms && !s->unwritten;
}

void ls_send_count(struct ls_daemon *d)
{
        struct ls_chunks all;

        if (ls_store_list(&d->store, NULL, 0, UINT64_MAX, &all))
                return;
        d->stored_chunks = all.n;
        d->stored_bytes = d->oldest_ms = 0;
        for (unsigned k = 0; k < d->n_sendings; k++)
                d->sendings[k].spool_chunks = d->sendings[k].spool_bytes = 0;
        for (size_t i = 0; i < all.n; i++) {
                const struct ls_chunk *c = &all.v[i];

                d->stored_bytes += c->size;
                if (!d->oldest_ms || c->begin_ms < d->oldest_ms)
                        d->oldest_ms = c->begin_ms;
                for (unsigned k = 0; k < d->n_sendings; k++)
                        if (c->end_ms > d->sendings[k].from_ms) {
                                d->sendings[k].spool_chunks++;
                                d->sendings[k].spool_bytes += c->size;
                        }
        }
        ls_chunks_done(&all);
}

/* The next service of the window; "" = none is left. Returns 0 or -errno. */
static int find_service(const struct ls_daemon *d, struct ls_sending *s)
{
        struct ls_chunks all;
        int error = ls_store_list(&d->store, NULL, 0, UINT64_MAX, &all);

        s->service[0] = 0;
        if (error)
                return error;
        for (size_t i = 0; i < all.n; i++) {
                const struct ls_chunk *c = &all.v[i];
                uint64_t end_ms = c->end_ms + (c->level ? LONGEST_MS : 0);

                if (c->begin_ms < s->until_ms && end_ms > s->from_ms &&
                    strcmp(c->service, s->done) > 0 &&
                    (!*s->service || strcmp(c->service, s->service) < 0))
                        strcpy(s->service, c->service);
        }
        ls_chunks_done(&all);
        return 0;
}

static void add_word(const char **words, unsigned *n, const char *option, const char *value)
{
        if (!value)
                return;
        words[(*n)++] = option;
        words[(*n)++] = value;
}

static void become_push(const struct ls_daemon *d, const struct ls_sink_rule *rule,
                        const struct ls_sending *s, pid_t parent, int fd)
{
        char *since = ls_print("@%" PRIu64 ".%03" PRIu64, s->from_ms / 1000, s->from_ms % 1000);
        char *until = ls_print("@%" PRIu64 ".%03" PRIu64, s->until_ms / 1000, s->until_ms % 1000);
        char *to = ls_print("%s:%s", rule->type, rule->url), *skip = ls_print("%" PRIu64, s->parts);
        const char *words[32 + 2 * LS_PATTERNS_MOST] = { "luasample", "push", "--porcelain",
                                                         "--retries", "0" };
        const struct ls_child push = { .words = words,
                                       .parent = parent,
                                       .end_signal = SIGKILL,
                                       .out = fd,
                                       .err = fd,
                                       .cpu_s = LS_MERGE_CPU_S,
                                       .memory = LS_MERGE_BYTES,
                                       .file = LS_MERGE_BYTES,
                                       .nice = 10 };
        unsigned n = 5;

        add_word(words, &n, "--store", d->store.path);
        add_word(words, &n, "--service", s->service);
        add_word(words, &n, "--since", since);
        add_word(words, &n, "--until", until);
        add_word(words, &n, "--to", to);
        add_word(words, &n, "--skip", skip);
        add_word(words, &n, "--labels", rule->labels);
        add_word(words, &n, "--tenant", rule->tenant);
        add_word(words, &n, "--auth-file", rule->auth_file);
        add_word(words, &n, "--table", rule->table);
        for (unsigned i = 0; i < rule->series.n; i++)
                add_word(words, &n, "--series", rule->series.text[i]);
        if (rule->experimental)
                words[n++] = "--experimental";
        if (!since || !until || !to || !skip)
                _exit(LS_EXIT_FAIL);
        ls_child_become(&push);
}

static void start(struct ls_daemon *d, const struct ls_sink_rule *rule, struct ls_sending *s,
                  uint64_t now)
{
        pid_t self = getpid();
        int fds[2];

        if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
                return;
        s->child = fork();
        if (s->child == 0)
                become_push(d, rule, s, self, fds[1]);
        close(fds[1]);
        if (s->child < 0) {
                s->child = 0;
                close(fds[0]);
                return;
        }
        s->fd = fds[0];
        s->started_ns = now;
}

/* What is due at one sink: windows without any service are passed over at once. */
static void step(struct ls_daemon *d, const struct ls_sink_rule *rule, uint64_t now)
{
        struct ls_sending *s = ls_sending(d, rule->name);

        if (!s)
                return;
        if (s->child) {
                if (now > s->started_ns + LS_SINK_NS)
                        kill(s->child, SIGKILL);
                return;
        }
        if (now < s->retry_ns)
                return;
        if (s->flush_ms && s->from_ms >= s->flush_ms)
                s->flush_ms = 0;
        if (!find_window(d, rule, s)) {
                s->retry_ns = now + SECOND_NS;
                return;
        }
        if (find_service(d, s)) {
                s->retry_ns = now + SECOND_NS;
        } else if (*s->service) {
                start(d, rule, s, now);
        } else {
                s->from_ms = s->until_ms;
                no_window(s);
                write_place(d, s);
        }
}

void ls_send(struct ls_daemon *d)
{
        uint64_t now = ls_daemon_now();

        for (unsigned i = 0; i < d->config.n_sinks && !d->stopping; i++)
                step(d, &d->config.sinks[i], now);
}

/* Half a second, then twice as long each time, to five minutes; or as long as the store asks for.
 * And up to a quarter more, so that a fleet does not come back at one time. */
static void back_off(struct ls_sending *s, uint64_t asked_ms)
{
        unsigned doublings = s->failures < 10 ? s->failures : 10;
        uint64_t ms = asked_ms ? asked_ms : (uint64_t)500 << doublings;
        uint16_t random = 0;

        if (ms > LS_SINK_WAIT_MS && !asked_ms)
                ms = LS_SINK_WAIT_MS;
        if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
                random = 0;
        ms += ms * random / 65536 / 4;
        s->failures++;
        s->retries++;
        s->retry_ns = ls_daemon_now() + ms * 1000000;
}

static uint64_t at_most(uint64_t n, uint64_t most)
{
        return n < most ? n : most;
}

/* What it said: its figures, and the last of its errors. */
static void read_words(struct ls_sending *s, uint64_t *ret_sent, uint64_t *ret_wait_ms)
{
        char text[8192], *save = NULL;
        ssize_t n = read(s->fd, text, sizeof(text) - 1);

        *ret_sent = s->parts;
        *ret_wait_ms = 0;
        text[n > 0 ? n : 0] = 0;
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
                if (!strncmp(line, "sent ", 5))
                        *ret_sent = strtoull(line + 5, NULL, 10);
                else if (!strncmp(line, "retry-after-ms ", 15))
                        *ret_wait_ms = at_most(strtoull(line + 15, NULL, 10), WAIT_MOST_MS);
                else
                        snprintf(s->last, sizeof(s->last), "%s",
                                 !strncmp(line, "luasample: push: ", 17) ? line + 17 : line);
        close(s->fd);
        s->fd = -1;
}

/* The end of one service: sent, or refused for good. */
static void pass(struct ls_daemon *d, struct ls_sending *s)
{
        memcpy(s->done, s->service, sizeof(s->done));
        s->parts = s->failures = 0;
        s->retry_ns = 0;
        write_place(d, s);
}

int ls_send_ended(struct ls_daemon *d, pid_t pid, int status)
{
        struct ls_sending *s = d->sendings;
        uint64_t sent, wait_ms;

        while (s < d->sendings + d->n_sendings && s->child != pid)
                s++;
        if (s == d->sendings + d->n_sendings)
                return 0;
        s->child = 0;
        read_words(s, &sent, &wait_ms);
        if (sent > s->parts)
                s->sent += sent - s->parts;
        if (WIFEXITED(status) && !WEXITSTATUS(status)) {
                s->last[0] = 0;
                pass(d, s);
        } else if (!WIFEXITED(status) || WEXITSTATUS(status) != REFUSED) {
                if (!WIFEXITED(status))
                        snprintf(s->last, sizeof(s->last), "push was ended by signal %d",
                                 WTERMSIG(status));
                if (sent > s->parts) {
                        s->parts = sent;
                        write_place(d, s);
                }
                back_off(s, wait_ms);
        } else {
                if (!s->refused++)
                        ls_daemon_say("sink %s: %s", s->name, s->last);
                pass(d, s);
        }
        return 1;
}

void ls_send_stop(struct ls_daemon *d)
{
        for (unsigned i = 0; i < d->n_sendings; i++) {
                struct ls_sending *s = &d->sendings[i];

                if (!s->child)
                        continue;
                kill(s->child, SIGKILL);
                waitpid(s->child, NULL, 0);
                close(s->fd);
                s->child = 0;
        }
}
