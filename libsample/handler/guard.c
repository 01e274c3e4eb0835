/* Guarded reads: see guard.h. */
#include "libsample/handler/guard.h"

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

LS_HANDLER void ls_guard_begin(struct ls_guard *g)
{
        memset(g, 0, sizeof *g);
}

static int known_or_readable(struct ls_guard *g, uintptr_t page)
{
        uintptr_t *slot = &g->pages[page % (sizeof g->pages / sizeof *g->pages)];

        if (*slot == page)
                return page != 0;
        if (!ls_page_readable(page))
                return 0;
        *slot = page;
        return 1;
}

LS_HANDLER int ls_guard_reads(struct ls_guard *g, const void *p, size_t n)
{
        uintptr_t first = (uintptr_t)p >> PAGE_BITS, last = ((uintptr_t)p + n - 1) >> PAGE_BITS;

        for (int i = 0; i < 2; i++)
                if ((uintptr_t)p >= g->sure[i].low && (uintptr_t)p < g->sure[i].high && g->sure[i].high - (uintptr_t)p >= n)
                        return 1;
        return known_or_readable(g, first) && (last == first || known_or_readable(g, last));
}
