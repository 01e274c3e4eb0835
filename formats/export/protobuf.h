/* Writes protocol buffer messages, field by field. Used by exporters whose formats are messages. A
 * message of another is written into a buffer of its own first, since its length stands before it.
 *
 * By hand and not with protobuf-c: that wants a whole profile in memory as one tree of structs
 * before it packs it, and what is written here is four kinds of fields. */
#ifndef LS_FORMATS_EXPORT_PROTOBUF_H
#define LS_FORMATS_EXPORT_PROTOBUF_H

#include "formats/buffer.h"

#define LS_PROTO_VARINT 0u              /* wire types */
#define LS_PROTO_FIXED64 1u
#define LS_PROTO_BYTES 2u

static inline void ls_proto_tag(struct ls_buf *b, uint32_t field, uint32_t type)
{
        ls_buf_varint(b, (uint64_t)field << 3 | type);
}

/* int64, uint64, int32 >= 0, bool, enum. 0 is the default, which is not written. */
static inline void ls_proto_u64(struct ls_buf *b, uint32_t field, uint64_t value)
{
        if (!value)
                return;
        ls_proto_tag(b, field, LS_PROTO_VARINT);
        ls_buf_varint(b, value);
}

static inline void ls_proto_fixed64(struct ls_buf *b, uint32_t field, uint64_t value)
{
        uint8_t bytes[8];

        if (!value)
                return;
        for (int i = 0; i < 8; i++)
                bytes[i] = (uint8_t)(value >> 8 * i);
        ls_proto_tag(b, field, LS_PROTO_FIXED64);
        ls_buf_add(b, bytes, sizeof(bytes));
}

/* bytes, and strings, which must be UTF-8. Written when empty too: an element of a repeated field
 * may be. */
static inline void ls_proto_bytes(struct ls_buf *b, uint32_t field, const void *bytes, size_t n)
{
        ls_proto_tag(b, field, LS_PROTO_BYTES);
        ls_buf_varint(b, n);
        ls_buf_add(b, bytes, n);
}

/* A message, or packed numbers, which was made in a buffer of its own; that is emptied. */
static inline void ls_proto_message(struct ls_buf *b, uint32_t field, struct ls_buf *inner)
{
        b->failed |= inner->failed;
        ls_proto_bytes(b, field, inner->data, inner->len);
        inner->len = 0;
}

#endif
