/* What ctl and the recorders of others ask for: see daemon.h. Text of targets is valid UTF-8
 * without control characters in the answers. */
#include "daemon/daemon.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yajl/yajl_gen.h>

#include "cli/command.h"
#include "cli/suggest.h"
#include "formats/escape.h"

#define FLUSH_LOOK_NS 50000000ull

static void put_text(yajl_gen g, const char *key, const char *value)
{
        char *visible = ls_visible(value, strlen(value));

        yajl_gen_string(g, (const unsigned char *)key, strlen(key));
        yajl_gen_string(g, (const unsigned char *)(visible ? visible : ""),
                        visible ? strlen(visible) : 0);
        free(visible);
}

static void put_number(yajl_gen g, const char *key, uint64_t value)
{
        yajl_gen_string(g, (const unsigned char *)key, strlen(key));
        yajl_gen_integer(g, (long long)value);
}

static void put_key(yajl_gen g, const char *key)
{
        yajl_gen_string(g, (const unsigned char *)key, strlen(key));
}

/* "ok " and what was made. */
static char *finish(yajl_gen g)
{
        const unsigned char *text;
        size_t len;
        char *answer = NULL;

        if (g && yajl_gen_get_buf(g, &text, &len) == yajl_gen_status_ok)
                answer = ls_print("ok %.*s\n", (int)len, (const char *)text);
        if (g)
                yajl_gen_free(g);
        return answer ? answer : strdup("error: no memory\n");
}

static uint64_t seconds_until(uint64_t then, uint64_t now)
{
        return then > now ? (then - now + SECOND_NS - 1) / SECOND_NS : 0;
}

static void put_service(const struct ls_daemon *d, yajl_gen g, const struct ls_serving *s,
                        uint64_t now)
{
        unsigned n = 0, recorded = 0;
        const char *reason = s->reason;

        for (unsigned i = 0; i < d->n_watched; i++) {
                if (strcmp(d->watched[i]->service, s->name))
                        continue;
                n++;
                recorded += d->watched[i]->state == LS_WATCH_RECORDING;
                if (!*reason && d->watched[i]->state != LS_WATCH_RECORDING)
                        reason = d->watched[i]->reason;
        }
        if (!n && !*reason)
                reason = "no program matches its rule";
        yajl_gen_map_open(g);
        put_text(g, "name", s->name);
        put_text(g, "state",
                 s->off                    ? "detached"
                 : s->aside_until_ns > now ? "aside"
                 : recorded                ? "recording"
                                           : "waiting");
        put_number(g, "processes", n);
        put_number(g, "recorded", recorded);
        put_number(g, "chunks", s->chunks);
        put_number(g, "bytes", s->bytes);
        put_number(g, "failures", s->failures);
        put_number(g, "aside_s", seconds_until(s->aside_until_ns, now));
        put_text(g, "reason", reason);
        yajl_gen_map_close(g);
}

static void put_rules(struct ls_daemon *d, yajl_gen g)
{
        put_key(g, "rules");
        yajl_gen_array_open(g);
        for (unsigned i = 0; i < d->config.n_rules; i++) {
                const struct ls_firing *f = ls_firing(d, d->config.rules[i].name);

                yajl_gen_map_open(g);
                put_text(g, "name", f->name);
                put_number(g, "acted", f->fired);
                put_number(g, "held_back", f->held_back);
                put_number(g, "failed", f->failed);
                put_text(g, "last", f->last);
                yajl_gen_map_close(g);
        }
        yajl_gen_array_close(g);
}

