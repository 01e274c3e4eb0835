/* A time of a service, as one trace. Called by the commands of report/ and by `luasample store`. */
#ifndef LS_STORE_QUERY_H
#define LS_STORE_QUERY_H

#include <stdint.h>

struct ls_query {
        const char *store;              /* NULL = the one that is there */
        const char *service;            /* NULL = the only one */
        const char *since, *until;      /* NULL = the first, the last that is there */
};

struct ls_pieces;

struct ls_range {
        char *name;                     /* "web, 2026-11-22 14:00:00 to 15:00:00"; to be freed */
        struct ls_pieces *found;        /* open files, until they are read */
        uint64_t from_ms, to_ms;
        int fd;                         /* the trace, in a file without a name; the caller's. -1 =
                                         * not yet */
        int cut;                        /* 1 = from_ns and to_ns are known: */
        uint64_t from_ns, to_ns;        /* behind the trace's start; to_ns UINT64_MAX = its end */
};

/* "2h" = two hours before now_ms, "14:30" = today or else yesterday, "2026-11-22 14:30[:05]", local
 * time; "@1763822096.125": seconds since 1970. Returns 0 or -EINVAL. */
int ls_query_time(const char *text, uint64_t now_ms, uint64_t *ret_ms);
/* Opens the chunks of that time, and what is being written, and reads nothing of them. shift_ms:
 * the same so long before. command: whose messages. Returns 0, or -errno after a line: -ENODATA,
 * -ENOENT: the store has none; -E2BIG. */
int ls_query_find(const char *command, const struct ls_query *q, uint64_t shift_ms,
                  struct ls_range *ret);
/* Merges them; of several times all are found before the first is read (ls_store_apart). Returns 0,
 * or -errno after a line; damaged chunks are named, and the rest is used. */
int ls_query_read(const char *command, struct ls_range *r);

#endif
