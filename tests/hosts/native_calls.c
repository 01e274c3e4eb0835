/* Functions that call each other in ways that a stack walk must get through; compiled several times
 * with other options (the macro CALLS gives the names a prefix). Called by native.c. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/hosts/native_calls.h"

#define JOIN2(a, b) a##_##b
#define JOIN(a, b) JOIN2(a, b)
#define FN(name) JOIN(CALLS, name)

KEEP static int FN(leaf)(struct native_calls *c, int x)
{
        c->here(c);
        return x + c->zero;             /* no tail call */
}

KEEP static int FN(inner)(struct native_calls *c, int x)
{
        char room[256];

        memset(room, x, sizeof(room));
        return FN(leaf)(c, room[x & 7]) + room[(x + 3) & 7];
}

/* Room of a size that the compiler does not know: the frame needs rbp. */
KEEP static int FN(vla)(struct native_calls *c, int x)
{
        volatile char room[64 + (x & 63)];

        room[x & 15] = (char)x;
        return FN(inner)(c, x) + room[x & 15];
}

/* Stack aligned for vectors: the CFA is an expression. */
KEEP static int FN(aligned)(struct native_calls *c, int x)
{
        volatile char room[128] __attribute__((aligned(64)));
        volatile char more[16 + (x & 31)];

        room[x & 63] = (char)x;
        more[x & 15] = (char)x;
        return FN(vla)(c, x) + room[x & 63] + more[x & 15];
}

KEEP static int FN(compare)(const void *a, const void *b)
{
        const struct native_item *x = a, *y = b;

        if (x->calls && x->calls->left > 0) {
                x->calls->left--;
                FN(leaf)(x->calls, 1);
        }
        return x->key < y->key ? -1 : x->key > y->key;
}

KEEP int FN(chain)(struct native_calls *c)
{
        return FN(aligned)(c, 5) + c->zero;
}

KEEP int FN(sorted)(struct native_calls *c)
{
        struct native_item items[16];

        for (int i = 0; i < 16; i++)
                items[i] = (struct native_item){ c, 100 - i };
        c->left = 1;
        qsort(items, 16, sizeof(items[0]), FN(compare));
        return items[0].key + c->zero;
}

KEEP int FN(deep)(struct native_calls *c, int n)
{
        return n ? FN(deep)(c, n - 1) + c->zero : FN(leaf)(c, n);
}

KEEP int FN(fib)(struct native_calls *c, int n)
{
        return n < 2 ? n + c->zero : FN(fib)(c, n - 1) + FN(fib)(c, n - 2);
}

KEEP int FN(copies)(struct native_calls *c)
{
        static char a[1 << 16], b[1 << 16];
        size_t n = 0;

        for (int i = 0; i < 100; i++) {
                memcpy(a, b, sizeof(a) - (size_t)c->zero);
                memset(b, i | 1, sizeof(b) - 1 - (size_t)c->zero);
                n += strlen(b + c->zero);
        }
        return (int)n + c->zero;
}

KEEP int FN(clocks)(struct native_calls *c)
{
        struct timespec t;
        int64_t sum = 0;

        for (int i = 0; i < 1000; i++) {
                clock_gettime(CLOCK_MONOTONIC, &t);
                sum += t.tv_nsec;
        }
        return (int)sum + c->zero;
}

KEEP int FN(allocations)(struct native_calls *c)
{
        char *p[64];

        for (int i = 0; i < 64; i++)
                p[i] = malloc((size_t)(i * 37 + 1));
        for (int i = 0; i < 64; i++)
                free(p[i]);
        return c->zero;
}
