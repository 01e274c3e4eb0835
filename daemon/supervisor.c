/* The loop of the daemon: see daemon.h. */
#include "daemon/daemon.h"
#include "daemon/rules.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "formats/wire/clock.h"

#define WORK_NS SECOND_NS /* most time between two looks at what recorders have ended */
#define PRUNE_NS (60 * SECOND_NS)
#define FULL_PRUNE_NS (5 * SECOND_NS)
#define TICK_NS 200000000ull            /* while somebody waits, or recorders begin and end */

uint64_t ls_daemon_now(void)
{
        return ls_clock_ns(CLOCK_MONOTONIC);
}

void ls_daemon_say(const char *fmt, ...)
{
        char text[1024];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        fputs("[ luasample: ", stderr);
        ls_put_visible(stderr, text);
        fputs(" ]\n", stderr);
}

struct ls_watched *ls_daemon_find(struct ls_daemon *d, pid_t pid)
{
        for (unsigned i = 0; i < d->n_watched; i++)
                if (d->watched[i]->pid == pid)
                        return d->watched[i];
        return NULL;
}

static const struct ls_service *find_service(const struct ls_config *c, const char *name)
{
        for (unsigned i = 0; i < c->n_services; i++)
                if (!strcmp(c->services[i].name, name))
                        return &c->services[i];
        return NULL;
}

const struct ls_service *ls_daemon_service(const struct ls_daemon *d, const char *name,
                                           struct ls_service *spare)
{
        const struct ls_service *s = find_service(&d->config, name);

        if (s)
                return s;
        ls_service_init(spare, name);
        return spare;
}

static int same_options(const struct ls_service *a, const struct ls_service *b)
{
        return a->interval_ns == b->interval_ns && a->native == b->native &&
               a->source == b->source && a->args == b->args;
}

/* What the new configuration says of one that the old one named. What ctl has detached may come
 * back. */
static void rematch(struct ls_daemon *d, const struct ls_config *old, struct ls_watched *w)
{
        const struct ls_service *now, *before;
        struct ls_proc p;
        const char *off;

        if (w->asked || w->lent)
                return;
        if (!w->recorder) {
                w->stale = 1;
                return;
        }
        now = ls_program_read(w->pid, &p) == 0 ? ls_rules_find(&d->config, &p, &off) : NULL;
        before = find_service(old, w->service);
        if (now && !off && before && !strcmp(now->name, w->service) && same_options(now, before) &&
            ls_tells_same(&d->config, old, w->service))
                return;
        w->stale = 1;
        ls_recorder_end(w, "the configuration has changed");
}

struct first_error {
        char *to;
        size_t size;
};

static void keep_first(void *ctx, const char *text)
{
        struct first_error *first = ctx;

        if (!*first->to)
                snprintf(first->to, first->size, "%s", text);
        fputs("luasample: ", stderr);
        ls_put_visible(stderr, text);
        fputc('\n', stderr);
}

int ls_daemon_reload(struct ls_daemon *d, char *why, size_t size)
{
        struct ls_config new, old = d->config;
        struct first_error first = { why, size };
        int error;

        *why = 0;
        ls_error_to(keep_first, &first);
        error = ls_config_read(d->config_path, d->must_exist, d->user, &new);
        if (!error && (strcmp(new.store, old.store) || strcmp(new.socket, old.socket))) {
                ls_error("%s: store and socket cannot be changed by a reload: stop the daemon, and "
                         "start it again",
                         d->config_path);
                ls_config_done(&new);
                error = -EINVAL;
        }
        if (!error && (error = ls_web_reload(d, &new)))
                ls_config_done(&new);
        ls_error_to(NULL, NULL);
        if (error) {
                ls_daemon_say("the configuration stays as it was");
                return error;
        }
        d->config = new;
        for (unsigned i = 0; i < d->n_watched; i++) {
                memset(d->watched[i]->true_ns, 0, sizeof(d->watched[i]->true_ns));
                memset(d->watched[i]->acted, 0, sizeof(d->watched[i]->acted));
        }
        if (new.process_events && !d->events)
                ls_events_open(d);
        else if (!new.process_events)
                ls_events_done(d);
        for (unsigned i = 0; i < d->n_watched; i++)
                rematch(d, &old, d->watched[i]);
        for (unsigned i = 0; i < d->n_servings; i++)
                d->servings[i].off = 0;
        ls_config_done(&old);
        d->n_seen = 0;
        d->next_scan_ns = d->next_prune_ns = 0;
        ls_daemon_say("the configuration was read: %u service%s", new.n_services,
                      new.n_services == 1 ? "" : "s");
        return 0;
}

