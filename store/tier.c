/* Chunks of a time that is over become one: see store.h. A merged chunk stands for a window [begin,
 * end) of its service: all chunks of lower levels that begin in it are in it, and hidden where they
 * are still there. So it may be committed first and they be removed later, whatever happens in
 * between. */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#define INPUTS_LEAST 2u

static int hides(const struct ls_chunk *m, const struct ls_chunk *c)
{
        return m->level > c->level && !m->pid && !strcmp(m->service, c->service) &&
               m->begin_ms <= c->begin_ms && c->begin_ms < m->end_ms;
}

static int is_hidden(const struct ls_chunk *merged, size_t n_merged, const struct ls_chunk *c)
{
        for (size_t i = 0; i < n_merged; i++)
                if (hides(&merged[i], c))
                        return 1;
        return 0;
}

int ls_store_hide(struct ls_chunks *all, struct ls_chunks *ret_hidden)
{
        struct ls_chunk *merged = malloc((all->n + 1) * sizeof(*merged)), *hidden = NULL;
        size_t n_merged = 0, n = 0, n_hidden = 0;

        if (ret_hidden)
                hidden = malloc((all->n + 1) * sizeof(*hidden));
        if (!merged || (ret_hidden && !hidden)) {
                free(merged);
                free(hidden);
                return -1;
        }
        for (size_t i = 0; i < all->n; i++)
                if (!all->v[i].pid && all->v[i].level)
                        merged[n_merged++] = all->v[i];
        for (size_t i = 0; i < all->n; i++) {
                if (!is_hidden(merged, n_merged, &all->v[i]))
                        all->v[n++] = all->v[i];
                else if (hidden)
                        hidden[n_hidden++] = all->v[i];
        }
        all->n = n;
        free(merged);
        if (ret_hidden)
                *ret_hidden = (struct ls_chunks){ .v = hidden, .n = n_hidden, .room = n_hidden };
        return 0;
}

uint32_t ls_store_level(const struct ls_chunks *all, const struct ls_chunk *c)
{
        uint32_t level = c->level;

        for (size_t i = 0; i < all->n; i++) {
                struct ls_chunk as_it_is = *c;

                as_it_is.level = 0;
                if (hides(&all->v[i], &as_it_is) && all->v[i].level > level)
                        level = all->v[i].level;
        }
        return level;
}

int ls_window_has(const struct ls_window *w, const struct ls_chunk *c)
{
        return c->level < w->level && !strcmp(c->service, w->service) &&
               c->begin_ms >= w->begin_ms && c->begin_ms < w->end_ms;
}

int ls_window_find(const struct ls_chunks *all, uint32_t level, uint64_t length_ms,
                   uint64_t before_ms, int (*skip)(void *ctx, const struct ls_window *w), void *ctx,
                   struct ls_window *ret)
{
        for (size_t i = 0; i < all->n; i++) {
                const struct ls_chunk *c = &all->v[i];
                struct ls_window w = { .level = level };
                unsigned n = 0;

                if (c->level >= level)
                        continue;
                strcpy(w.service, c->service);
                w.begin_ms = c->begin_ms / length_ms * length_ms;
                w.end_ms = w.begin_ms + length_ms;
                if (w.end_ms >= before_ms || skip(ctx, &w))
                        continue;
                for (size_t k = i; k < all->n && all->v[k].begin_ms < w.end_ms &&
                                   !strcmp(all->v[k].service, w.service);
                     k++)
                        n += (unsigned)ls_window_has(&w, &all->v[k]);
                if (n < INPUTS_LEAST)
                        continue;
                *ret = w;
                return 1;
        }
        return 0;
}
