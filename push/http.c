/* Requests to a store, by libcurl. Answers are of a stranger: little of them is kept, and nothing
 * is followed. */
#include "push/http.h"

#include "formats/escape.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define ANSWER_MOST 4096u               /* bytes of an answer that are looked at */
#define RETRY_MOST_MS 3600000u

struct reply {
        char text[ANSWER_MOST + 1];
        size_t n;
        uint64_t retry_ms;
};

static size_t take_body(char *data, size_t size, size_t n, void *ctx)
{
        struct reply *r = ctx;
        size_t all = size * n, room = ANSWER_MOST - r->n, part = all < room ? all : room;

        memcpy(r->text + r->n, data, part);
        r->n += part;
        return all;                     /* the rest is left out */
}

/* Retry-After: seconds, or a date. */
static size_t take_header(char *data, size_t size, size_t n, void *ctx)
{
        static const char name[] = "retry-after:";
        struct reply *r = ctx;
        char value[64], *end;
        size_t all = size * n, len;
        unsigned long seconds;
        time_t date;

        if (all < sizeof(name) || strncasecmp(data, name, sizeof(name) - 1))
                return all;
        len = all - (sizeof(name) - 1) < sizeof(value) - 1 ? all - (sizeof(name) - 1)
                                                           : sizeof(value) - 1;
        memcpy(value, data + sizeof(name) - 1, len);
        value[len] = '\0';
        seconds = strtoul(value, &end, 10);
        date = end == value ? curl_getdate(value, NULL) : -1;
        if (end == value)
                seconds = date > time(NULL) ? (unsigned long)(date - time(NULL)) : 0;
        r->retry_ms = seconds < RETRY_MOST_MS / 1000 ? seconds * 1000 : RETRY_MOST_MS;
        return all;
}

static char *with_query(char *url, CURL *curl, const char *separator, const char *name,
                        const char *value)
{
        char *n = curl_easy_escape(curl, name, 0), *v = curl_easy_escape(curl, value, 0);
        char *longer = url && n && v ? ls_print("%s%s%s=%s", url, separator, n, v) : NULL;

        curl_free(n);
        curl_free(v);
        free(url);
        return longer;
}

/* To be freed; NULL = no memory. */
static char *make_url(const struct ls_push *p, CURL *curl)
{
        const char *path = p->sink->path ? p->sink->path : "";
        size_t n = strlen(p->url), k = strlen(path);
        char *url;

        while (k && n && p->url[n - 1] == '/')
                n--;
        if (k > 1 && n > k && !strncmp(p->url + n - k, path, k))
                k = 0;                  /* it stands there */
        url = ls_print("%.*s%s", (int)n, p->url, k ? path : "");
        if (p->sink->flags & LS_SINK_QUERY) {
                url = with_query(url, curl, "?", "service.name", p->service);
                if (*p->host)
                        url = with_query(url, curl, "&", "host", p->host);
                for (unsigned i = 0; i < p->n_labels; i++)
                        url = with_query(url, curl, "&", p->labels[i].name, p->labels[i].value);
        } else if (p->table) {
                char *query = ls_print("INSERT INTO %s FORMAT JSONEachRow", p->table);

                url = query ? with_query(url, curl, "?", "query", query) : url;
                free(query);
        }
        return url;
}

static int add_header(struct curl_slist **list, const char *line)
{
        struct curl_slist *longer = curl_slist_append(*list, line);

        *list = longer ? longer : *list;
        return longer ? 0 : -ENOMEM;
}

static struct curl_slist *make_headers(const struct ls_push *p)
{
        struct curl_slist *list = NULL;
        int r = add_header(&list, p->sink->flags & LS_SINK_JSON ? "Content-Type: application/json"
                           : p->sink->flags & LS_SINK_OTLP ? "Content-Type: application/x-protobuf"
                           : !strcmp(p->sink->name, "pyroscope") ? "Content-Type: application/proto"
                           : "Content-Type: application/octet-stream");