static void ended(struct ls_daemon *d, pid_t pid, int status)
{
        if (pid == d->merger) {
                ls_merging_ended(d, status);
                return;
        }
        if (ls_triggers_ended(d, pid, status) || ls_web_ended(d, pid, status) ||
            ls_send_ended(d, pid, status))
                return;
        for (unsigned i = 0; i < d->n_watched; i++)
                if (d->watched[i]->recorder == pid) {
                        ls_decide_ended(d, d->watched[i], status);
                        ls_scan_forget(d);
                        d->next_work_ns = 0;
                        return;
                }
}

static void reap(struct ls_daemon *d)
{
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
                ended(d, pid, status);
}

static void read_signals(struct ls_daemon *d)
{
        struct signalfd_siginfo si;
        char why[512];

        while (read(d->signal_fd, &si, sizeof(si)) == sizeof(si)) {
                if (si.ssi_signo == SIGCHLD)
                        reap(d);
                else if (si.ssi_signo == SIGHUP)
                        ls_daemon_reload(d, why, sizeof(why));
                else
                        d->stopping = 1;
        }
}

static void prune(struct ls_daemon *d, uint64_t now)
{
        struct ls_store_limits limits = { d->config.max_age_ns / 1000000, d->config.max_size,
                                          d->config.min_free };
        struct ls_pruned pruned;
        int full;

        if (ls_store_prune(&d->store, &limits, ls_store_now_ms(), &pruned) == 0) {
                d->pruned_chunks += pruned.n;
                d->pruned_bytes += pruned.bytes;
        }
        ls_triggers_count(d);
        ls_send_count(d);
        full = !ls_store_has_room(&d->store, d->config.min_free);
        if (full && !d->full) {
                d->full_since_ns = now;
                ls_daemon_say("%s: less than %u%% of the disk is free: nothing is recorded until "
                              "there is room",
                              d->store.path, (unsigned)d->config.min_free);
        } else if (!full && d->full) {
                d->full_ns += now - d->full_since_ns;
                ls_daemon_say("%s: there is room again", d->store.path);
        }
        d->full = full;
        ls_merging(d);
        d->next_prune_ns = now + (full                            ? FULL_PRUNE_NS
                                  : PRUNE_NS < d->config.chunk_ns ? PRUNE_NS
                                                                  : d->config.chunk_ns);
}

/* What is due. */
static void work(struct ls_daemon *d)
{
        uint64_t now = ls_daemon_now();

        if (now >= d->next_work_ns) {
                ls_incoming(d);
                d->next_work_ns = now + WORK_NS;
        }
        if (now >= d->next_prune_ns)
                prune(d, now);
        if (now >= d->next_scan_ns && !d->stopping) {
                d->pressure = ls_pressure("/proc/meminfo", "/proc/pressure/memory");
                ls_daemon_scan(d);
                ls_request_lent(d);
                d->next_scan_ns = now + d->config.discover_ns;
        }
        ls_cost(d);
        ls_triggers(d);
        ls_send(d);
        ls_decide(d);
}

static int has_recorders(const struct ls_daemon *d)
{
        for (unsigned i = 0; i < d->n_watched; i++)
                if (d->watched[i]->recorder)
                        return 1;
        return 0;
}

