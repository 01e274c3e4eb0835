/* One chunk: its header, checks and compression. See chunk.h. */
#include "formats/trace/chunk.h"

#include <errno.h>
#include <stddef.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define CUT_BYTES 64                    /* of the headers of the blocks that a cut adds */
#define HEADER_MAX (sizeof(struct ls_chunk_header) + UINT8_MAX)

uint64_t ls_hash(const void *bytes, size_t len)
{
        return XXH64(bytes, len, 0);
}

/* p: a header and its extra. */
static uint32_t header_check(const uint8_t *p, unsigned extra_len)
{
        uint8_t copy[HEADER_MAX];
        size_t len = sizeof(struct ls_chunk_header) + extra_len;

        memcpy(copy, p, len);
        memset(copy + offsetof(struct ls_chunk_header, check), 0, sizeof(uint32_t));
        return (uint32_t)ls_hash(copy, len);
}

/* One frame, its blocks ended at the offsets in cut. Returns its size, or an error of zstd. */
static size_t compress(ZSTD_CCtx *zstd, uint8_t *to, size_t bound, const struct ls_buf *raw,
                       const size_t *cut)
{
        ZSTD_outBuffer out = { to, bound, 0 };
        ZSTD_inBuffer in = { raw->data, 0, 0 };
        size_t r;

        if (!cut || cut[0] >= cut[1])
                return ZSTD_compress2(zstd, to, bound, raw->data, raw->len);
        ZSTD_CCtx_reset(zstd, ZSTD_reset_session_only);
        ZSTD_CCtx_setPledgedSrcSize(zstd, raw->len);
        for (unsigned i = 0; i < 2; i++) {
                in.size = cut[i];
                r = in.size > in.pos ? ZSTD_compressStream2(zstd, &out, &in, ZSTD_e_flush) : 0;
                if (r)
                        return ZSTD_isError(r) ? r : (size_t)-1;
        }
        in.size = raw->len;
        r = ZSTD_compressStream2(zstd, &out, &in, ZSTD_e_end);
        return r ? ZSTD_isError(r) ? r : (size_t)-1 : out.pos;
}

int ls_chunk_make(struct ls_buf *out, ZSTD_CCtx *zstd, struct ls_chunk_header *h,
                  const struct ls_buf *extra, const struct ls_buf *raw, const size_t *cut)
{
        size_t head = sizeof(*h) + extra->len, bound = ZSTD_compressBound(raw->len) + CUT_BYTES, n;

        out->len = 0;
        if (extra->failed || raw->failed || !ls_buf_room(out, head + bound))
                return -ENOMEM;
        n = compress(zstd, out->data + head, bound, raw, cut);
        h->flags &= (uint8_t)~LS_CHUNKF_ZSTD;
        if (!ZSTD_isError(n) && n < raw->len) {
                h->flags |= LS_CHUNKF_ZSTD;
        } else {
                n = raw->len;
                if (n)
                        memcpy(out->data + head, raw->data, n);
        }
        h->magic = LS_CHUNK_MAGIC;
        h->major = LS_TRACE_MAJOR;
        h->extra_len = (uint8_t)extra->len;
        h->stored_size = (uint32_t)n;
        h->raw_size = (uint32_t)raw->len;
        h->payload_check = ls_hash(out->data + head, n);
        memcpy(out->data, h, sizeof(*h));
        if (extra->len)
                memcpy(out->data + sizeof(*h), extra->data, extra->len);
        h->check = header_check(out->data, h->extra_len);
        memcpy(out->data, h, sizeof(*h));
        out->len = head + n;
        return 0;
}

int ls_chunk_header_ok(const uint8_t *p, size_t len, struct ls_chunk_header *ret_h)
{
        struct ls_chunk_header h;

        if (len < sizeof(h))
                return 0;
        memcpy(&h, p, sizeof(h));
        if (h.magic != LS_CHUNK_MAGIC || len < sizeof(h) + h.extra_len ||
            header_check(p, h.extra_len) != h.check)
                return 0;
        *ret_h = h;
        return 1;
}

int ls_chunk_payload_ok(const struct ls_chunk_header *h, const uint8_t *stored)
{
        return ls_hash(stored, h->stored_size) == h->payload_check;
}

int ls_chunk_unpack(ZSTD_DCtx *zstd, const struct ls_chunk_header *h, const uint8_t *stored,
                    uint8_t *raw)
{
        size_t n;

        if (h->raw_size > LS_MAX_RAW)
                return -EBADMSG;
        if (!(h->flags & LS_CHUNKF_ZSTD)) {
                if (h->raw_size != h->stored_size)
                        return -EBADMSG;
                memcpy(raw, stored, h->raw_size);
                return 0;
        }
        n = ZSTD_decompressDCtx(zstd, raw, h->raw_size, stored, h->stored_size);
        return ZSTD_isError(n) || n != h->raw_size ? -EBADMSG : 0;
}