static void put_sinks(struct ls_daemon *d, yajl_gen g)
{
        const uint64_t now = ls_daemon_now(), now_ms = ls_store_now_ms();

        put_key(g, "sinks");
        yajl_gen_array_open(g);
        for (unsigned i = 0; i < d->config.n_sinks; i++) {
                const struct ls_sending *s = ls_sending(d, d->config.sinks[i].name);

                if (!s)
                        continue;
                yajl_gen_map_open(g);
                put_text(g, "name", s->name);
                put_text(g, "type", d->config.sinks[i].type);
                put_text(g, "state", s->child ? "sending" : s->failures ? "failing" : "waiting");
                put_number(g, "spool_chunks", s->spool_chunks);
                put_number(g, "spool_bytes", s->spool_bytes);
                put_number(g, "sent", s->sent);
                put_number(g, "retries", s->retries);
                put_number(g, "refused", s->refused);
                put_number(g, "given_up_s", s->given_up_ms / 1000);
                put_number(g, "until_ms", s->from_ms);
                put_number(g, "behind_s",
                           s->from_ms && now_ms > s->from_ms ? (now_ms - s->from_ms) / 1000 : 0);
                put_number(g, "again_s", s->failures ? seconds_until(s->retry_ns, now) : 0);
                put_text(g, "last", s->last);
                yajl_gen_map_close(g);
        }
        yajl_gen_array_close(g);
}

static void do_status(struct ls_daemon *d, struct ls_client *c, const char *argument)
{
        yajl_gen g = yajl_gen_alloc(NULL);
        const uint64_t now = ls_daemon_now(), now_ms = ls_store_now_ms();

        (void)argument;
        if (g) {
                for (unsigned i = 0; i < d->config.n_services; i++)
                        ls_serving(d, d->config.services[i].name);
                yajl_gen_map_open(g);
                put_text(g, "version", LS_VERSION);
                put_number(g, "pid", (uint64_t)getpid());
                put_number(g, "uptime_s", (now - d->start_ns) / SECOND_NS);
                put_text(g, "config", d->config_path);
                put_number(g, "config_files", d->config.n_files);
                put_text(g, "store", d->store.path);
                put_text(g, "pressure", d->pressure ? d->pressure : "");
                put_number(g, "disk_full", (uint64_t)d->full);
                put_number(g, "disk_full_s",
                           (d->full_ns + (d->full ? now - d->full_since_ns : 0)) / SECOND_NS);
                put_text(g, "programs_by", d->events_heard ? "events" : "scan");
                put_number(g, "dropped_ticks", d->dropped_ticks);
                put_number(g, "host_cost_ppm", d->host_ppm);
                put_number(g, "slowed", d->slowed);
                put_number(g, "quickened", d->quickened);
                put_number(g, "merged_chunks", d->merged_chunks);
                put_number(g, "pruned_chunks", d->pruned_chunks);
                put_number(g, "pruned_bytes", d->pruned_bytes);
                put_number(g, "stored_chunks", d->stored_chunks);
                put_number(g, "stored_bytes", d->stored_bytes);
                put_number(g, "stored_s",
                           d->oldest_ms && now_ms > d->oldest_ms ? (now_ms - d->oldest_ms) / 1000
                                                                 : 0);
                put_number(g, "kept", d->kept.times);
                put_number(g, "kept_bytes", d->kept.bytes);
                put_number(g, "commit_errors", d->commit_errors);
                put_text(g, "commit_error", d->commit_error);
                put_number(g, "processes_left_out", d->left_out);
                put_rules(d, g);
                put_sinks(d, g);
                put_key(g, "services");
                yajl_gen_array_open(g);
                for (unsigned i = 0; i < d->n_servings; i++)
                        put_service(d, g, &d->servings[i], now);
                yajl_gen_array_close(g);
                yajl_gen_map_close(g);
        }
        ls_socket_answer(c, finish(g));
}

