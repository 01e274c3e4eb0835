/* The texts behind the ? of a request, each checked. Called by serve.c, and by its fuzz target. */
#ifndef LS_DAEMON_HTTP_ARGUMENTS_H
#define LS_DAEMON_HTTP_ARGUMENTS_H

#include <stddef.h>
#include <stdint.h>

enum {
        LS_HTTP_ARG_SERVICE = 1, LS_HTTP_ARG_PID = 2, LS_HTTP_ARG_SECONDS = 4, LS_HTTP_ARG_TIME = 8,
        LS_HTTP_ARG_FORMAT = 16, LS_HTTP_ARG_BEFORE = 32,
};

#define LS_HTTP_SECONDS_MOST 300u       /* ?seconds= */

struct ls_http_args {
        char service[64];               /* empty = not given */
        int32_t pid;                    /* 0 = not given */
        uint32_t seconds;               /* 0 = not given */
        uint64_t last_ms, from_ms, to_ms, before_ms;    /* 0 = not given */
        const struct ls_exporter *format;               /* NULL = not given */
};

/* Takes one. value NULL = there is no =. takes: LS_HTTP_ARG_* that the endpoint has. now_ms:
 * CLOCK_REALTIME. Returns 0, or -EINVAL with what is wrong in why. */
int ls_http_argument(struct ls_http_args *a, unsigned takes, const char *key, const char *value,
                     uint64_t now_ms, char *why, size_t size);
/* When all were taken. Returns 0, or -EINVAL likewise. */
int ls_http_arguments_end(const struct ls_http_args *a, char *why, size_t size);

#endif
