/* Arguments of requests: see arguments.h. */
#include "daemon/http/arguments.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/suggest.h"
#include "formats/escape.h"
#include "formats/export/export.h"
#include "store/query.h"

#define LAST_MOST_MS (400 * 86400000ull)

/* The digits of a number from 1 to most. */
static int read_number(const char *text, unsigned long most, unsigned long *ret)
{
        char *end;

        if (*text < '0' || *text > '9' || strlen(text) > 10)
                return -EINVAL;
        *ret = strtoul(text, &end, 10);
        return *end || !*ret || *ret > most ? -EINVAL : 0;
}

static int take_service(struct ls_http_args *a, const char *value, uint64_t now_ms)
{
        (void)now_ms;
        if (strlen(value) >= sizeof(a->service) || *value == '.' || *value == '-' ||
            strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") !=
                    strlen(value))
                return -EINVAL;
        snprintf(a->service, sizeof(a->service), "%s", value);
        return 0;
}

static int take_pid(struct ls_http_args *a, const char *value, uint64_t now_ms)
{
        unsigned long n;

        (void)now_ms;
        if (read_number(value, INT_MAX, &n))
                return -EINVAL;
        a->pid = (int32_t)n;
        return 0;
}

static int take_seconds(struct ls_http_args *a, const char *value, uint64_t now_ms)
{
        unsigned long n;

        (void)now_ms;
        if (read_number(value, LS_HTTP_SECONDS_MOST, &n))
                return -EINVAL;
        a->seconds = (uint32_t)n;
        return 0;
}

static int read_span(const char *value, uint64_t *ret_ms)
{
        uint64_t ns;

        if (ls_parse_duration(value, "s", &ns) || ns < 1000000 || ns / 1000000 > LAST_MOST_MS)
                return -EINVAL;
        *ret_ms = ns / 1000000;
        return 0;
}

static int take_last(struct ls_http_args *a, const char *value, uint64_t now_ms)
{
        (void)now_ms;
        return read_span(value, &a->last_ms);
}

static int take_before(struct ls_http_args *a, const char *value, uint64_t now_ms)
{
        (void)now_ms;
        return read_span(value, &a->before_ms);
}

/* As --since and --until have them; ten digits or more are seconds since 1970. */
static int read_time(const char *value, uint64_t now_ms, uint64_t *ret_ms)
{
        char buf[32];
        int seconds = strlen(value) >= 10 && strlen(value) < sizeof(buf) - 1 &&
                      strspn(value, "0123456789.") == strlen(value);

        snprintf(buf, sizeof(buf), "@%s", seconds ? value : "");
        if (ls_query_time(seconds ? buf : value, now_ms, ret_ms) || !*ret_ms ||
            *ret_ms > now_ms + LAST_MOST_MS)
                return -EINVAL;
        return 0;
}

static int take_from(struct ls_http_args *a, const char *value, uint64_t now_ms)
{
        return read_time(value, now_ms, &a->from_ms);
}

static int take_to(struct ls_http_args *a, const char *value, uint64_t now_ms)
{
        return read_time(value, now_ms, &a->to_ms);
}

static int take_format(struct ls_http_args *a, const char *value, uint64_t now_ms)
{
        (void)now_ms;
        for (const struct ls_exporter *const *e = ls_exporters; *e; e++)
                if (!strcmp((*e)->name, value))
                        a->format = *e;
        return a->format && !strcmp(a->format->name, value) ? 0 : -EINVAL;
}

static const struct {
        const char *key;
        unsigned bit;
        int (*take)(struct ls_http_args *a, const char *value, uint64_t now_ms);
        const char *meant;
} keys[] = {
        { "service", LS_HTTP_ARG_SERVICE, take_service, "a service's name" },
        { "pid", LS_HTTP_ARG_PID, take_pid, "a process id" },
        { "seconds", LS_HTTP_ARG_SECONDS, take_seconds, "a number from 1 to 300" },
        { "last", LS_HTTP_ARG_TIME, take_last, "a time such as 90s, 10m or 2h" },
        { "from", LS_HTTP_ARG_TIME, take_from,
          "a time such as 2h (ago), 14:30, 2026-11-22T14:30, or seconds since 1970" },
        { "to", LS_HTTP_ARG_TIME, take_to,
          "a time such as 2h (ago), 14:30, 2026-11-22T14:30, or seconds since 1970" },
        { "before", LS_HTTP_ARG_BEFORE, take_before, "a time such as 24h" },
        { "format", LS_HTTP_ARG_FORMAT, take_format, "a format of luasample export --list" },
};

#define N_KEYS (sizeof(keys) / sizeof(*keys))

int ls_http_argument(struct ls_http_args *a, unsigned takes, const char *key, const char *value,
                     uint64_t now_ms, char *why, size_t size)
{
        const char *words[N_KEYS + 1], *near;
        unsigned n = 0;

        for (size_t i = 0; i < N_KEYS; i++) {
                if (!(takes & keys[i].bit))
                        continue;
                words[n++] = keys[i].key;
                if (strcmp(keys[i].key, key))
                        continue;
                if (value && *value && !keys[i].take(a, value, now_ms))
                        return 0;
                snprintf(why, size, "%s: give %s", key, keys[i].meant);
                return -EINVAL;
        }
        words[n] = NULL;
        near = ls_suggest(key, words);
        if (near)
                snprintf(why, size, "unknown argument '%.64s'; did you mean '%s'?", key, near);
        else
                snprintf(why, size, "unknown argument '%.64s'", key);
        return -EINVAL;
}

int ls_http_arguments_end(const struct ls_http_args *a, char *why, size_t size)
{
        const char *wrong = NULL;

        if ((a->seconds != 0) + (a->last_ms != 0) + (a->from_ms || a->to_ms) > 1)
                wrong = "seconds, last and from with to exclude each other";
        else if (a->to_ms && !a->from_ms)
                wrong = "to: give from too";
        else if (a->to_ms && a->to_ms <= a->from_ms)
                wrong = "from is not before to";
        snprintf(why, size, "%s", wrong ? wrong : "");
        return wrong ? -EINVAL : 0;
}
