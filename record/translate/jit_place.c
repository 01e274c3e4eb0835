/* Places that show the same frames become one: see jit_place.h. */
#include "record/translate/jit_place.h"

#include <stdlib.h>
#include <string.h>

#define CODE_MOST (64u << 10) /* bytes of machine code; LuaJIT's default area has so many */
#define FRAMES_MOST 64u       /* deeper inlining is left as it is; LuaJIT inlines 8 calls or so */

/* Frames at an offset; 0 = too many, or none. */
static unsigned frames_at(const struct ls_jit_map *map, uint32_t offset,
                          struct ls_jit_frame frames[FRAMES_MOST])
{
        unsigned n = ls_jit_map_frames(map, offset, frames, FRAMES_MOST);

        return n <= FRAMES_MOST ? n : 0;
}

static void merge(struct ls_jit_places *p)
{
        struct ls_jit_frame a[FRAMES_MOST], b[FRAMES_MOST], *last = a, *now = b, *swap;
        uint32_t ref = 0, origin = 0, first = 0;
        unsigned n_last = 0, n;

        for (uint32_t i = 0; i < p->n; i++) {
                uint32_t now_origin, now_ref = ls_jit_map_ref(p->map, i, &now_origin);

                if (i && now_ref == ref && now_origin == origin) {
                        p->first[i] = n_last ? first : i;
                        continue;
                }
                ref = now_ref;
                origin = now_origin;
                n = frames_at(p->map, i, now);
                if (!n || n != n_last || memcmp(now, last, n * sizeof *now))
                        first = i;
                p->first[i] = first;
                n_last = n;
                swap = last;
                last = now;
                now = swap;
        }
}

void ls_jit_places_init(struct ls_jit_places *p, const struct ls_rec_jittrace *rec, uint32_t size,
                        const char *irnames, uint32_t irnames_len,
                        const struct ls_jit_places *parent)
{
        struct ls_jit_input in;

        memset(p, 0, sizeof(*p));
        if (!(rec->flags & LS_JITF_MAP) || rec->mcode_size > CODE_MOST || !irnames ||
            ls_jit_input_parse(rec, size, &in) ||
            ls_jit_map_new(&in, irnames, irnames_len, parent ? parent->map : NULL, &p->map))
                return;
        if (ls_jit_map_is_approximate(p->map))
                return;
        p->n = rec->mcode_size;
        p->first = calloc(p->n ? p->n : 1, sizeof(*p->first));
        if (p->first)
                merge(p);
}

void ls_jit_places_done(struct ls_jit_places *p)
{
        ls_jit_map_free(p->map);
        free(p->first);
        memset(p, 0, sizeof(*p));
}
