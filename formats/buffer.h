/* Growable bytes, and the varints in them. Used by all of formats/. A failed allocation sticks:
 * later appends do nothing, and the owner looks at failed once, before it uses the bytes. */
#ifndef LS_FORMATS_BUFFER_H
#define LS_FORMATS_BUFFER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct ls_buf {
        uint8_t *data;
        size_t len, cap;
        int failed;
};

/* Room for n more bytes, or NULL. */
static inline uint8_t *ls_buf_room(struct ls_buf *b, size_t n)
{
        if (b->failed)
                return NULL;
        if (b->cap - b->len < n || !b->data) {
                size_t cap = b->cap * 2 > b->len + n ? b->cap * 2 : b->len + n + 64;
                uint8_t *p = realloc(b->data, cap);

                if (!p) {
                        b->failed = 1;
                        return NULL;
                }
                b->data = p;
                b->cap = cap;
        }
        return b->data + b->len;
}

static inline void ls_buf_add(struct ls_buf *b, const void *bytes, size_t n)
{
        uint8_t *p = ls_buf_room(b, n);

        if (p && n) {
                memcpy(p, bytes, n);
                b->len += n;
        }
}

static inline void ls_buf_free(struct ls_buf *b)
{
        free(b->data);
        *b = (struct ls_buf){ 0 };
}

#define LS_VARINT_MAX 10                /* bytes of the longest varint */

/* LEB128: 7 bits a byte, lowest first, the high bit says that more follow. Returns the end. */
static inline uint8_t *ls_varint_put(uint8_t *p, uint64_t v)
{
        while (v >= 0x80) {
                *p++ = (uint8_t)v | 0x80;
                v >>= 7;
        }
        *p++ = (uint8_t)v;
        return p;
}

static inline void ls_buf_varint(struct ls_buf *b, uint64_t v)
{
        uint8_t *p = ls_buf_room(b, LS_VARINT_MAX);

        if (p)
                b->len = (size_t)(ls_varint_put(p, v) - b->data);
}

/* Reads a varint at *p, which it moves. Returns 0, or -1 when it passes end or 64 bits. */
static inline int ls_varint_get(const uint8_t **p, const uint8_t *end, uint64_t *ret_v)
{
        const uint8_t *q = *p;
        uint64_t v = 0;

        for (unsigned shift = 0; shift < 64; shift += 7) {
                if (q == end)
                        return -1;
                v |= (uint64_t)(*q & 0x7f) << shift;
                if (*q++ < 0x80) {
                        if (shift == 63 && q[-1] > 1)
                                return -1;
                        *p = q;
                        *ret_v = v;
                        return 0;
                }
        }
        return -1;
}

static inline uint64_t ls_zigzag(uint64_t v)
{
        return (v << 1) ^ (uint64_t)((int64_t)v >> 63);
}

static inline uint64_t ls_unzigzag(uint64_t v)
{
        return (v >> 1) ^ (0 - (v & 1));
}

#endif
