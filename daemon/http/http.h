/* The HTTP process: one with nobody's rights, that alone speaks with clients, and asks the daemon
 * for what it gives them (wire.h). serve.c: the process, its connections; endpoints.c: what there
 * is to ask for; arguments.c: the texts behind the ?; page.c: the page of /; metrics.c: /metrics.
 * One thread. */
#ifndef LS_DAEMON_HTTP_HTTP_H
#define LS_DAEMON_HTTP_HTTP_H

#include <microhttpd.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/http/arguments.h"
#include "daemon/http/wire.h"

#define LS_HTTP_CALLS_MOST 64u          /* clients at one time, of each socket; */
#define LS_HTTP_WAITS_MOST 24u          /* so many calls wait for time that is to pass */
#define LS_HTTP_IDLE_S 30u              /* for a request to come; without a byte that is read */

struct ls_http_call;

/* What is done with an answer of the daemon's: text is its file, with a 0 behind it. Writes what
 * the client gets to out. Returns 0 or -errno. */
typedef int (*ls_http_show)(const struct ls_http_call *c, const char *text, FILE *out);

struct ls_http_endpoint {
        const char *path, *method;
        unsigned takes;                 /* LS_HTTP_ARG_* */
        int op;                         /* enum ls_http_op; -1 = answered at once, with ok */
        const char *words;              /* of LS_HTTP_REQUEST: what is asked, the target behind
                                         * it */
        const char *event;              /* of LS_HTTP_EXPORT */
        unsigned seconds;               /* waits so long, when no time is given; 0 = the last ten
                                         * minutes */
        const char *type;               /* of the answer; NULL = that of the format */
        ls_http_show show;              /* NULL = the file as it is */
        const char *help;               /* for the page */
};
extern const struct ls_http_endpoint ls_http_endpoints[];      /* ended by path NULL */

struct ls_http_call {
        const struct ls_http_endpoint *endpoint;
        struct ls_http_args args;
        struct MHD_Connection *connection;
        uint32_t id;                    /* of what the daemon was asked; 0 = nothing yet */
        uint64_t due_ms;                /* then it is asked; CLOCK_REALTIME. 0 = now */
        int suspended;
        enum { LS_HTTP_NEW, LS_HTTP_WAITS, LS_HTTP_ASKED, LS_HTTP_DONE } state;
        char words[128];                /* for LS_HTTP_REQUEST, with the target; empty = the
                                         * endpoint's */
        int openmetrics;                /* the client reads them */
        size_t upload;                  /* bytes of a body, which is not read */
        struct ls_http_answer answer;
        int fd;                         /* of the answer; -1 = none */
};

/* The role: see wire.h. */
int ls_http_main(int argc, const char **argv);

/* connections.c. MHD's notice of one that begins or ends; cls is its listener's. */
void ls_http_connection(void *cls, struct MHD_Connection *con, void **context,
                        enum MHD_ConnectionNotificationCode code);
/* What its client does now: it waits for us, reads its answer, sends its next request. */
void ls_http_waits(struct MHD_Connection *con);
void ls_http_reads(struct MHD_Connection *con);
void ls_http_sends(struct MHD_Connection *con);
/* Whether its client will read no more, as far as the kernel knows. */
int ls_http_has_gone(struct MHD_Connection *con);
/* Ends those whose request has not come in time. Returns ms until the next one, -1 = none sends. */
int ls_http_late(void);

/* endpoints.c */
const struct ls_http_endpoint *ls_http_find(const char *path);
/* What the daemon is asked for a call; *ret. */
void ls_http_make_ask(const struct ls_http_call *c, struct ls_http_ask *ret);

/* page.c, metrics.c: of what ctl status and targets say, as {"status": ..., "targets": ...}. */
int ls_http_page(const struct ls_http_call *c, const char *text, FILE *out);
int ls_http_metrics(const struct ls_http_call *c, const char *text, FILE *out);
int ls_http_index(const struct ls_http_call *c, const char *text, FILE *out);
/* Requests answered so far, by their status: *ret_n of them. */
const struct ls_http_count { unsigned status; uint64_t n; } *ls_http_counts(unsigned *ret_n);

#endif