        r = r ? r : add_header(&list, "Expect:");
        if (!strcmp(p->sink->name, "pyroscope"))
                r = r ? r : add_header(&list, "Connect-Protocol-Version: 1");
        for (const char *const *h = p->headers; *h; h++)
                r = r ? r : add_header(&list, *h);
        if (r) {
                curl_slist_free_all(list);
                list = NULL;
        }
        return list;
}

/* rejected_profiles of the partial success that OTLP may answer with: 1 { 1: number }. */
static uint64_t rejected(const struct reply *r)
{
        const uint8_t *at = (const uint8_t *)r->text, *end = at + r->n;
        uint64_t len, n;

        if (end - at < 3 || *at++ != 0x0a || ls_varint_get(&at, end, &len) || at == end ||
            *at++ != 0x08 || ls_varint_get(&at, end, &n))
                return 0;
        return n;
}

/* The first line of what it said. */
static void say_answer(const struct reply *r, const char *what, struct ls_answer *a)
{
        size_t n = strcspn(r->text, "\r\n");
        char *visible = ls_visible(r->text, n < 200 ? n : 200);

        snprintf(a->why, sizeof(a->why), "%s%s%s", what, n && visible ? ": " : "",
                 visible ? visible : "");
        free(visible);
}

static void judge(const struct ls_push *p, CURL *curl, const struct reply *r, struct ls_answer *a)
{
        const char *type = NULL, *wanted = p->sink->answer;
        char what[128];
        long status = 0;

        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
        a->status = (int)status;
        a->retry_ms = r->retry_ms;
        snprintf(what, sizeof(what), "it answers %ld", status);
        if (status / 100 != 2) {
                a->again = status == 408 || status == 429 ||
                           (status >= 500 && status != 501 && status != 505);
                say_answer(r, what, a);
        } else if (*wanted && r->n && (!type || strncasecmp(type, wanted, strlen(wanted)))) {
                snprintf(a->why, sizeof(a->why),
                         "its answer is none of %s (%.60s): is the URL right?", p->sink->name,
                         type ? type : "of no type");
        } else if ((p->sink->flags & LS_SINK_OTLP) && rejected(r)) {
                snprintf(a->why, sizeof(a->why), "it has taken no part of %llu profiles",
                         (unsigned long long)rejected(r));
        } else if (p->table && r->n) {
                say_answer(r, "it answers an insert with a text", a);
        }
}

static void set_options(const struct ls_push *p, CURL *curl, const struct ls_buf *body,
                        struct reply *r)
{
        curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, (const char *)body->data);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->len);
        curl_easy_setopt(curl, CURLOPT_USERAGENT, "luasample/" LS_VERSION);
        curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                         (long)(p->timeout_ms < 10000 ? p->timeout_ms : 10000));
        curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)p->timeout_ms);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, r);
        curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
        curl_easy_setopt(curl, CURLOPT_HEADERDATA, r);
}

void ls_push_http_begin(void)
{
        curl_global_init(CURL_GLOBAL_DEFAULT);
}

int ls_push_http(const struct ls_push *p, const struct ls_buf *body, struct ls_answer *ret)
{
        CURL *curl = curl_easy_init();
        char *url = curl ? make_url(p, curl) : NULL;
        struct curl_slist *headers = curl ? make_headers(p) : NULL;
        struct reply *reply = calloc(1, sizeof(*reply));
        int error = url && headers && reply ? 0 : -ENOMEM;
        CURLcode code;

        *ret = (struct ls_answer){ .status = 0 };
        if (!error) {
                set_options(p, curl, body, reply);
                curl_easy_setopt(curl, CURLOPT_URL, url);
                curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
                code = curl_easy_perform(curl);
                if (code == CURLE_OK) {
                        judge(p, curl, reply, ret);
                } else {
                        snprintf(ret->why, sizeof(ret->why), "%s", curl_easy_strerror(code));
                        ret->again = code != CURLE_URL_MALFORMAT &&
                                     code != CURLE_UNSUPPORTED_PROTOCOL &&
                                     code != CURLE_PEER_FAILED_VERIFICATION;
                }
        }
        free(reply);
        free(url);
        curl_slist_free_all(headers);
        curl_easy_cleanup(curl);
        return error;
}
