/* Tables by ids from the ring: see ids.h. */
#include "record/ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Lost definitions leave holes; a ring of the largest size holds fewer than this. */
#define HOLE_MAX 262144u

int ls_ids_reserve(void **table, uint32_t *n, size_t size, uint32_t id)
{
        uint32_t want;
        char *grown;

        if (id == 0 || id >= LS_ID_MAX || id > *n + HOLE_MAX)
                return -EINVAL;
        if (id < *n)
                return 0;
        want = id + id / 2 + 64;
        grown = reallocarray(*table, want, size);
        if (!grown)
                return -ENOMEM;
        memset(grown + *n * size, 0, (want - *n) * size);
        *table = grown;
        *n = want;
        return 0;
}
