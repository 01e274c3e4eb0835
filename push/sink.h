/* Profiles to push, and where to. Shared by push/. */
#ifndef LS_PUSH_SINK_H
#define LS_PUSH_SINK_H

#include "formats/buffer.h"
#include "formats/export/export.h"

#define LS_SINK_JSON  1u                /* its requests are JSON */
#define LS_SINK_OTLP  2u                /* gets OTLP in place of pprof; is not settled */
#define LS_SINK_END   4u                /* takes the time of a profile for its end */
#define LS_SINK_QUERY 8u                /* its labels are in the URL */
#define LS_SINK_DIR   16u               /* files, no requests */

#define LS_PUSH_LABELS 24u              /* of a series; Pyroscope takes 30 with its own */

struct ls_push;

struct ls_sink {
        const char *name, *path, *answer, *help;
        size_t cells, bytes;
        unsigned depth, flags;          /* LS_SINK_* */
        /* The body of a request, of a profile and its id. 0 or -errno. */
        int (*body)(const struct ls_push *p, const struct ls_export *in, struct ls_buf *ret);
};

extern const struct ls_sink ls_sinks[];         /* ended by name NULL */

struct ls_series_label { const char *name, *value; };

struct ls_push {
        const struct ls_sink *sink;
        const char *url;                /* as given, without its type */
        const char *table;              /* of ClickHouse */
        const char *service, *host;     /* visible text */
        struct ls_series_label labels[LS_PUSH_LABELS];  /* in the order of their names */
        unsigned n_labels;
        const char *const *headers;     /* "Name: value", ended by NULL */
        uint64_t timeout_ms;            /* of a request */
        /* Of the profile that is sent: */
        struct ls_buf profile;          /* as its exporter wrote it */
        char id[37];                    /* UUID of its content and series */
};

struct ls_answer {
        int status;                     /* of HTTP; 0 = there was none */
        uint64_t retry_ms;              /* that it asks to wait; 0 = it does not say */
        int again;                      /* 1 = the same request may succeed later */
        char why[512];                  /* "": it has been taken; visible text */
};

#endif
