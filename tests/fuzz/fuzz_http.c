/* libFuzzer target: any bytes as the target of an HTTP request, PATH?KEY=VALUE&..., as
 * libmicrohttpd gives it to us. What is taken keeps its bounds, and what is refused says why. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/http/http.h"
#include "tests/fuzz/touch.h"

#define NOW_MS 1763822096125ull

static void check_args(const struct ls_http_args *a)
{
        must(memchr(a->service, 0, sizeof(a->service)) != NULL &&
             !strpbrk(a->service, "/<>&\"'\n "));
        must(a->pid >= 0 && a->seconds <= LS_HTTP_SECONDS_MOST);
        must(!a->to_ms || a->from_ms < a->to_ms);
        must((a->seconds != 0) + (a->last_ms != 0) + (a->from_ms != 0) <= 1);
}

static void check_ask(const struct ls_http_call *c)
{
        struct ls_http_ask ask;

        ls_http_make_ask(c, &ask);
        must(memchr(ask.service, 0, sizeof(ask.service)) != NULL &&
             memchr(ask.event, 0, sizeof(ask.event)) != NULL &&
             memchr(ask.format, 0, sizeof(ask.format)) != NULL &&
             memchr(ask.text, 0, sizeof(ask.text)) != NULL);
        must(ask.before_ms != 0 && ask.to_ms != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = malloc(size + 1), *rest, *pair, why[256] = "";
        struct ls_http_call call = { .fd = -1 };
        int wrong = 0;

        must(text != NULL);
        memcpy(text, data, size);
        text[size] = 0;
        rest = text;
        call.endpoint = ls_http_find(strsep(&rest, "?"));
        while (call.endpoint && !wrong && rest && (pair = strsep(&rest, "&"))) {
                char *key = strsep(&pair, "=");

                wrong = ls_http_argument(&call.args, call.endpoint->takes, key, pair, NOW_MS, why,
                                         sizeof(why));
                must(!wrong || *why);
        }
        if (call.endpoint && !wrong) {
                wrong = ls_http_arguments_end(&call.args, why, sizeof(why));
                must(!wrong || *why);
        }
        if (call.endpoint && !wrong) {
                check_args(&call.args);
                check_ask(&call);
        }
        free(text);
        return 0;
}
