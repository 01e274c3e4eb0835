/* Records and their columns, both ways: see record.h. */
#include "formats/trace/record.h"

#include "formats/trace/schema.h"

#include <errno.h>

static int parse_column(const uint8_t **p, const uint8_t *end, struct ls_record *rec)
{
        struct ls_column_view c = { .present = 1 };
        uint64_t tag, len;

        if (ls_varint_get(p, end, &tag))
                return -EBADMSG;
        c.encoding = tag & 7;
        if (c.encoding == LS_ENC_CONST) {
                if (ls_varint_get(p, end, &c.constant))
                        return -EBADMSG;
        } else {
                if (ls_varint_get(p, end, &len) || len > (uint64_t)(end - *p))
                        return -EBADMSG;
                c.data = *p;
                c.len = (size_t)len;
                *p += len;
        }
        tag >>= 3;
        if (tag == 0)
                return -EBADMSG;
        if (tag > LS_COLUMNS_MAX)               /* of a newer writer */
                return 0;
        if (rec->col[tag - 1].present)
                return -EBADMSG;
        rec->col[tag - 1] = c;
        return 0;
}

int ls_record_next(const uint8_t **p, const uint8_t *end, struct ls_record *ret_rec)
{
        struct ls_record *rec = ret_rec;
        uint64_t kind, len, first, count;
        const uint8_t *q, *body_end;

        if (*p == end)
                return 0;
        memset(rec, 0, sizeof(*rec));
        if (ls_varint_get(p, end, &kind) || ls_varint_get(p, end, &len) ||
            len > (uint64_t)(end - *p))
                return -EBADMSG;
        rec->kind = kind < UINT32_MAX ? (uint32_t)kind : UINT32_MAX;
        rec->body = q = *p;
        rec->body_len = (size_t)len;
        *p = body_end = q + len;
        if (kind >= LS_KINDS || !ls_schemas[kind].name)
                return 1;
        if (ls_varint_get(&q, body_end, &first) || ls_varint_get(&q, body_end, &count))
                return -EBADMSG;
        if (first > UINT32_MAX || count > LS_MAX_ROWS)
                return -EBADMSG;
        for (unsigned c = 0; c < LS_COLUMNS_MAX; c++)
                rec->col[c].data = q;           /* of absent ones too: no bytes, but a place */
        rec->first = (uint32_t)first;
        rec->count = (uint32_t)count;
        while (q < body_end)
                if (parse_column(&q, body_end, rec))
                        return -EBADMSG;
        return 1;
}

/* One decoder for the widths of the reader's columns; inlined with width constant, so that the
 * stores are plain. */
static inline __attribute__((always_inline)) void store(void *out, unsigned width, uint32_t i,
                                                        uint64_t v)
{
        if (width == 8)
                ((uint64_t *)out)[i] = v;
        else if (width == 4)
                ((uint32_t *)out)[i] = (uint32_t)v;
        else
                ((uint8_t *)out)[i] = (uint8_t)v;
}

static inline __attribute__((always_inline)) int decode_runs(const struct ls_column_view *c,
                                                             uint32_t n, unsigned width,
                                                             uint64_t *max_seen, void *out)
{
        const uint8_t *p = c->data, *end = p + c->len;
        uint64_t v, run;
        uint32_t i = 0;

        while (i < n) {
                if (ls_varint_get(&p, end, &v) || ls_varint_get(&p, end, &run) || run >= n - i)
                        return -EBADMSG;
                if (v > *max_seen)
                        *max_seen = v;
                for (uint32_t stop = i + (uint32_t)run + 1; i < stop; i++)
                        store(out, width, i, v);
        }
        return p == end ? 0 : -EBADMSG;
}