static void do_targets(struct ls_daemon *d, struct ls_client *c, const char *argument)
{
        yajl_gen g = yajl_gen_alloc(NULL);
        uint64_t now = ls_daemon_now();

        (void)argument;
        if (g)
                yajl_gen_array_open(g);
        for (unsigned i = 0; g && i < d->n_watched; i++) {
                const struct ls_watched *w = d->watched[i];
                struct ls_service spare;

                yajl_gen_map_open(g);
                put_number(g, "pid", (uint64_t)w->pid);
                put_text(g, "name", w->comm);
                put_text(g, "service", w->service);
                put_text(g, "state", ls_watch_names[w->state]);
                put_number(g, "since_s", (now - w->since_ns) / SECOND_NS);
                put_number(g, "recorder", (uint64_t)w->recorder);
                put_number(g, "interval_ns",
                           ls_recorder_interval(w, ls_daemon_service(d, w->service, &spare)));
                put_number(g, "cost_ppm", w->cost.ppm);
                put_number(g, "slowed", w->cost.doubled);
                put_number(g, "burst", w->burst_ns != 0);
                put_number(g, "retry_s",
                           w->state == LS_WATCH_REFUSED ? seconds_until(w->retry_ns, now) : 0);
                put_text(g, "reason", w->reason);
                yajl_gen_map_close(g);
        }
        if (g)
                yajl_gen_array_close(g);
        ls_socket_answer(c, finish(g));
}

/* 0 = not a number. */
static pid_t to_pid(const char *text, char **end)
{
        long n;

        errno = 0;
        n = strtol(text, end, 10);
        return *text < '0' || *text > '9' || errno || n <= 0 || n > INT_MAX ? 0 : (pid_t)n;
}

static const char *nearest_service(struct ls_daemon *d, const char *name)
{
        const char *words[LS_SERVICES_MOST + 1];

        for (unsigned i = 0; i < d->config.n_services; i++)
                words[i] = d->config.services[i].name;
        words[d->config.n_services] = NULL;
        return ls_suggest(name, words);
}

static struct ls_serving *known_service(struct ls_daemon *d, struct ls_client *c, const char *name)
{
        const char *near = nearest_service(d, name);

        for (unsigned i = 0; i < d->config.n_services; i++)
                if (!strcmp(d->config.services[i].name, name))
                        return ls_serving(d, name);
        if (near)
                ls_socket_error(c, "there is no service %s; did you mean %s?", name, near);
        else
                ls_socket_error(c, "there is no service %s", name);
        return NULL;
}

static void do_attach(struct ls_daemon *d, struct ls_client *c, const char *argument)
{
        char *end;
        pid_t pid = to_pid(argument, &end);
        struct ls_serving *s;
        int error;

        if (pid && !*end) {
                error = ls_scan_attach(d, pid);
                if (error == -EPERM)
                        ls_socket_error(c,
                                        "%d: LUASAMPLE=off stands in its environment, or that "
                                        "cannot be read",
                                        (int)pid);
                else if (error)
                        ls_socket_error(c, "%d: %s", (int)pid,
                                        error == -ENOENT ? "there is no such process"
                                                         : strerror(-error));
                else
                        ls_socket_answer(c, strdup("ok {}\n"));
                return;
        }
        s = known_service(d, c, argument);
        if (!s)
                return;
        s->off = 0;
        s->aside_until_ns = s->retry_ns = 0;
        s->failures = 0;
        s->reason[0] = 0;
        ls_socket_answer(c, strdup("ok {}\n"));
}

static void do_detach(struct ls_daemon *d, struct ls_client *c, const char *argument)
{
        char *end;
        pid_t pid = to_pid(argument, &end);
        struct ls_watched *w = pid && !*end ? ls_daemon_find(d, pid) : NULL;
        struct ls_serving *s;

        if (pid && !*end && !w) {
                ls_socket_error(c, "%d: no rule names this process", (int)pid);
                return;
        }
        if (w) {
                w->off = 1;
                if (w->recorder)
                        ls_recorder_end(w, "detached");
                else
                        ls_watch_state(w, LS_WATCH_OFF, "detached");
                ls_socket_answer(c, strdup("ok {}\n"));
                return;
        }
        s = known_service(d, c, argument);
        if (!s)
                return;
        s->off = 1;
        ls_socket_answer(c, strdup("ok {}\n"));
}

