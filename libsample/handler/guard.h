/* Reads that may fault are tried by the kernel first: a system call that reads from the address and
 * changes nothing says whether it can be read. The program's SIGSEGV stays its own. Any context;
 * errno is not kept. */
#ifndef LS_HANDLER_GUARD_H
#define LS_HANDLER_GUARD_H

#include <stddef.h>
#include <stdint.h>

#include "libsample/handler/ring_writer.h"

/* 1 when n bytes (at least 1) at p can be read. One system call a page, 0.1 us. */
LS_HANDLER int ls_readable(const void *p, size_t n);

/* What the program gives back to the kernel by munmap and mremap, counted around each call by
 * interpose/memory.c. */
struct ls_unmaps { _Atomic uint64_t begun, ended; };
extern struct ls_unmaps ls_unmaps;
/* 1 while all VMs are in memory that leaves only through these two: LuaJIT's own allocator, whose
 * calls come to us. */
extern _Atomic int ls_heap_is_watched;

/* Pages that were found readable: good for as long as no other code of this thread runs, and where
 * the heap is watched until something is unmapped. */
struct ls_guard {
        uint64_t as_of;                 /* ls_unmaps.begun + 1 when the pages were asked about; 0 =
                                         * they are of this tick alone */
        uintptr_t pages[64];            /* page number, by its low bits; 0 = none */
        uintptr_t wild[4];              /* the same, of this tick */
        struct { uintptr_t low, high; } sure[2];        /* ranges that need no question: the C
                                                         * stack, the Lua stack */
};

LS_HANDLER void ls_guard_begin(struct ls_guard *g);
/* As ls_readable, remembered. p points into the VM's heap, if it is what it should be. n: less than
 * a page. */
LS_HANDLER int ls_guard_reads(struct ls_guard *g, const void *p, size_t n);
/* The same for what may point anywhere. */
LS_HANDLER int ls_guard_reads_wild(struct ls_guard *g, const void *p, size_t n);

#endif
