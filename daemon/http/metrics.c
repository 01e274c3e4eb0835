/* /metrics: see http.h. A row of a table is a metric. */
#include "daemon/http/http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/http/json.h"

enum kind { GAUGE, COUNTER };

struct metric {
        const char *key;                /* of the JSON */
        const char *name;               /* without luasample_, and _total */
        enum kind kind;
        double by;                      /* one of the JSON's is so many of the metric's */
        const char *help;
};

static const struct metric of_daemon[] = {
        { "uptime_s", "uptime_seconds", GAUGE, 1, "Time since the daemon began" },
        { "disk_full", "disk_full", GAUGE, 1, "Nothing is recorded, for lack of disk space" },
        { "disk_full_s", "disk_full_seconds", COUNTER, 1,
          "Time in which nothing was recorded, for lack of disk space" },
        { "dropped_ticks", "dropped_ticks", COUNTER, 1,
          "Ticks that recorders dropped, for lack of disk space" },
        { "host_cost_ppm", "host_cost_ratio", GAUGE, 1e-6,
          "Share of all processors that the daemon, recorders and agents take" },
        { "slowed", "slowed", COUNTER, 1, "Intervals that were doubled, for their cost" },
        { "quickened", "quickened", COUNTER, 1, "Intervals that came back" },
        { "merged_chunks", "merged_chunks", COUNTER, 1, "Times of which all chunks became one" },
        { "pruned_chunks", "pruned_chunks", COUNTER, 1, "Chunks that were removed" },
        { "pruned_bytes", "pruned_bytes", COUNTER, 1, "Bytes of chunks that were removed" },
        { "stored_chunks", "stored_chunks", GAUGE, 1, "Chunks in the store" },
        { "stored_bytes", "stored_bytes", GAUGE, 1, "Bytes of these" },
        { "stored_s", "stored_seconds", GAUGE, 1, "Age of the oldest of these" },
        { "kept", "kept", GAUGE, 1, "Times that snapshots and rules keep" },
        { "kept_bytes", "kept_bytes", GAUGE, 1, "Bytes of these" },
        { "commit_errors", "commit_errors", COUNTER, 1, "Chunks that could not be stored" },
        { "processes_left_out", "processes_left_out", GAUGE, 1,
          "Processes that are too many to be watched" },
};
static const struct metric of_service[] = {
        { "processes", "service_processes", GAUGE, 1,
          "Processes that the rule of the service names" },
        { "recorded", "service_recorded", GAUGE, 1, "Processes that are recorded" },
        { "chunks", "service_chunks", COUNTER, 1, "Chunks that were stored" },
        { "bytes", "service_bytes", COUNTER, 1, "Bytes of chunks that were stored" },
        { "failures", "service_failures", GAUGE, 1,
          "Failures of recorders; two put the service aside" },
        { "aside_s", "service_aside_seconds", GAUGE, 1, "Time until it is tried again" },
};
static const struct metric of_target[] = {
        { "interval_ns", "target_interval_seconds", GAUGE, 1e-9, "CPU time between two samples" },
        { "cost_ppm", "target_cost_ratio", GAUGE, 1e-6,
          "Share of its CPU time that the agent takes" },
        { "slowed", "target_slowed", COUNTER, 1, "Times that its interval was doubled" },
};
static const struct metric of_rule[] = {
        { "acted", "rule_acted", COUNTER, 1, "Times that the rule acted" },
        { "held_back", "rule_held_back", COUNTER, 1,
          "Times that it did not, since it had acted often enough" },
        { "failed", "rule_failed", COUNTER, 1, "Commands of it that failed" },
};

static const struct metric of_sink[] = {
        { "sent", "sink_sent", COUNTER, 1, "Profiles that were sent" },
        { "retries", "sink_retries", COUNTER, 1, "Times that sending failed, and is tried again" },
        { "refused", "sink_refused", COUNTER, 1,
          "Services of a time that the store refused for good" },
        { "given_up_s", "sink_given_up_seconds", COUNTER, 1,
          "Time that was too old when it could be sent" },
        { "behind_s", "sink_behind_seconds", GAUGE, 1, "Time that is not sent yet" },
        { "spool_chunks", "sink_spool_chunks", GAUGE, 1,
          "Chunks of the store that are not sent yet" },
        { "spool_bytes", "sink_spool_bytes", GAUGE, 1, "Bytes of these" },
};