static inline __attribute__((always_inline)) int decode_planes(const struct ls_column_view *c,
                                                               uint32_t n, unsigned width,
                                                               uint64_t *max_seen, void *out)
{
        const uint8_t *p = c->data + 1;
        unsigned w = c->len ? c->data[0] : 0;
        uint64_t m = 0;

        if (w < 1 || w > 8 || c->len - 1 != (size_t)w * n)
                return -EBADMSG;
        if (w == 1) {
                for (uint32_t i = 0; i < n; i++) {
                        m = p[i] > m ? p[i] : m;
                        store(out, width, i, p[i]);
                }
        } else if (w == 2) {
                const uint8_t *hi = p + n;

                for (uint32_t i = 0; i < n; i++) {
                        uint32_t v = p[i] | (uint32_t)hi[i] << 8;

                        m = v > m ? v : m;
                        store(out, width, i, v);
                }
        } else if (w == 3) {
                const uint8_t *mid = p + n, *hi = mid + n;

                for (uint32_t i = 0; i < n; i++) {
                        uint32_t v = p[i] | (uint32_t)mid[i] << 8 | (uint32_t)hi[i] << 16;

                        m = v > m ? v : m;
                        store(out, width, i, v);
                }
        } else {
                for (uint32_t i = 0; i < n; i++) {
                        uint64_t v = 0;

                        for (unsigned k = w; k-- > 0; )
                                v = v << 8 | p[(size_t)k * n + i];
                        m = v > m ? v : m;
                        store(out, width, i, v);
                }
        }
        *max_seen = m;
        return 0;
}

static inline __attribute__((always_inline)) int decode_varints(const struct ls_column_view *c,
                                                                uint32_t first, uint32_t n,
                                                                unsigned width, uint64_t *max_seen,
                                                                void *out)
{
        const uint8_t *p = c->data, *end = p + c->len;
        uint64_t v, last = 0, m = 0;

        if (c->len < n)
                return -EBADMSG;
        for (uint32_t i = 0; i < n; i++) {
                if (p < end && *p < 0x80)
                        v = *p++;
                else if (ls_varint_get(&p, end, &v))
                        return -EBADMSG;
                if (c->encoding == LS_ENC_DELTA)
                        last = v = last + ls_unzigzag(v);
                else if (c->encoding == LS_ENC_BACK)
                        v = (uint64_t)first + i - v;
                m = v > m ? v : m;
                store(out, width, i, v);
        }
        *max_seen = m;
        return p == end ? 0 : -EBADMSG;
}

static int decode_fixed(const struct ls_column_view *c, uint32_t n, unsigned width,
                        uint64_t *max_seen, void *out)
{
        if (c->len != (size_t)n * 8)
                return -EBADMSG;
        for (uint32_t i = 0; i < n; i++) {
                uint64_t v;

                memcpy(&v, c->data + (size_t)i * 8, 8);
                if (v > *max_seen)
                        *max_seen = v;
                store(out, width, i, v);
        }
        return 0;
}

static inline __attribute__((always_inline)) int decode(const struct ls_record *rec,
                                                        unsigned column, unsigned width,
                                                        uint64_t max, void *out)
{
        const struct ls_column_view *c = &rec->col[column];
        uint64_t seen = 0;
        int r = 0;

        if (!c->present || c->encoding == LS_ENC_CONST) {
                seen = c->constant;
                for (uint32_t i = 0; i < rec->count; i++)
                        store(out, width, i, seen);
        } else if (c->encoding == LS_ENC_RUNS) {
                r = decode_runs(c, rec->count, width, &seen, out);
        } else if (c->encoding == LS_ENC_PLANES) {
                r = decode_planes(c, rec->count, width, &seen, out);
        } else if (c->encoding == LS_ENC_FIXED) {
                r = decode_fixed(c, rec->count, width, &seen, out);
        } else if (c->encoding == LS_ENC_BYTES) {
                r = -EBADMSG;
        } else {
                r = decode_varints(c, rec->first, rec->count, width, &seen, out);
        }
        return r ? r : seen > max ? -EBADMSG : 0;
}

int ls_column_u64(const struct ls_record *rec, unsigned column, uint64_t max, uint64_t *out)
{
        return decode(rec, column, 8, max, out);
}

int ls_column_u32(const struct ls_record *rec, unsigned column, uint32_t max, uint32_t *out)
{
        return decode(rec, column, 4, max, out);
}

