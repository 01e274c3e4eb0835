/* What recorder and worker say to each other: fixed structs over a SOCK_SEQPACKET socket, one
 * request, one reply; some requests bring descriptors. Used by worker.c, which checks each reply
 * before it is used, and by serve.c. */
#ifndef LS_RECORD_WORKER_WIRE_H
#define LS_RECORD_WORKER_WIRE_H

#include <limits.h>
#include <stdint.h>

#include "record/worker/cfi.h"
#include "record/worker/object.h"

#define LS_WORKER_NAME 512u             /* bytes of a function's name, its end included */
#define LS_WORKER_ID   32u              /* bytes of a build id */
#define LS_WORKER_FILES 2048u           /* files that a worker knows */

enum ls_worker_op {
        LS_WORKER_OPEN,                 /* text: path; id: build id. reply.file: its number */
        LS_WORKER_ROW,                  /* file, offset. reply: row and function */
        LS_WORKER_SYMBOL,               /* file, offset. reply.text: name of the function there */
        LS_WORKER_BUILD_ID,             /* text: path. reply.id */
        LS_WORKER_HAS_LUAJIT,           /* text: path of a program or script, where programs are
                                         * searched. reply.size: 1 = yes */
        LS_WORKER_SAME,                 /* text: two paths. reply.size: 1 = of one file */
        LS_WORKER_SOURCE,               /* text: directory, name. reply: text (real path), size,
                                         * hash */
        LS_WORKER_LOADED,               /* descriptor: memory, to be read; offset: of an object.
                                         * reply.object */
        LS_WORKER_IMAGE,                /* descriptor: a file, by O_PATH. reply.object */
        LS_WORKER_CORE,                 /* descriptors: a core file; a file for its mappings as
                                         * /proc/PID/maps has them. reply.core */
        LS_WORKER_NOPS
};

#define LS_WORKER_FDS 2u                /* descriptors that a request may bring */

struct ls_worker_core {                 /* what a core file is of */
        int32_t pid;
        uint32_t threads;               /* in it, those that are not read too */
        char name[24];                  /* ends with a zero */
};

struct ls_worker_request {
        uint32_t op;                    /* enum ls_worker_op */
        uint32_t file;
        uint64_t offset;                /* in the file */
        int32_t pid;                    /* whose view of the files counts first; 0 = none */
        uint32_t id_len;
        uint8_t id[LS_WORKER_ID];
        uint32_t len[2];                /* of the texts that follow, without a zero at their end */
        char text[2 * PATH_MAX];
};

struct ls_worker_reply {
        int32_t error;                  /* 0 or -errno: then nothing else counts */
        uint32_t file;
        uint64_t size, hash;
        uint64_t function;
        struct ls_cfi_row row;          /* row.exprs: 1 = exprs follows, as far as it has
                                         * operations */
        uint32_t id_len;
        uint8_t id[LS_WORKER_ID];
        uint32_t len;                   /* of text */
        union {
                char text[PATH_MAX];
                struct ls_cfi_exprs exprs;
                struct ls_object object;
                struct ls_worker_core core;
        };
};

#endif