/* A label's value: names are chosen by whoever starts a program. */
static void put_label(FILE *out, const char *key, const char *value)
{
        fprintf(out, "%s=\"", key);
        for (; *value; value++) {
                if (*value == '\\' || *value == '"')
                        putc('\\', out);
                if (*value == '\n')
                        fputs("\\n", out);
                else
                        putc(*value, out);
        }
        putc('"', out);
}

static void put_head(const struct ls_http_call *c, FILE *out, const char *name, enum kind kind,
                     const char *help)
{
        const char *end = kind == COUNTER && !c->openmetrics ? "_total" : "";

        fprintf(out, "# HELP luasample_%s%s %s.\n# TYPE luasample_%s%s %s\n", name, end, help, name,
                end, kind == COUNTER ? "counter" : "gauge");
}

static void put_value(FILE *out, const struct metric *m, yajl_val v)
{
        fprintf(out, " %.9g\n", (double)ls_json_number(v, m->key) * m->by);
}

static void put_name(FILE *out, const struct metric *m)
{
        fprintf(out, "luasample_%s%s", m->name, m->kind == COUNTER ? "_total" : "");
}

static void put_simple(const struct ls_http_call *c, yajl_val status, FILE *out)
{
        for (size_t i = 0; i < sizeof(of_daemon) / sizeof(*of_daemon); i++) {
                put_head(c, out, of_daemon[i].name, of_daemon[i].kind, of_daemon[i].help);
                put_name(out, &of_daemon[i]);
                put_value(out, &of_daemon[i], status);
        }
}

/* A sample for each element of an array, told apart by labels: key is the member that names one. */
static void put_array(const struct ls_http_call *c, yajl_val *v, size_t n, const struct metric *m,
                      size_t n_metrics, const char *label, FILE *out)
{
        for (size_t i = 0; i < n_metrics && n; i++) {
                put_head(c, out, m[i].name, m[i].kind, m[i].help);
                for (size_t k = 0; k < n; k++) {
                        put_name(out, &m[i]);
                        putc('{', out);
                        put_label(out, label, ls_json_text(v[k], "name"));
                        if (!strcmp(label, "process")) {
                                putc(',', out);
                                put_label(out, "service", ls_json_text(v[k], "service"));
                                fprintf(out, ",pid=\"%lld\"", ls_json_number(v[k], "pid"));
                        }
                        putc('}', out);
                        put_value(out, &m[i], v[k]);
                }
        }
}

static void put_requests(const struct ls_http_call *c, FILE *out)
{
        unsigned n;
        const struct ls_http_count *counts = ls_http_counts(&n);

        put_head(c, out, "http_requests", COUNTER, "Requests answered, by status");
        for (unsigned i = 0; i < n; i++)
                fprintf(out, "luasample_http_requests_total{code=\"%u\"} %llu\n", counts[i].status,
                        (unsigned long long)counts[i].n);
}

#define ARRAY(from, key, table, label) \
        do { \
                v = ls_json_array(from, key, &n); \
                put_array(c, v, n, table, sizeof(table) / sizeof(*(table)), label, out); \
        } while (0)

int ls_http_metrics(const struct ls_http_call *c, const char *text, FILE *out)
{
        char why[64];
        yajl_val all = yajl_tree_parse(text, why, sizeof(why)),
                 status = all ? ls_json_object(all, "status") : NULL, *v;
        size_t n;

        if (!status) {
                yajl_tree_free(all);
                return -EPROTO;
        }
        put_head(c, out, "build_info", GAUGE, "Version of the daemon");
        fputs("luasample_build_info{", out);
        put_label(out, "version", ls_json_text(status, "version"));
        fputs("} 1\n", out);
        put_simple(c, status, out);
        ARRAY(status, "services", of_service, "service");
        ARRAY(status, "rules", of_rule, "rule");
        ARRAY(status, "sinks", of_sink, "sink");
        ARRAY(all, "targets", of_target, "process");
        put_requests(c, out);
        if (c->openmetrics)
                fputs("# EOF\n", out);
        yajl_tree_free(all);
        return 0;
}