static int wait_ms(const struct ls_daemon *d, int soon)
{
        uint64_t now = ls_daemon_now(), until = d->next_work_ns;

        if (d->next_scan_ns < until)
                until = d->next_scan_ns;
        if (soon && now + TICK_NS < until)
                until = now + TICK_NS;
        return until <= now ? 1 : (int)((until - now) / 1000000) + 1;
}

static void wait_and_listen(struct ls_daemon *d)
{
        static struct pollfd p[4 + LS_CLIENTS_MOST + LS_WATCHED_MOST];
        const uint64_t now = ls_daemon_now();
        unsigned n = 1;
        int soon = d->stopping;

        p[0] = (struct pollfd){ .fd = d->signal_fd, .events = POLLIN };
        n += ls_socket_poll(d, p + n);
        p[n++] = (struct pollfd){ .fd = ls_events_fd(d), .events = POLLIN };
        p[n++] = (struct pollfd){ .fd = ls_web_fd(d), .events = POLLIN };
        for (unsigned i = 0; i < d->n_watched; i++) {
                const struct ls_watched *w = d->watched[i];

                if (w->err_fd >= 0)
                        p[n++] = (struct pollfd){ .fd = w->err_fd, .events = POLLIN };
                soon |= w->state == LS_WATCH_STARTING || w->state == LS_WATCH_ENDING ||
                        (w->state == LS_WATCH_WAITING &&
                         now - w->changed_ns < LS_FIRST_NS + TICK_NS);
        }
        for (unsigned i = 0; i < LS_CLIENTS_MOST; i++)
                soon |= d->clients[i].fd >= 0 && !(d->clients[i].holds && !d->clients[i].pending);
        poll(p, n, wait_ms(d, soon));
        read_signals(d);
        ls_events_read(d);
        ls_web_read(d);
        for (unsigned i = 0; i < d->n_watched; i++)
                if (d->watched[i]->err_fd >= 0)
                        ls_recorder_listen(d, d->watched[i]);
        ls_socket_handle(d, ls_daemon_now());
}

static void end_all(struct ls_daemon *d)
{
        for (unsigned i = 0; i < d->n_watched; i++)
                ls_recorder_end(d->watched[i], "the daemon ends");
}

static int open_signals(struct ls_daemon *d)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        sigaddset(&set, SIGHUP);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        signal(SIGPIPE, SIG_IGN);
        signal(SIGCHLD, SIG_DFL);
        sigprocmask(SIG_BLOCK, &set, NULL);
        d->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return d->signal_fd < 0 ? -errno : 0;
}

int ls_supervise(struct ls_daemon *d)
{
        int told = 0;

        d->start_ns = d->cost_ns = ls_daemon_now();
        d->merged_until_ms = UINT64_MAX;        /* not known yet */
        if (readlink("/proc/self/exe", d->own_exe, sizeof(d->own_exe) - 1) < 0)
                d->own_exe[0] = 0;
        d->servings = calloc(LS_SERVICES_MOST + 1, sizeof(*d->servings));
        if (!d->servings || open_signals(d) < 0) {
                ls_error("daemon: %s", strerror(errno));
                return LS_EXIT_FAIL;
        }
        ls_daemon_say("daemon %d: store %s, %u service%s", (int)getpid(), d->store.path,
                      d->config.n_services, d->config.n_services == 1 ? "" : "s");
        if (d->config.process_events)
                ls_events_open(d);
        ls_web_start(d);
        ls_notify("READY=1");
        for (;;) {
                work(d);
                if (d->stopping && !told++) {
                        ls_notify("STOPPING=1");
                        end_all(d);
                }
                if (d->stopping && !has_recorders(d))
                        break;
                wait_and_listen(d);
        }
        ls_merging_stop(d);
        ls_send_stop(d);
        ls_incoming(d);
        ls_web_done(d);
        ls_socket_done(d);
        ls_events_done(d);
        ls_scan_done(d);
        free(d->servings);
        close(d->signal_fd);
        return 0;
}
