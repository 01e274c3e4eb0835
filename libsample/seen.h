/* How memory of a VM is read. In the program itself: as it is; what may not be there is asked for
 * first (handler/guard.h). In a process that reads the program from outside (LS_OUTSIDE,
 * record/watch/mirror.c) all that is there is the program's word: each read, even of a pointer that
 * was looked at a moment ago, must be of a page that was fetched from it, never of memory of our
 * own, and reads are counted, so that no chain is followed for ever. One that may not be ends the
 * look. */
#ifndef LS_SEEN_H
#define LS_SEEN_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef LS_OUTSIDE

#define LS_ITSELF 0

#define LS_SEEN_STEPS 1024u             /* reads between two looks at the clock */

struct ls_seen {
        uintptr_t page;                 /* number of the page that was read last; UINTPTR_MAX =
                                         * none */
        uint32_t left;                  /* reads until the clock is looked at */
};
extern struct ls_seen ls_seen;

/* As ls_at, of any n bytes. Does not return when they are not the program's. */
const void *ls_seen_at(const void *p, size_t n);

/* n bytes of the program's memory, which need not lie on pages that were fetched. Returns 0 or
 * -1. */
int ls_seen_copy(void *to, uintptr_t from, size_t n);

/* n bytes of the program's memory at p, n at least 1. */
static inline const void *ls_at(const void *p, size_t n)
{
        uintptr_t first = (uintptr_t)p >> 12, last = ((uintptr_t)p + n - 1) >> 12;

        return first == ls_seen.page && last == first && n < 4096 && --ls_seen.left
                       ? p
                       : ls_seen_at(p, n);
}

#else

#define LS_ITSELF 1                     /* 1 = the memory is our own */

static inline const void *ls_at(const void *p, size_t n)
{
        (void)n;
        return p;
}

#endif

/* Of an address that is no multiple of the type's size, too: the program's memory may say
 * anything. */
#define LS_OF(type, p) (((const struct { type v; } __attribute__((packed, may_alias)) *)(p))->v)

/* What is in the VM's memory: by address and offset; what a pointer of its points to; a member of
 * that. */
#define LS_READ(type, p, offset)                                                                   \
        LS_OF(type, ls_at((const void *)((uintptr_t)(p) + (uintptr_t)(offset)), sizeof(type)))
#define LS_GET(lvalue) LS_OF(__typeof__(lvalue), ls_at(&(lvalue), sizeof(lvalue)))
#define LS_FIELD(p, member) LS_READ(__typeof__((p)->member), p, offsetof(__typeof__(*(p)), member))
/* The same of an _Atomic, where other threads may change it. */
#if LS_ITSELF
#define LS_LOAD(p, member, order) atomic_load_explicit(&(p)->member, order)
#else
#define LS_LOAD(p, member, order)                                                                  \
        LS_READ(__typeof__(atomic_load(&(p)->member)), p, offsetof(__typeof__(*(p)), member))
#endif

/* The same as LS_READ, of a copy that is our own. */
#define LS_READ_COPY(type, p, offset) LS_OF(type, (const char *)(p) + (offset))

#define LS_TEXT_MOST (128u << 10)       /* of a text that a zero ends */

/* Length of such a text; of a longer one LS_TEXT_MOST. All of it can be read then. */
static inline size_t ls_text_len(const char *s)
{
        size_t n = 0;

        for (size_t part; n < LS_TEXT_MOST; n += part) {
                const char *end;

                part = LS_ITSELF ? LS_TEXT_MOST : 4096 - (((uintptr_t)s + n) & 4095);
                if (part > LS_TEXT_MOST - n)
                        part = LS_TEXT_MOST - n;
                end = memchr(ls_at(s + n, part), 0, part);
                if (end)
                        return (size_t)(end - s);
        }
        return n;
}

/* 1 when two such texts are the same. */
static inline int ls_text_is(const char *a, const char *b)
{
        size_t n = ls_text_len(a);

        return ls_text_len(b) == n && !memcmp(a, b, n);
}

#endif