/* All that are recorded of a service, or one process. */
static void do_burst(struct ls_daemon *d, struct ls_client *c, const char *argument)
{
        char *end;
        pid_t pid = to_pid(argument, &end), pids[LS_BURSTS_MOST] = { 0 };
        unsigned n = 0;

        if (pid && *end)
                pid = 0;
        if (!pid && !known_service(d, c, argument))
                return;
        for (unsigned i = 0; i < d->n_watched; i++) {
                if (pid ? d->watched[i]->pid != pid : strcmp(d->watched[i]->service, argument) != 0)
                        continue;
                if (ls_decide_burst(d, d->watched[i]) == 0 && n < LS_BURSTS_MOST)
                        pids[n++] = d->watched[i]->pid;
        }
        if (n) {
                struct ls_operation *o = ls_operation_new(d, "burst", argument);

                memcpy(o->pids, pids, sizeof(pids));
                o->n_pids = n;
                ls_socket_answer(c, ls_print("ok {\"processes\":%u,\"operation\":%llu}\n", n,
                                             (unsigned long long)o->id));
        } else {
                ls_socket_error(c,
                                "%s: none is being recorded, or %u processes are recorded closely "
                                "already",
                                argument, LS_BURSTS_MOST);
        }
}

/* SERVICE [TIME]: what was recorded of it in the last time is kept. */
static void do_snapshot(struct ls_daemon *d, struct ls_client *c, const char *argument)
{
        char service[LS_SERVICE_NAME], full[256];
        struct ls_keeping k = { .pid = 0 };
        const char *space = strchr(argument, ' ');
        uint64_t ns = LS_SNAPSHOT_MS * 1000000ull;
        struct ls_operation *o;

        snprintf(service, sizeof(service), "%.*s",
                 space ? (int)(space - argument) : (int)strlen(argument), argument);
        if (!known_service(d, c, service))
                return;
        if (space && (ls_parse_duration(space + 1, "", &ns) || ns < SECOND_NS)) {
                ls_socket_error(c, "snapshot: %s: give a time such as 90s, 10m or 2h", space + 1);
                return;
        }
        o = ls_operation_new(d, "snapshot", service);
        k.operation = o->id;
        snprintf(k.service, sizeof(k.service), "%s", service);
        snprintf(k.owner, sizeof(k.owner), "%s", service);
        snprintf(k.name, sizeof(k.name), "%s.%llu.%llu", service,
                 (unsigned long long)ls_store_now_ms(), (unsigned long long)o->id);
        if (ls_triggers_keep(d, &k, ns / 1000000, full, sizeof(full)) < 0) {
                o->ended = o->failed = 1;
                snprintf(o->text, sizeof(o->text), "%s", full);
                ls_socket_error(c, "snapshot: %s", full);
                return;
        }
        ls_socket_answer(c, ls_print("ok {\"kept\":\"kept/%s\",\"operation\":%llu}\n", k.name,
                                     (unsigned long long)o->id));
}

static void do_operation(struct ls_daemon *d, struct ls_client *c, const char *argument)
{
        struct ls_operation *o = ls_operation_find(d, strtoull(argument, NULL, 10));
        yajl_gen g;

        if (!o) {
                ls_socket_error(c, "there is no operation %s, or it is long ago", argument);
                return;
        }
        g = yajl_gen_alloc(NULL);
        if (g) {
                yajl_gen_map_open(g);
                put_number(g, "operation", o->id);
                put_text(g, "kind", o->kind);
                put_text(g, "target", o->target);
                put_text(g, "state", ls_operation_state(d, o));
                put_text(g, "text", o->text);
                yajl_gen_map_close(g);
        }
        ls_socket_answer(c, finish(g));
}

static void do_reload(struct ls_daemon *d, struct ls_client *c, const char *argument)
{
        char why[512];

        (void)argument;
        if (ls_daemon_reload(d, why, sizeof(why)) < 0)
                ls_socket_error(c, "%s; the configuration stays as it was", why);
        else
                ls_socket_answer(c, strdup("ok {}\n"));
}

static void wait_for(struct ls_client *c, int what)
{
        c->pending = what;
        c->until_ns = ls_daemon_now() + LS_LEND_NS;
}

