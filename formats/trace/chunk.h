/* One chunk: its header, checks and compression, without the file. Used by the writer and the
 * reader. */
#ifndef LS_FORMATS_TRACE_CHUNK_H
#define LS_FORMATS_TRACE_CHUNK_H

#include <zstd.h>

#include "formats/buffer.h"
#include "formats/trace/format.h"

/* Makes a chunk (header, extra, payload) in out from a raw payload. h: type, flags, number. cut,
 * unless NULL: two offsets in raw, 0 to its length and ascending, where the frame has a new block,
 * with statistics of its own. Returns 0 or -errno. */
int ls_chunk_make(struct ls_buf *out, ZSTD_CCtx *zstd, struct ls_chunk_header *h,
                  const struct ls_buf *extra, const struct ls_buf *raw, const size_t *cut);

/* Whether the len bytes at p start with a sound chunk header, extra included. Copies the header. */
int ls_chunk_header_ok(const uint8_t *p, size_t len, struct ls_chunk_header *ret_h);
static inline uint64_t ls_chunk_size(const struct ls_chunk_header *h)
{
        return sizeof(*h) + h->extra_len + (uint64_t)h->stored_size;
}
int ls_chunk_payload_ok(const struct ls_chunk_header *h, const uint8_t *stored);
/* Decompresses into raw (h->raw_size bytes; room for LS_MAX_RAW). Returns 0 or -EBADMSG. */
int ls_chunk_unpack(ZSTD_DCtx *zstd, const struct ls_chunk_header *h, const uint8_t *stored,
                    uint8_t *raw);

uint64_t ls_hash(const void *bytes, size_t len);

#endif
