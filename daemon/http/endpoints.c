/* What there is to ask for over HTTP: see http.h. The page of / and luasample-daemon(1) list the
 * same. */
#include "daemon/http/http.h"

#include <string.h>

#include "formats/export/export.h"
#include "store/store.h"

#define PPROF                                                                                      \
        (LS_HTTP_ARG_SERVICE | LS_HTTP_ARG_PID | LS_HTTP_ARG_SECONDS | LS_HTTP_ARG_TIME |          \
         LS_HTTP_ARG_FORMAT)
#define PAGE (LS_HTTP_ARG_SERVICE | LS_HTTP_ARG_PID | LS_HTTP_ARG_SECONDS | LS_HTTP_ARG_TIME)
#define TARGET (LS_HTTP_ARG_SERVICE | LS_HTTP_ARG_PID)
#define SECONDS 30u                     /* as Go's net/http/pprof has it */
#define LAST_MS 600000u
#define DAY_MS 86400000u
#define JSON "application/json"
#define HTML "text/html; charset=utf-8"
#define TEXT "text/plain; charset=utf-8"

const struct ls_http_endpoint ls_http_endpoints[] = {
        { "/", "GET", 0, LS_HTTP_REQUEST, "all", NULL, 0, HTML, ls_http_page, "this page" },
        { "/debug/pprof/", "GET", 0, LS_HTTP_REQUEST, "all", NULL, 0, HTML, ls_http_index,
          "profiles, as Go's net/http/pprof has them" },
        { "/debug/pprof/profile", "GET", PPROF, LS_HTTP_EXPORT, NULL, "cpu", SECONDS, NULL, NULL,
          "CPU time" },
        { "/debug/pprof/wall", "GET", PPROF, LS_HTTP_EXPORT, NULL, "wall", SECONDS, NULL, NULL,
          "time that passed, where it was recorded" },
        { "/debug/pprof/suspended", "GET", PPROF, LS_HTTP_EXPORT, NULL, "suspended", SECONDS, NULL,
          NULL, "time of coroutines that waited, where it was recorded" },
        { "/flame", "GET", PAGE, LS_HTTP_FLAME, NULL, NULL, 0, HTML, NULL,
          "flame graph and time line; of sources what the store keeps" },
        { "/diff", "GET", PAGE | LS_HTTP_ARG_BEFORE, LS_HTTP_DIFF, NULL, NULL, 0, HTML, NULL,
          "the same beside the time before, 24h if not given" },
        { "/stack", "GET", LS_HTTP_ARG_PID, LS_HTTP_STACK, NULL, NULL, 0, TEXT, NULL,
          "where the threads and coroutines of a process are now" },
        { "/targets", "GET", 0, LS_HTTP_REQUEST, "targets", NULL, 0, JSON, NULL, "processes" },
        { "/status", "GET", 0, LS_HTTP_REQUEST, "status", NULL, 0, JSON, NULL,
          "the daemon and its services" },
        { "/burst", "POST", TARGET, LS_HTTP_REQUEST, "burst", NULL, 0, JSON, NULL,
          "records closely for a while" },
        { "/snapshot", "POST", LS_HTTP_ARG_SERVICE | LS_HTTP_ARG_TIME, LS_HTTP_REQUEST, "snapshot",
          NULL, 0, JSON, NULL, "keeps the last minutes" },
        { "/operations/", "GET", 0, LS_HTTP_REQUEST, "operation", NULL, 0, JSON, NULL,
          "what burst and snapshot came to" },
        { "/metrics", "GET", 0, LS_HTTP_REQUEST, "all", NULL, 0, TEXT, ls_http_metrics,
          "for Prometheus" },
        { "/healthz", "GET", 0, -1, NULL, NULL, 0, TEXT, NULL, "ok" },
        { "/readyz", "GET", 0, LS_HTTP_REQUEST, "ready", NULL, 0, TEXT, NULL,
          "ok, when something can be recorded" },
        { 0 },
};

const struct ls_http_endpoint *ls_http_find(const char *path)
{
        for (const struct ls_http_endpoint *e = ls_http_endpoints; e->path; e++)
                if (!strcmp(e->path, path) ||
                    (!strcmp(e->path, "/operations/") && !strncmp(path, e->path, strlen(e->path))))
                        return e;
        return NULL;
}

static void make_times(const struct ls_http_call *c, struct ls_http_ask *a)
{
        uint64_t now = ls_store_now_ms(), last = c->args.last_ms;

        a->to_ms = c->args.to_ms ? c->args.to_ms : now;
        if (c->due_ms) {                /* it has waited for the seconds that were asked for */
                a->to_ms = c->due_ms;
                last = c->args.seconds ? c->args.seconds * 1000ull : c->endpoint->seconds * 1000ull;
        }
        last = last ? last : LAST_MS;
        a->from_ms = c->args.from_ms ? c->args.from_ms : a->to_ms > last ? a->to_ms - last : 0;
        a->before_ms = c->args.before_ms ? c->args.before_ms : DAY_MS;
}

void ls_http_make_ask(const struct ls_http_call *c, struct ls_http_ask *a)
{
        const struct ls_http_endpoint *e = c->endpoint;

        memset(a, 0, sizeof(*a));
        a->id = c->id;
        a->op = (uint32_t)e->op;
        a->pid = c->args.pid;
        memcpy(a->service, c->args.service, sizeof(a->service));
        make_times(c, a);
        snprintf(a->format, sizeof(a->format), "%s",
                 c->args.format ? c->args.format->name : "pprof");
        snprintf(a->event, sizeof(a->event), "%s", e->event ? e->event : "");
        snprintf(a->text, sizeof(a->text), "%s", c->words[0] ? c->words : e->words ? e->words : "");
}