/* The sink of that name; else an answer. */
static struct ls_sending *known_sink(struct ls_daemon *d, struct ls_client *c, const char *name)
{
        const char *words[LS_SINKS_MOST + 1], *near;
        unsigned i = 0;

        for (; i < d->config.n_sinks; i++) {
                words[i] = d->config.sinks[i].name;
                if (!strcmp(words[i], name))
                        return ls_sending(d, name);
        }
        words[i] = NULL;
        near = ls_suggest(name, words);
        if (near)
                ls_socket_error(c, "there is no sink %s; did you mean %s?", name, near);
        else
                ls_socket_error(c, "there is no sink %s", name);
        return NULL;
}

/* [SINK] */
static void do_flush(struct ls_daemon *d, struct ls_client *c, const char *argument)
{
        if (argument && !known_sink(d, c, argument))
                return;
        snprintf(c->sink, sizeof(c->sink), "%s", argument ? argument : "");
        c->flush_ms = ls_store_now_ms();
        c->flush_from = calloc(LS_WATCHED_MOST * 2, sizeof(*c->flush_from));
        if (!c->flush_from) {
                ls_socket_error(c, "no memory");
                return;
        }
        for (unsigned i = 0; i < d->n_watched; i++) {
                struct ls_watched *w = d->watched[i];

                if (w->state != LS_WATCH_RECORDING)
                        continue;
                ls_recorder_flush(w);
                c->flush_from[i * 2] = (unsigned)w->recorder;
                c->flush_from[i * 2 + 1] = w->commits;
        }
        wait_for(c, LS_PENDING_FLUSH);
}

/* All is committed: what the sink has not is sent now, also when it was to wait. */
static void begin_sink(struct ls_daemon *d, struct ls_client *c)
{
        struct ls_sending *s = *c->sink ? known_sink(d, c, c->sink) : NULL;

        if (!s) {
                if (!*c->sink)
                        ls_socket_answer(c, strdup("ok {}\n"));
                return;
        }
        s->flush_ms = c->flush_ms > s->flush_ms ? c->flush_ms : s->flush_ms;
        s->retry_ns = 0;
        c->sink_failures = s->retries + s->refused;
        wait_for(c, LS_PENDING_SINK);
        c->until_ns = ls_daemon_now() + LS_FLUSH_NS;
}

static void look_at_sink(struct ls_daemon *d, struct ls_client *c)
{
        const struct ls_sending *s = known_sink(d, c, c->sink);

        if (!s)
                return;
        if (s->retries + s->refused != c->sink_failures)
                ls_socket_error(c, "sink %s: %s", c->sink,
                                *s->last ? s->last : "it could not be sent");
        else if (s->from_ms >= c->flush_ms)
                ls_socket_answer(c, strdup("ok {}\n"));
}

static void do_stop(struct ls_daemon *d, struct ls_client *c, const char *argument)
{
        (void)argument;
        d->stopping = 1;
        wait_for(c, LS_PENDING_STOP);
}

static int is_lent(const struct ls_daemon *d, pid_t pid)
{
        for (unsigned i = 0; i < LS_CLIENTS_MOST; i++)
                for (unsigned k = 0; d->clients[i].fd >= 0 && k < d->clients[i].n_lent; k++)
                        if (d->clients[i].lent[k] == pid)
                                return 1;
        return 0;
}

void ls_request_lent(struct ls_daemon *d)
{
        for (unsigned i = 0; i < d->n_watched; i++) {
                struct ls_watched *w = d->watched[i];
                int before = w->lent;

                w->lent = is_lent(d, w->pid);
                if (w->lent && w->recorder) {
                        ls_recorder_end(w, "lent");
                } else if (w->lent && !before) {
                        ls_watch_state(w, LS_WATCH_LENT, "");
                } else if (!w->lent && before && w->state == LS_WATCH_LENT) {
                        w->retry_ns = 0;
                        w->refusals = 0;
                        ls_watch_state(w, w->off ? LS_WATCH_OFF : LS_WATCH_WAITING, "");
                }
        }
}

