/* Growing arrays of the agent's own, in pages of their own: the program's allocator is never called, since its state
 * belongs to the program. Bare system calls: any context, signal handlers too (errno is not kept). */
#ifndef LS_PAGES_H
#define LS_PAGES_H

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* n zeroed bytes, or NULL. Freed with ls_pages_free. */
static inline void *ls_pages_new(size_t n)
{
        long p = syscall(SYS_mmap, NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);

        return p == -1 ? NULL : (void *)p;
}

static inline void ls_pages_free(void *p, size_t n)
{
        if (p)
                syscall(SYS_munmap, p, n);
}

/* Room for want elements of size bytes in *array, which has room for *room; keeps the contents. Returns 0, or -1 and
 * leaves all as it was. */
static inline int ls_pages_grow(void **array, size_t *room, size_t want, size_t size)
{
        size_t n = *room ? *room : 4096 / size + 1;
        void *p;

        if (want <= *room)
                return 0;
        while (n < want)
                n *= 2;
        if (*array) {
                long moved = syscall(SYS_mremap, *array, *room * size, n * size, MREMAP_MAYMOVE, NULL);

                p = moved == -1 ? NULL : (void *)moved;
        } else {
                p = ls_pages_new(n * size);
        }
        if (!p)
                return -1;
        *array = p;
        *room = n;
        return 0;
}

#endif
