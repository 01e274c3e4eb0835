/* What the daemon and its HTTP process say to each other, over a socket of messages. The daemon
 * believes nothing that it is told: whoever takes the HTTP process over can ask what is here. Used
 * by daemon/web.c and by serve.c. */
#ifndef LS_DAEMON_HTTP_WIRE_H
#define LS_DAEMON_HTTP_WIRE_H

#include <stdint.h>

#define LS_HTTP_ROLE "http"             /* argv[1] under LS_WORKER_ARGV0 */
#define LS_HTTP_TEXT 512u
#define LS_HTTP_PEM (32u << 10)         /* bytes of a certificate with its chain, or of a key */
#define LS_HTTP_NAME 64u                /* of a service, with the 0 */

enum { LS_HTTP_FD_CHANNEL = 3, LS_HTTP_FD_UNIX, LS_HTTP_FD_TCP };       /* of the HTTP process */

struct ls_http_setup {                  /* the first message */
        uint32_t has_unix, has_tcp, has_tls;
        uint32_t owner, group;          /* who may connect to the unix socket, beside root */
        char token[256];                /* empty = none is asked for */
        char host[256];                 /* name that a request may be for, beside that of loopback;
                                         * empty = none */
        char address[64];               /* of tcp */
        char certificate[LS_HTTP_PEM], key[LS_HTTP_PEM];
};

enum ls_http_op {
        LS_HTTP_REQUEST,                /* text: as of ctl, those of web.c's table */
        LS_HTTP_EXPORT,                 /* a time of a service, in a format; */
        LS_HTTP_FLAME,                  /* as the page of report --html, */
        LS_HTTP_DIFF,                   /* beside the same before */
        LS_HTTP_STACK,                  /* of a process, now */
        LS_HTTP_CANCEL,                 /* nobody waits for id any more; not answered */
};

struct ls_http_ask {
        uint32_t id, op;
        int32_t pid;                    /* 0 = all of the service */
        uint32_t zero;
        uint64_t from_ms, to_ms, before_ms;
        char service[LS_HTTP_NAME];     /* empty = that of pid, or the only one */
        char event[16], format[16];     /* empty = as the command has it */
        char text[128];
};

struct ls_http_answer {                 /* with the file, when status is 200 */
        uint32_t id;
        int32_t status;                 /* as of HTTP */
        char text[LS_HTTP_TEXT];        /* else: what is wrong, a line */
};

#endif