/* The recorder of another asks for processes. They come back when the connection ends. */
static void do_lend(struct ls_daemon *d, struct ls_client *c, const char *argument)
{
        const char *p = argument;
        char *end;

        while (c->n_lent < LS_LENT_MOST) {
                pid_t pid = to_pid(p, &end);

                if (!pid || (*end && *end != ',')) {
                        c->n_lent = 0;
                        ls_socket_error(c, "lend: give process ids, such as 1234,1235");
                        return;
                }
                c->lent[c->n_lent++] = pid;
                if (!*end)
                        break;
                p = end + 1;
        }
        c->holds = 1;
        ls_request_lent(d);
        wait_for(c, LS_PENDING_LEND);
}

enum takes { NONE, ONE, MAY };          /* an argument */
static const struct {
        const char *name;
        enum takes takes;
        void (*run)(struct ls_daemon *d, struct ls_client *c, const char *argument);
} requests[] = {
        { "status", NONE, do_status },      { "targets", NONE, do_targets },
        { "attach", ONE, do_attach },       { "detach", ONE, do_detach },
        { "burst", ONE, do_burst },         { "snapshot", ONE, do_snapshot },
        { "operation", ONE, do_operation }, { "reload", NONE, do_reload },
        { "flush", MAY, do_flush },         { "stop", NONE, do_stop },
        { "lend", ONE, do_lend },
};

void ls_request(struct ls_daemon *d, struct ls_client *c, char *line)
{
        char *argument = strchr(line, ' ');

        if (argument)
                *argument++ = 0;
        for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
                if (strcmp(requests[i].name, line))
                        continue;
                if (requests[i].takes != MAY &&
                    (requests[i].takes == ONE) != (argument && *argument))
                        ls_socket_error(c,
                                        requests[i].takes ? "%s: a process or a service is missing"
                                                          : "%s takes no argument",
                                        line);
                else
                        requests[i].run(d, c, argument);
                return;
        }
        ls_socket_error(c, "no such request; this is luasample %s", LS_VERSION);
}

static int still_lent(struct ls_daemon *d, const struct ls_client *c)
{
        for (unsigned i = 0; i < c->n_lent; i++) {
                const struct ls_watched *w = ls_daemon_find(d, c->lent[i]);

                if (w && w->recorder)
                        return 1;
        }
        return 0;
}

static int still_flushes(const struct ls_daemon *d, const struct ls_client *c)
{
        for (unsigned i = 0; i < LS_WATCHED_MOST; i++)
                for (unsigned k = 0; c->flush_from[i * 2] && k < d->n_watched; k++)
                        if (d->watched[k]->recorder == (pid_t)c->flush_from[i * 2] &&
                            d->watched[k]->commits == c->flush_from[i * 2 + 1])
                                return 1;
        return 0;
}

void ls_request_pending(struct ls_daemon *d, struct ls_client *c, uint64_t now)
{
        int late = now > c->until_ns;

        if (c->pending == LS_PENDING_LEND && !still_lent(d, c))
                ls_socket_answer(c, strdup("ok {}\n"));
        else if (c->pending == LS_PENDING_FLUSH && !still_flushes(d, c))
                begin_sink(d, c);
        else if (c->pending == LS_PENDING_SINK && !late)
                look_at_sink(d, c);
        else if (late && c->pending == LS_PENDING_SINK)
                ls_socket_error(c,
                                "it takes longer than %u s, and goes on; see luasample ctl status",
                                (unsigned)(LS_FLUSH_NS / SECOND_NS));
        else if (late)
                ls_socket_error(c, "it takes longer than %u s; see luasample ctl targets",
                                (unsigned)(LS_LEND_NS / SECOND_NS));
        if (c->pending >= LS_PENDING_FLUSH && c->pending <= LS_PENDING_SINK &&
            d->next_work_ns > now + FLUSH_LOOK_NS)
                d->next_work_ns = now + FLUSH_LOOK_NS;
}

void ls_request_gone(struct ls_daemon *d, struct ls_client *c)
{
        c->n_lent = 0;
        ls_request_lent(d);
}
