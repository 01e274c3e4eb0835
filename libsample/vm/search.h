/* What tells a VM from other memory. The main lua_State and the global_State are parts of one
 * object, so they lie at a distance that the probe has measured, and each points to the other: a
 * word that points to where the global_State would be if it were the lua_State's may be one. Used
 * by find.c in the process itself, and by record/watch/now.c from another. */
#ifndef LS_LIBSAMPLE_VM_SEARCH_H
#define LS_LIBSAMPLE_VM_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#include "libsample/handler/walk.h"

struct ls_vm_search {
        int (*read)(void *ctx, uint64_t at, void *to,
                    size_t n); /* memory of the process: 1 = all n bytes */
        void (*found)(void *ctx, uint64_t L);                           /* a main lua_State */
        void *ctx;
};

/* A main lua_State at L, as far as can be told from what it holds. */
static inline int ls_vm_search_is_main(const struct ls_vm_search *s, uint64_t L)
{
        uint64_t global = L + ls_vm_facts.main_to_global, back, stack, base, maxstack;
        char state[LS_L_CFRAME + 8];

        if (!s->read(s->ctx, L, state, sizeof state) ||
            !s->read(s->ctx, global + ls_vm_facts.main_offset, &back, 8))
                return 0;
        stack = LS_READ_COPY(uint64_t, state, LS_L_STACK);
        base = LS_READ_COPY(uint64_t, state, LS_L_BASE);
        maxstack = LS_READ_COPY(uint64_t, state, LS_L_MAXSTACK);
        return back == L && LS_READ_COPY(uint8_t, state, LS_GC_TYPE) == LS_T_THREAD &&
               LS_READ_COPY(uint64_t, state, LS_L_GLREF) == global && stack && stack % 8 == 0 &&
               base > stack && base <= maxstack && s->read(s->ctx, stack, &back, 8);
}

/* The n words that lie at this address. */
static inline void ls_vm_search(const struct ls_vm_search *s, const uint64_t *words, uint64_t at,
                                size_t n)
{
        /* a word that holds its own address, but for this */
        uint64_t distance = ls_vm_facts.main_to_global - LS_L_GLREF;

        for (size_t i = 0; i < n; i++)
                if (words[i] - (at + 8 * i) == distance &&
                    ls_vm_search_is_main(s, at + 8 * i - LS_L_GLREF))
                        s->found(s->ctx, at + 8 * i - LS_L_GLREF);
}

#endif
