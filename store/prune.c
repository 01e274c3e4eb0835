/* Removal of what is too old or too much for the store: see store.h. */
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int by_end(const void *a, const void *b)
{
        const struct ls_chunk *x = a, *y = b;

        return x->end_ms < y->end_ms ? -1 : x->end_ms > y->end_ms;
}

/* Bytes that miss for the share; 0 = there is room, or it cannot be known. */
static uint64_t bytes_missing(const struct ls_store *s, uint64_t min_free)
{
        struct statvfs st;
        uint64_t want;

        if (!min_free || fstatvfs(s->fd, &st) < 0 || !st.f_blocks)
                return 0;
        want = (uint64_t)st.f_blocks * min_free / 100;
        return st.f_bavail < want ? (want - st.f_bavail) * st.f_frsize : 0;
}

int ls_store_has_room(const struct ls_store *s, uint64_t min_free)
{
        return !bytes_missing(s, min_free);
}

/* 1 when another name keeps it: then its bytes are not free when it is removed here. */
static int is_kept(const struct ls_store *s, const struct ls_chunk *c)
{
        int fd = ls_store_open_chunk(s, c), kept = 0;
        struct stat st;

        if (fd >= 0) {
                kept = fstat(fd, &st) == 0 && st.st_nlink > 1;
                close(fd);
        }
        return kept;
}

int ls_store_prune(const struct ls_store *s, const struct ls_store_limits *limits, uint64_t now_ms,
                   struct ls_pruned *ret)
{
        uint64_t total = 0, missing = bytes_missing(s, limits->min_free);
        struct ls_chunks all;
        int error = ls_store_list(s, NULL, 0, UINT64_MAX, &all);

        memset(ret, 0, sizeof(*ret));
        if (error)
                return error;
        for (size_t i = 0; i < all.n; i++)
                total += all.v[i].size;
        if (all.n)
                qsort(all.v, all.n, sizeof(*all.v), by_end);
        for (size_t i = 0; i < all.n; i++) {
                const struct ls_chunk *c = &all.v[i];
                uint64_t freed = 0;
                int old = c->end_ms < now_ms && now_ms - c->end_ms > limits->max_age_ms;
                int much = total > limits->max_size, scarce = ret->bytes < missing;

                if (!old && !much && !scarce)
                        break;
                freed = is_kept(s, c) ? 0 : c->size;
                error = ls_store_remove(s, c);
                if (error)
                        break;
                total -= c->size;
                ret->n++;
                ret->bytes += freed;
                ret->by_age += old;
                ret->by_size += !old && much;
                ret->by_free += !old && !much;
        }
        ls_chunks_done(&all);
        return error;
}
