/* Places in the machine code of a trace that show the same frames become one: the first of them. A
 * program spends its time at thousands of instructions, but on few lines; each place would be a
 * definition of its own in the trace file. The file still has all that the map is made from, and
 * the place is one that the time was spent at, or next to. Called by jit_keep.c, in the
 * recorder. */
#ifndef LS_RECORD_TRANSLATE_JIT_PLACE_H
#define LS_RECORD_TRANSLATE_JIT_PLACE_H

#include "formats/jit/map.h"

struct ls_jit_places {
        struct ls_jit_map *map;         /* NULL = none could be made */
        uint32_t *first;                /* by offset: the first place with its frames; NULL = each
                                         * stands for itself */
        uint32_t n;
};

/* rec: a JITTRACE record of size bytes; parent: places of the trace that it leaves, or NULL. */
void ls_jit_places_init(struct ls_jit_places *p, const struct ls_rec_jittrace *rec, uint32_t size,
                        const char *irnames, uint32_t irnames_len,
                        const struct ls_jit_places *parent);
void ls_jit_places_done(struct ls_jit_places *p);

static inline uint32_t ls_jit_place(const struct ls_jit_places *p, uint32_t offset)
{
        return p->first && offset < p->n ? p->first[offset] : offset;
}

#endif
