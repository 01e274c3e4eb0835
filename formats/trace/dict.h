/* Rows of a record kind in memory, with ids, and the search for an equal row. The writer interns
 * with it, the reader collects definitions in it. */
#ifndef LS_FORMATS_TRACE_DICT_H
#define LS_FORMATS_TRACE_DICT_H

#include <stddef.h>

#include "formats/trace/format.h"

#define LS_ROW_SEEN   0x01      /* the row is there; a gap in the ids has no row */
#define LS_ROW_DIRTY  0x02      /* writer, keyed kinds: not in the file in this form */
#define LS_ROW_NEW    0x04      /* writer, keyed kinds: not in a checkpoint in this form */
#define LS_ROW_STAGED 0x08      /* writer: in the chunk that is being made */

struct ls_slot { uint32_t id, hash; };

struct ls_dict {
        unsigned kind;
        unsigned ncol;                  /* numbers in a row */
        unsigned nkey;                  /* leading ones that are compared; 0 = rows are never
                                         * searched */
        uint64_t *rows;                 /* of id 1, 2, ... */
        uint8_t *state;                 /* LS_ROW_* of id 1, 2, ... */
        uint32_t n, cap;                /* greatest id, and rows allocated */
        struct ls_slot *slots;          /* open addressing, a power of two */
        uint32_t nslots, used;
        uint32_t written, kept;         /* writer, dense kinds: ids in the file, and in a
                                         * checkpoint */
        uint32_t staged;                /* writer: ids in the file once the chunk in the making is
                                         * written */
};

void ls_dict_init(struct ls_dict *d, unsigned kind);
void ls_dict_done(struct ls_dict *d);
static inline uint64_t *ls_dict_row(const struct ls_dict *d, uint32_t id)
{
        return d->rows + (size_t)(id - 1) * d->ncol;
}
static inline int ls_dict_has(const struct ls_dict *d, uint64_t id)
{
        return id - 1 < d->n && (d->state[id - 1] & LS_ROW_SEEN);
}

/* Makes rows up to id n exist (zeros, not seen). Returns 0, -ENOSPC above the kind's limit, or
 * -ENOMEM. */
int ls_dict_grow(struct ls_dict *d, uint32_t n);
/* Adds a row without search. Returns its id, or 0 without room. */
uint32_t ls_dict_append(struct ls_dict *d, const uint64_t *row);
/* The id of the row with the same key; when there is none, the row is added and *ret_new set. 0
 * without room. */
uint32_t ls_dict_intern(struct ls_dict *d, const uint64_t *row, int *ret_new);

/* Strings: rows of the dictionary are (length, offset in bytes). */
struct ls_strings {
        struct ls_dict dict;
        uint8_t *bytes;
        size_t len, cap;
};
uint32_t ls_strings_intern(struct ls_strings *s, const void *bytes, size_t len);

#endif
