/* The child that records one process, `luasample record -p`: see daemon.h. It ends when we do, has
 * its own directory in the store, and holds a lock on it for as long as it lives. */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/command.h"
#include "formats/escape.h"
#include "record/writer/wire.h"

#define WORDS_MOST (28 + LS_TELLS_MOST)

struct words {
        char *v[WORDS_MOST + 1];
        unsigned n;
        int failed;
};

static void add(struct words *w, char *text)
{
        if (text && w->n < WORDS_MOST)
                w->v[w->n++] = text;
        else
                w->failed = 1;
}

static void words_done(struct words *w)
{
        while (w->n)
                free(w->v[--w->n]);
}

uint64_t ls_recorder_interval(const struct ls_watched *w, const struct ls_service *s)
{
        return w->burst_ns ? LS_BURST_INTERVAL_NS : s->interval_ns << w->cost.doublings;
}

static int make_words(struct words *w, const struct ls_daemon *d, const struct ls_watched *t,
                      const struct ls_service *s)
{
        add(w, strdup("luasample"));
        add(w, strdup("record"));
        add(w, strdup("--no-children"));
        add(w, strdup("-i"));
        add(w, ls_print("%" PRIu64 "ns", ls_recorder_interval(t, s)));
        add(w, strdup("--switch-output"));
        add(w, ls_print("%" PRIu64 "ms", d->config.chunk_ns / 1000000));
        if (t->burst_ns) {
                add(w, strdup("-e"));
                add(w, strdup("cpu,wall"));
        }
        if (s->native || t->burst_ns)
                add(w, strdup("--native"));
        if (!s->source)
                add(w, strdup("--no-source"));
        if (!s->args)
                add(w, strdup("--no-args"));
        if (*t->control) {
                add(w, strdup("--control"));
                add(w, ls_print("unix:%s", t->control));
        }
        for (unsigned i = 0;; i++) {
                char *tell = ls_tells_word(&d->config, t->service, i);

                if (!tell)
                        break;
                add(w, tell);
        }
        add(w, strdup("-o"));
        add(w, ls_print("%s/incoming/%s/trace", d->store.path, t->dir));
        add(w, strdup("-p"));
        add(w, ls_print("%d", (int)t->pid));
        return w->failed ? -ENOMEM : 0;
}

static void become_recorder(pid_t parent, int lock, int err_fd, const struct words *w)
{
        const struct ls_child recorder = { .words = (const char *const *)(uintptr_t)w->v,
                                           .parent = parent,
                                           .end_signal = SIGTERM,
                                           .err = err_fd };

        if (fcntl(lock, F_SETFD, 0) < 0 || setenv("LUASAMPLE_SOCKET", "", 1) < 0)
                _exit(LS_EXIT_FAIL);
        ls_child_become(&recorder);
}

/* Its directory, locked. Returns the descriptor or -errno. */
static int make_dir(struct ls_daemon *d, struct ls_watched *w)
{
        int fd;

        snprintf(w->dir, sizeof(w->dir), "%s.%d.%" PRIu64, w->service, (int)w->pid,
                 ls_store_now_ms());
        if (mkdirat(d->store.incoming_fd, w->dir, 0700) < 0)
                return -errno;
        fd = openat(d->store.incoming_fd, w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0) {
                int error = -errno;

                if (fd >= 0)
                        close(fd);
                unlinkat(d->store.incoming_fd, w->dir, AT_REMOVEDIR);
                return error;
        }
        return fd;
}

/* Beside our own socket, so that it is as private as that. */
static void name_control(const struct ls_daemon *d, struct ls_watched *w)
{
        int n = snprintf(w->control, sizeof(w->control), "%s.%d", d->config.socket, (int)w->pid);

        if (n >= (int)sizeof(w->control))
                w->control[0] = 0;      /* it cannot be flushed then */
        else
                unlink(w->control);     /* of one that was killed */
}

