/* Tables by ids from the ring: see ids.h. */
#include "record/process/ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Lost definitions leave holes; a ring of the largest size holds fewer than this. */
#define HOLE_MAX 262144u

/* Bytes of a process's tables: at the start, for each definition (dense ids take less than a
 * third), and at the most. */
#define BYTES_FREE (32u << 20)
#define BYTES_EACH 256u
#define BYTES_MOST (256u << 20)

int ls_ids_reserve(struct ls_ids *all, void **table, uint32_t *n, size_t size, uint32_t id)
{
        uint64_t more;
        uint32_t want;
        char *grown;

        if (id == 0 || id >= LS_ID_MAX || id > *n + HOLE_MAX)
                return -EINVAL;
        all->defined++;
        if (id < *n)
                return 0;
        want = id + id / 2 + 64;
        more = (want - *n) * (uint64_t)size;
        if (all->bytes + more > BYTES_MOST ||
            all->bytes + more > BYTES_FREE + all->defined * BYTES_EACH)
                return -EINVAL;
        grown = reallocarray(*table, want, size);
        if (!grown)
                return -ENOMEM;
        memset(grown + *n * size, 0, (want - *n) * size);
        all->bytes += more;
        *table = grown;
        *n = want;
        return 0;
}

void ls_ids_free(struct ls_ids *all, void *table, uint32_t n, size_t size)
{
        all->bytes -= n * (uint64_t)size;
        free(table);
}
