/* See maps.h. */
#include "formats/jit/maps.h"

#include <errno.h>
#include <stdlib.h>

#define CHAIN_MAX 1024u                 /* side traces of side traces */
/* What all maps together may cost, in steps and in bytes: a hostile file's. */
#define CELLS_MAX (UINT64_C(1) << 32)
#define BYTES_MAX (UINT64_C(256) << 20)

struct ls_jit_maps {
        const struct ls_profile *p;
        struct ls_jit_map **maps;       /* by trace */
        uint8_t *tried;                 /* by trace */
        uint64_t cells, bytes;          /* spent */
};

struct ls_jit_maps *ls_jit_maps_new(const struct ls_profile *p)
{
        struct ls_jit_maps *m = calloc(1, sizeof(*m));

        if (!m)
                return NULL;
        m->p = p;
        m->maps = calloc((size_t)p->n_jittraces + 1, sizeof(struct ls_jit_map *));
        m->tried = calloc((size_t)p->n_jittraces + 1, 1);
        if (m->maps && m->tried)
                return m;
        ls_jit_maps_free(m);
        return NULL;
}

/* Whether there is something left of what maps may cost, which is taken from it. */
static int afford(struct ls_jit_maps *m, const struct ls_rec_jittrace *head)
{
        m->cells += (uint64_t)head->nir * head->mcode_size / 3;
        m->bytes += (uint64_t)head->mcode_size * 4 + (uint64_t)head->nir * 8 +
                    (uint64_t)head->nevents * 16;
        return m->cells <= CELLS_MAX && m->bytes <= BYTES_MAX;
}

static int make(struct ls_jit_maps *m, uint32_t trace)
{
        const struct ls_jittrace *t = &m->p->jittraces[trace];
        struct ls_jit_input in;
        int e;

        if (!t->map)
                return 0;
        e = ls_jit_input_parse(t->map, t->map_len, &in);
        if (!e && afford(m, in.head))
                e = ls_jit_map_new(&in, t->irnames.s, t->irnames.len,
                                   t->parent ? m->maps[t->parent] : NULL, &m->maps[trace]);
        return e == -ENOMEM ? e : 0;
}

int ls_jit_maps_get(struct ls_jit_maps *m, uint32_t trace, const struct ls_jit_map **ret)
{
        uint32_t chain[CHAIN_MAX], at = trace;
        unsigned n = 0;
        int e = 0;

        for (; at && !m->tried[at] && n < CHAIN_MAX; at = m->p->jittraces[at].parent) {
                m->tried[at] = 1;       /* a circle ends here */
                chain[n++] = at;
        }
        while (!e && n > 0)
                e = make(m, chain[--n]);
        *ret = m->maps[trace];
        return e;
}

void ls_jit_maps_free(struct ls_jit_maps *m)
{
        if (!m)
                return;
        for (uint32_t i = 0; m->maps && i < m->p->n_jittraces; i++)
                ls_jit_map_free(m->maps[i]);
        free(m->maps);
        free(m->tried);
        free(m);
}
