/* Matching of things of several recordings that are the same: by keys, the surest first, as long as
 * both have some left. Called by names.c. */
#include "report/diff/diff.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct candidate {
        uint64_t key, order;
        uint32_t is_new;                /* 0 = of m->all, 1 = of the items */
        uint32_t at;
};

uint64_t ls_match_key(uint64_t key, const void *bytes, size_t len)
{
        uint64_t hash = XXH3_64bits_withSeed(bytes, len, key);

        return hash ? hash : 1;
}

uint64_t ls_match_key_u64(uint64_t key, uint64_t value)
{
        return ls_match_key(key, &value, sizeof(value));
}

static int by_key(const void *x, const void *y)
{
        const struct candidate *a = x, *b = y;

        if (a->key != b->key)
                return a->key < b->key ? -1 : 1;
        if (a->is_new != b->is_new)
                return a->is_new ? 1 : -1;
        if (a->order != b->order)
                return a->order < b->order ? -1 : 1;
        return a->at < b->at ? -1 : a->at > b->at;
}

#define NOT_YET UINT32_MAX

/* Pairs the old and the new ones of a run of candidates with one key. */
static void pair(const struct candidate *c, size_t n, enum ls_match_rule rule, uint8_t *taken,
                 uint32_t *numbers)
{
        size_t old = 0, fresh;

        while (old < n && !c[old].is_new)
                old++;
        fresh = n - old;
        if ((rule == LS_MATCH_EQUAL && old != fresh) ||
            (rule == LS_MATCH_ONE && (old != 1 || fresh != 1)))
                return;
        for (size_t i = 0; i < old && i < fresh; i++) {
                taken[c[i].at] = 1;
                numbers[c[old + i].at] = c[i].at;
        }
}

static void match_pass(const struct ls_match *m, const struct ls_match_item *items, uint32_t n,
                       unsigned pass, enum ls_match_rule rule, struct candidate *c, uint8_t *taken,
                       uint32_t *numbers)
{
        size_t used = 0;

        for (uint32_t i = 0; i < m->n; i++)
                if (!taken[i] && m->all[i].keys[pass])
                        c[used++] =
                                (struct candidate){ m->all[i].keys[pass], m->all[i].order, 0, i };
        if (!used)
                return;
        for (uint32_t i = 0; i < n; i++)
                if (numbers[i] == NOT_YET && items[i].keys[pass])
                        c[used++] = (struct candidate){ items[i].keys[pass], items[i].order, 1, i };
        qsort(c, used, sizeof(*c), by_key);
        for (size_t i = 0, end; i < used; i = end) {
                for (end = i + 1; end < used && c[end].key == c[i].key; end++)
                        ;
                pair(c + i, end - i, rule, taken, numbers);
        }
}

static int grow(struct ls_match *m, uint32_t more)
{
        struct ls_match_item *bigger;
        uint64_t n = (uint64_t)m->n + more;

        if (n <= m->cap)
                return 0;
        bigger = n < UINT32_MAX / 2 ? reallocarray(m->all, n, sizeof(*bigger)) : NULL;
        if (!bigger)
                return -ENOMEM;
        m->all = bigger;
        m->cap = (uint32_t)n;
        return 0;
}

int ls_match(struct ls_match *m, const struct ls_match_item *items, uint32_t n,
             const enum ls_match_rule rules[LS_DIFF_PASSES], uint32_t *ret_numbers)
{
        struct candidate *c = calloc((size_t)m->n + n + 1, sizeof(*c));
        uint8_t *taken = calloc((size_t)m->n + 1, 1);
        int r = c && taken ? grow(m, n) : -ENOMEM;

        for (uint32_t i = 0; i < n; i++)
                ret_numbers[i] = NOT_YET;
        for (unsigned pass = 0; !r && m->n && pass < LS_DIFF_PASSES; pass++)
                match_pass(m, items, n, pass, rules[pass], c, taken, ret_numbers);
        for (uint32_t i = 0; !r && i < n; i++) {
                if (ret_numbers[i] == NOT_YET)
                        ret_numbers[i] = m->n++;
                m->all[ret_numbers[i]] = items[i];
                ret_numbers[i] += m->first;
        }
        free(c);
        free(taken);
        return r;
}

void ls_match_done(struct ls_match *m)
{
        free(m->all);
        memset(m, 0, sizeof(*m));
}
