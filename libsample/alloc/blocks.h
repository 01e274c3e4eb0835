/* The sampled blocks of a VM that are not freed yet. A filter of bits says of nearly all others
 * that they are not among them. Called by alloc.c, on the VM's thread: nothing is locked. */
#ifndef LS_LIBSAMPLE_ALLOC_BLOCKS_H
#define LS_LIBSAMPLE_ALLOC_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#define LS_BLOCKS_BITS 17
#define LS_BLOCKS_MOST (1u << 20)       /* of a VM */
#define LS_BLOCKS_FREED 512u

struct ls_block { uintptr_t at; uint32_t id; }; /* at 0 = none */

struct ls_blocks {                        /* pages of the agent's own */
        uint64_t bits[1 << (LS_BLOCKS_BITS - 6)]; /* that at least one block has */
        uint8_t counts[1 << LS_BLOCKS_BITS];      /* how many have each; 255 = so many or more, for
                                                   * good */
        struct ls_block *table;         /* open addressing */
        uint32_t room, n;               /* a power of two, and at most half of it */
        uint32_t freed[LS_BLOCKS_FREED], n_freed;       /* numbers of those that were, and of which
                                                         * the recorder does not know yet */
};

/* The bit of an address: blocks are multiples of 8 or 16. */
static inline uint32_t ls_blocks_bit(uintptr_t at)
{
        return (uint32_t)(((at >> 4) * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - LS_BLOCKS_BITS));
}

/* 0 = the block is not among them. */
static inline int ls_blocks_maybe(const struct ls_blocks *l, const void *p)
{
        uint32_t bit = ls_blocks_bit((uintptr_t)p);

        return l->bits[bit >> 6] >> (bit & 63) & 1;
}

/* NULL = there is no memory. */
struct ls_blocks *ls_blocks_new(void);
/* Forgets all of them. */
void ls_blocks_clear(struct ls_blocks *l);
void ls_blocks_free(struct ls_blocks *l);
/* Gives the memory back, but for the addresses of the bits, which are zeros from now on: a thread
 * may still look at them. Begins anew; returns 0, or -1: there is no memory. */
void ls_blocks_end(struct ls_blocks *l);
int ls_blocks_restart(struct ls_blocks *l);
/* Returns 0, or -1: there is no room for it. One that was at this address is forgotten. */
int ls_blocks_add(struct ls_blocks *l, const void *p, uint32_t id);
/* Its number, which it loses; 0 = it is not among them. */
uint32_t ls_blocks_take(struct ls_blocks *l, const void *p);

#endif