int ls_column_u8(const struct ls_record *rec, unsigned column, uint8_t max, uint8_t *out)
{
        return decode(rec, column, 1, max, out);
}

void ls_record_begin(struct ls_buf *body, uint64_t first, uint32_t count)
{
        body->len = 0;
        ls_buf_varint(body, first);
        ls_buf_varint(body, count);
}

void ls_record_end(struct ls_buf *payload, unsigned kind, const struct ls_buf *body)
{
        ls_buf_varint(payload, kind);
        ls_buf_varint(payload, body->len);
        ls_buf_add(payload, body->data, body->len);
        payload->failed |= body->failed;
}

void ls_column_put_bytes(struct ls_buf *body, unsigned column, const void *bytes, size_t len)
{
        ls_buf_varint(body, (column + 1) << 3 | LS_ENC_BYTES);
        ls_buf_varint(body, len);
        ls_buf_add(body, bytes, len);
}

static size_t put_planes(uint8_t *p, const uint64_t *v, uint32_t n, uint64_t max)
{
        unsigned w = 1;

        while (w < 8 && max >> (8 * w))
                w++;
        *p++ = (uint8_t)w;
        for (unsigned k = 0; k < w; k++)
                for (uint32_t i = 0; i < n; i++)
                        *p++ = (uint8_t)(v[i] >> (8 * k));
        return 1 + (size_t)w * n;
}

static size_t put_varints(uint8_t *start, unsigned encoding, uint64_t first, const uint64_t *v,
                          uint32_t n)
{
        uint8_t *p = start;
        uint64_t last = 0;

        for (uint32_t i = 0; i < n; i++) {
                if (encoding == LS_ENC_DELTA)
                        p = ls_varint_put(p, ls_zigzag(v[i] - last));
                else
                        p = ls_varint_put(p, encoding == LS_ENC_BACK ? first + i - v[i] : v[i]);
                last = v[i];
        }
        return (size_t)(p - start);
}

static size_t put_runs(uint8_t *start, const uint64_t *v, uint32_t n)
{
        uint8_t *p = start;

        for (uint32_t i = 0, j; i < n; i = j) {
                for (j = i + 1; j < n && v[j] == v[i]; j++)
                        ;
                p = ls_varint_put(ls_varint_put(p, v[i]), j - i - 1);
        }
        return (size_t)(p - start);
}

void ls_column_put(struct ls_buf *body, unsigned column, unsigned encoding, uint64_t first,
                   const uint64_t *v, uint32_t n)
{
        uint32_t runs = n ? 1 : 0;
        uint64_t max = n ? v[0] : 0;
        uint8_t *p;
        size_t len;

        for (uint32_t i = 1; i < n; i++) {
                runs += v[i] != v[i - 1];
                max = v[i] > max ? v[i] : max;
        }
        if (runs <= 1) {
                if (max) {
                        ls_buf_varint(body, (column + 1) << 3 | LS_ENC_CONST);
                        ls_buf_varint(body, max);
                }
                return;
        }
        if (encoding == LS_ENC_RUNS && runs > n / 4)
                encoding = LS_ENC_PLANES;
        ls_buf_varint(body, (column + 1) << 3 | encoding);

        /* The values go behind a place for their length, which is moved up when the length is
         * known. */
        p = ls_buf_room(body, LS_VARINT_MAX + 1 + (size_t)n * 2 * LS_VARINT_MAX);
        if (!p)
                return;
        p += LS_VARINT_MAX;
        if (encoding == LS_ENC_PLANES) {
                len = put_planes(p, v, n, max);
        } else if (encoding == LS_ENC_RUNS) {
                len = put_runs(p, v, n);
        } else if (encoding == LS_ENC_FIXED) {
                memcpy(p, v, len = (size_t)n * 8);
        } else {
                len = put_varints(p, encoding, first, v, n);
        }
        ls_buf_varint(body, len);
        memmove(body->data + body->len, p, len);
        body->len += len;
}
