/* What native.c and the functions of native_calls.c share. */
#ifndef LS_TESTS_NATIVE_CALLS_H
#define LS_TESTS_NATIVE_CALLS_H

#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noipa))
#endif

struct native_calls {
        void (*here)(struct native_calls *c);   /* where a sample is taken */
        int zero;
        int left;
};

struct native_item { struct native_calls *calls; int key; };

#define NATIVE_CALLS(prefix) \
        int prefix##_chain(struct native_calls *c); \
        int prefix##_sorted(struct native_calls *c); \
        int prefix##_deep(struct native_calls *c, int n); \
        int prefix##_fib(struct native_calls *c, int n); \
        int prefix##_copies(struct native_calls *c); \
        int prefix##_clocks(struct native_calls *c); \
        int prefix##_allocations(struct native_calls *c);
NATIVE_CALLS(plain)                     /* -O2 -fomit-frame-pointer */
NATIVE_CALLS(fp)                        /* -O1 -fno-omit-frame-pointer */
NATIVE_CALLS(slow)                      /* -O0 */
NATIVE_CALLS(lib)                       /* -O2, a shared library */

#endif
