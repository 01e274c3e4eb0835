/* Guarded reads: see guard.h. */

#include "libsample/handler/guard.h"

#include "libsample/handler/guard_page.h"

#include <string.h>

#define PAGE_BITS 12

LS_HANDLER int ls_readable(const void *p, size_t n)
{
        uintptr_t first = (uintptr_t)p >> PAGE_BITS, last = ((uintptr_t)p + n - 1) >> PAGE_BITS;

        if (last < first)
                return 0;
        for (; first <= last; first++)
                if (!ls_page_readable(first))
                        return 0;
        return 1;
}

struct ls_unmaps ls_unmaps;
_Atomic int ls_heap_is_watched;

LS_HANDLER void ls_guard_begin(struct ls_guard *g)
{
        uint64_t begun = atomic_load(&ls_unmaps.begun);
        int still = atomic_load(&ls_heap_is_watched) && atomic_load(&ls_unmaps.ended) == begun;

        if (!still || g->as_of != begun + 1)
                memset(g->pages, 0, sizeof g->pages);
        g->as_of = still ? begun + 1 : 0;
        memset(g->wild, 0, sizeof g->wild);
        memset(g->sure, 0, sizeof g->sure);
}

#define ROOM(array) (sizeof(array) / sizeof *(array))

static int known_or_readable(struct ls_guard *g, uintptr_t page, int wild)
{
        uintptr_t *heap = &g->pages[page % ROOM(g->pages)],
                  *slot = wild ? &g->wild[page % ROOM(g->wild)] : heap;

        if (*heap == page || *slot == page)
                return page != 0;
        if (!ls_page_readable(page))
                return 0;
        *slot = page;
        return 1;
}

static int reads(struct ls_guard *g, const void *p, size_t n, int wild)
{
        uintptr_t first = (uintptr_t)p >> PAGE_BITS, last = ((uintptr_t)p + n - 1) >> PAGE_BITS;

        for (int i = 0; i < 2; i++)
                if ((uintptr_t)p >= g->sure[i].low && (uintptr_t)p < g->sure[i].high &&
                    g->sure[i].high - (uintptr_t)p >= n)
                        return 1;
        return known_or_readable(g, first, wild) &&
               (last == first || known_or_readable(g, last, wild));
}

LS_HANDLER int ls_guard_reads(struct ls_guard *g, const void *p, size_t n)
{
        return reads(g, p, n, 0);
}

LS_HANDLER int ls_guard_reads_wild(struct ls_guard *g, const void *p, size_t n)
{
        return reads(g, p, n, 1);
}
