/* Reads that may fault are tried by the kernel first: a system call that reads from the address and changes nothing says
 * whether it can be read. The program's SIGSEGV stays its own. Any context; errno is not kept. */
#ifndef LS_HANDLER_GUARD_H
#define LS_HANDLER_GUARD_H

#include <stddef.h>
#include <stdint.h>

#include "libsample/handler/ring_writer.h"

/* 1 when the page of this number (its address / 4096) can be read. */
LS_HANDLER int ls_page_readable(uintptr_t page);
/* 1 when n bytes (at least 1) at p can be read. One system call a page, 0.1 us. */
LS_HANDLER int ls_readable(const void *p, size_t n);

/* Pages that were found readable since ls_guard_begin: good for as long as no other code of this thread runs. */
struct ls_guard {
        uintptr_t pages[32];            /* page number, by its low bits; 0 = none */
        struct { uintptr_t low, high; } sure[2];        /* ranges that need no question: the C stack, the Lua stack */
};

LS_HANDLER void ls_guard_begin(struct ls_guard *g);
/* As ls_readable, remembered. n: less than a page. */
LS_HANDLER int ls_guard_reads(struct ls_guard *g, const void *p, size_t n);

#endif
