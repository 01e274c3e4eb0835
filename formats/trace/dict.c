/* Rows of a record kind in memory: see dict.h. */
#include "formats/trace/dict.h"

#include "formats/trace/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

void ls_dict_init(struct ls_dict *d, unsigned kind)
{
        enum ls_rows rows = ls_schemas[kind].rows;

        *d = (struct ls_dict){ .kind = kind, .ncol = ls_schema_ncolumns(kind) };
        d->nkey = rows == LS_ROWS_KEYED ? 1 : d->ncol;
        if (kind == LS_REC_STACK)       /* its coroutine is not what it is, but what was seen of
                                         * it */
                d->nkey = LS_C_STACK_COROUTINE;
}

void ls_dict_done(struct ls_dict *d)
{
        free(d->rows);
        free(d->state);
        free(d->slots);
        d->rows = NULL;
        d->state = NULL;
        d->slots = NULL;
        d->n = d->cap = d->nslots = d->used = 0;
}

int ls_dict_grow(struct ls_dict *d, uint32_t n)
{
        if (n > ls_schemas[d->kind].max)
                return -ENOSPC;
        if (n > d->cap) {
                uint32_t cap = n > d->cap * 2 ? n + 16 : d->cap * 2;
                uint64_t *rows = realloc(d->rows, (size_t)cap * d->ncol * sizeof(*rows));
                uint8_t *state;

                if (!rows)
                        return -ENOMEM;
                d->rows = rows;
                state = realloc(d->state, cap);
                if (!state)
                        return -ENOMEM;
                d->state = state;
                d->cap = cap;
        }
        if (n > d->n) {
                memset(d->rows + (size_t)d->n * d->ncol, 0,
                       (size_t)(n - d->n) * d->ncol * sizeof(*d->rows));
                memset(d->state + d->n, 0, n - d->n);
                d->n = n;
        }
        return 0;
}

uint32_t ls_dict_append(struct ls_dict *d, const uint64_t *row)
{
        if (d->n == UINT32_MAX || ls_dict_grow(d, d->n + 1))
                return 0;
        memcpy(ls_dict_row(d, d->n), row, d->ncol * sizeof(*row));
        d->state[d->n - 1] = LS_ROW_SEEN;
        return d->n;
}

static int slots_grow(struct ls_dict *d)
{
        uint32_t n = d->nslots ? d->nslots * 2 : 64;
        struct ls_slot *slots;

        if (d->used < d->nslots / 2)
                return 0;
        slots = calloc(n, sizeof(*slots));
        if (!slots)
                return -ENOMEM;
        for (uint32_t i = 0; i < d->nslots; i++) {
                uint32_t at = d->slots[i].hash & (n - 1);

                if (!d->slots[i].id)
                        continue;
                while (slots[at].id)
                        at = (at + 1) & (n - 1);
                slots[at] = d->slots[i];
        }
        free(d->slots);
        d->slots = slots;
        d->nslots = n;
        return 0;
}

uint32_t ls_dict_intern(struct ls_dict *d, const uint64_t *row, int *ret_new)
{
        size_t size = d->nkey * sizeof(*row);
        uint32_t hash = (uint32_t)XXH3_64bits(row, size), at, id;

        *ret_new = 0;
        if (slots_grow(d))
                return 0;
        for (at = hash & (d->nslots - 1); (id = d->slots[at].id); at = (at + 1) & (d->nslots - 1))
                if (d->slots[at].hash == hash && !memcmp(ls_dict_row(d, id), row, size))
                        return id;
        id = ls_dict_append(d, row);
        if (id) {
                d->slots[at] = (struct ls_slot){ id, hash };
                d->used++;
                *ret_new = 1;
        }
        return id;
}

uint32_t ls_strings_intern(struct ls_strings *s, const void *bytes, size_t len)
{
        struct ls_dict *d = &s->dict;
        uint32_t hash = (uint32_t)XXH3_64bits(bytes, len), at, id;

        if (slots_grow(d))
                return 0;
        for (at = hash & (d->nslots - 1); (id = d->slots[at].id); at = (at + 1) & (d->nslots - 1)) {
                const uint64_t *row = ls_dict_row(d, id);

                if (d->slots[at].hash == hash && row[0] == len &&
                    !memcmp(s->bytes + row[1], bytes, len))
                        return id;
        }
        if (s->cap - s->len <= len) {
                size_t cap = s->cap * 2 > s->len + len ? s->cap * 2 : s->len + len + 256;
                uint8_t *p = realloc(s->bytes, cap);

                if (!p)
                        return 0;
                s->bytes = p;
                s->cap = cap;
        }
        id = ls_dict_append(d, (const uint64_t[]){ len, s->len });
        if (id) {
                memcpy(s->bytes + s->len, bytes, len);
                s->len += len;
                d->slots[at] = (struct ls_slot){ id, hash };
                d->used++;
        }
        return id;
}
