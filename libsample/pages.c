/* Pages of the agent's own: see pages.h. */

#include "libsample/pages.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE UINT64_C(4096)
#define AWAY                                                                                       \
        (UINT64_C(1) << 36) /* bytes below the agent's code: no library and no heap grows so far */

static _Atomic uintptr_t lowest;        /* of the places that were given out; 0 = none yet */

void *ls_pages_place(size_t n)
{
        uintptr_t here = (uintptr_t)&lowest & ~(PAGE - 1), none = 0,
                  size = (n + PAGE - 1) & ~(PAGE - 1);

        if (here < 2 * AWAY || size > AWAY)
                return NULL;
        atomic_compare_exchange_strong(&lowest, &none, here - AWAY);
        return (void *)(atomic_fetch_sub(&lowest, size) - size);
}

void *ls_pages_new(size_t n)
{
        long p = syscall(SYS_mmap, ls_pages_place(n), n, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);

        return p == -1 ? NULL : (void *)p;
}

void ls_pages_free(void *p, size_t n)
{
        if (p)
                syscall(SYS_munmap, p, n);
}

/* The same pages at another place. */
static void *move(void *old, size_t size, size_t n)
{
        void *p = ls_pages_new(n);

        if (p && syscall(SYS_mremap, old, size, n, MREMAP_MAYMOVE | MREMAP_FIXED, p) == -1) {
                ls_pages_free(p, n);
                return NULL;
        }
        return p;
}

int ls_pages_grow(void **array, size_t *room, size_t want, size_t size)
{
        size_t n = *room ? *room : 4096 / size + 1;
        void *p;

        if (want <= *room)
                return 0;
        while (n < want)
                n *= 2;
        p = *array ? move(*array, *room * size, n * size) : ls_pages_new(n * size);
        if (!p)
                return -1;
        *array = p;
        *room = n;
        return 0;
}
