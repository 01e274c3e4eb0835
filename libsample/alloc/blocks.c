/* See blocks.h. */
#include "libsample/alloc/blocks.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "libsample/pages.h"

#define FIRST_ROOM 1024u

struct ls_blocks *ls_blocks_new(void)
{
        struct ls_blocks *l = ls_pages_new(sizeof *l);

        if (!l)
                return NULL;
        l->room = FIRST_ROOM;
        l->table = ls_pages_new(l->room * sizeof *l->table);
        if (l->table)
                return l;
        ls_pages_free(l, sizeof *l);
        return NULL;
}

void ls_blocks_end(struct ls_blocks *l)
{
        if (l->table)
                ls_pages_free(l->table, l->room * sizeof *l->table);
        l->table = NULL;
        madvise(l, sizeof *l, MADV_DONTNEED);
}

int ls_blocks_restart(struct ls_blocks *l)
{
        l->room = FIRST_ROOM;
        l->table = ls_pages_new(l->room * sizeof *l->table);
        return l->table ? 0 : -1;
}

void ls_blocks_free(struct ls_blocks *l)
{
        if (!l)
                return;
        if (l->table)
                ls_pages_free(l->table, l->room * sizeof *l->table);
        ls_pages_free(l, sizeof *l);
}

void ls_blocks_clear(struct ls_blocks *l)
{
        memset(l->bits, 0, sizeof l->bits);
        memset(l->counts, 0, sizeof l->counts);
        memset(l->table, 0, l->room * sizeof *l->table);
        l->n = l->n_freed = 0;
}

static uint32_t home(const struct ls_blocks *l, uintptr_t at)
{
        return (uint32_t)(((at >> 4) * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (l->room - 1);
}

/* Where the block is, or would be. */
static uint32_t place(const struct ls_blocks *l, uintptr_t at)
{
        uint32_t i = home(l, at);

        while (l->table[i].at && l->table[i].at != at)
                i = (i + 1) & (l->room - 1);
        return i;
}

static int grow(struct ls_blocks *l)
{
        struct ls_block *old = l->table, *more = ls_pages_new(2 * l->room * sizeof *more);
        uint32_t room = l->room;

        if (!more)
                return -1;
        l->table = more;
        atomic_signal_fence(memory_order_seq_cst);      /* a child of fork clears room entries */
        l->room = 2 * room;
        for (uint32_t i = 0; i < room; i++)
                if (old[i].at)
                        l->table[place(l, old[i].at)] = old[i];
        ls_pages_free(old, room * sizeof *old);
        return 0;
}

int ls_blocks_add(struct ls_blocks *l, const void *p, uint32_t id)
{
        uint32_t bit = ls_blocks_bit((uintptr_t)p), i;

        ls_blocks_take(l, p);
        if (l->n == LS_BLOCKS_MOST || (2 * l->n >= l->room && grow(l)))
                return -1;
        i = place(l, (uintptr_t)p);
        l->table[i] = (struct ls_block){ (uintptr_t)p, id };
        l->n++;
        l->bits[bit >> 6] |= UINT64_C(1) << (bit & 63);
        l->counts[bit] += l->counts[bit] < UINT8_MAX;
        return 0;
}

uint32_t ls_blocks_take(struct ls_blocks *l, const void *p)
{
        uint32_t hole = place(l, (uintptr_t)p), bit = ls_blocks_bit((uintptr_t)p),
                 mask = l->room - 1;
        uint32_t id = l->table[hole].id;

        if (!l->table[hole].at)
                return 0;
        if (l->counts[bit] < UINT8_MAX && !--l->counts[bit])
                l->bits[bit >> 6] &= ~(UINT64_C(1) << (bit & 63));
        /* Those behind it that could not be nearer to their own place move up. */
        for (uint32_t i = (hole + 1) & mask; l->table[i].at; i = (i + 1) & mask) {
                if (((i - home(l, l->table[i].at)) & mask) < ((i - hole) & mask))
                        continue;
                l->table[hole] = l->table[i];
                hole = i;
        }
        l->table[hole] = (struct ls_block){ 0, 0 };
        l->n--;
        return id;
}