int ls_recorder_start(struct ls_daemon *d, struct ls_watched *w)
{
        struct words words = { .n = 0 };
        struct ls_service spare;
        int fds[2], lock, error;
        pid_t self = getpid();

        name_control(d, w);
        lock = make_dir(d, w);
        if (lock < 0)
                return lock;
        error = make_words(&words, d, w, ls_daemon_service(d, w->service, &spare));
        if (!error && pipe2(fds, O_CLOEXEC) < 0)
                error = -errno;
        if (!error) {
                w->recorder = fork();
                if (w->recorder == 0)
                        become_recorder(self, lock, fds[1], &words);
                error = w->recorder < 0 ? -errno : 0;
                close(fds[1]);
                if (error)
                        close(fds[0]);
        }
        words_done(&words);
        close(lock);
        if (error) {
                w->recorder = 0;
                unlinkat(d->store.incoming_fd, w->dir, AT_REMOVEDIR);
                return error;
        }
        w->err_fd = fds[0];
        fcntl(w->err_fd, F_SETFL, O_NONBLOCK);
        w->attached = w->killed = w->burst_due = 0;
        w->n_line = 0;
        w->line[0] = 0;
        ls_watch_state(w, LS_WATCH_STARTING, "");
        return 0;
}

void ls_recorder_end(struct ls_watched *w, const char *reason)
{
        if (!w->recorder || w->state == LS_WATCH_ENDING)
                return;
        kill(w->recorder, SIGTERM);
        ls_watch_state(w, LS_WATCH_ENDING, reason);
}

static void take_line(struct ls_daemon *d, struct ls_watched *w)
{
        const char *text = w->line;

        if (!strncmp(text, "[ luasample: attached to ", 25)) {
                w->attached = 1;
                if (w->state == LS_WATCH_STARTING)
                        ls_watch_state(w, LS_WATCH_RECORDING, "");
        } else if (!strncmp(text, "[ luasample: tell ", 18)) {
                ls_tells_line(d, w, text + 18);
        } else if (!strncmp(text, "luasample: ", 11)) {
                snprintf(w->reason, sizeof(w->reason), "%s", text + 11);
        }
        w->n_line = 0;
}

void ls_recorder_listen(struct ls_daemon *d, struct ls_watched *w)
{
        char buf[4096];
        ssize_t n = 0;

        for (int i = 0; i < 16 && w->err_fd >= 0; i++) {
                n = read(w->err_fd, buf, sizeof(buf));
                if (n <= 0)
                        break;
                for (ssize_t k = 0; k < n; k++) {
                        if (buf[k] == '\n') {
                                w->line[w->n_line] = 0;
                                take_line(d, w);
                        } else if (w->n_line + 1 < sizeof(w->line)) {
                                w->line[w->n_line++] = buf[k];
                        }
                }
        }
        if (n == 0 && w->err_fd >= 0) {
                close(w->err_fd);
                w->err_fd = -1;
        }
}

void ls_recorder_done(struct ls_daemon *d, struct ls_watched *w)
{
        ls_recorder_listen(d, w);
        if (w->err_fd >= 0)
                close(w->err_fd);
        w->err_fd = -1;
        w->recorder = 0;
        ls_cost_forget(w);
        if (*w->control)
                unlink(w->control);     /* of one that was killed */
}

int ls_recorder_ask(const struct ls_watched *w, const char *line)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int fd = *w->control ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;

        memcpy(a.sun_path, w->control, sizeof(w->control));
        if (fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof(a)) == 0 &&
            send(fd, line, strlen(line), MSG_NOSIGNAL) == (ssize_t)strlen(line))
                return fd;
        if (fd >= 0)
                close(fd);
        return -ENOTCONN;
}

void ls_recorder_flush(struct ls_watched *w)
{
        int fd = ls_recorder_ask(w, "snapshot\n");

        if (fd >= 0)
                close(fd);
}
