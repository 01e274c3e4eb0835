/* A parity chunk is the exclusive or of a group of definition chunks. When one chunk of the group is lost and the
 * others are not, it gives the lost one back, bit for bit; the chunk's own checks prove it. Called by reader.c. */
#include "formats/trace/reader_parts.h"

#include <errno.h>

struct group { uint32_t numbers[UINT8_MAX]; unsigned n; };

static const struct ls_chunk_ref *find_chunk(const struct ls_reader *r, uint32_t number)
{
        uint32_t low = 0, high = r->n_chunks;

        while (low < high) {
                uint32_t mid = low + (high - low) / 2;

                if (r->chunks[mid].number < number)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low < r->n_chunks && r->chunks[low].number == number ? &r->chunks[low] : NULL;
}

/* The group of the parity chunk in r->extra, and the one of it that is missing: 0 = none or more than one. */
static int read_group(const struct ls_reader *r, unsigned extra_len, struct group *g, uint32_t *ret_missing)
{
        const uint8_t *p = r->extra, *end = p + extra_len;
        uint64_t v, number = 0;
        int missing = 0;

        for (g->n = 0; ls_extra_next(&p, end, 1, &v) > 0; g->numbers[g->n++] = (uint32_t)number) {
                number += v;
                if (number > UINT32_MAX || g->n == UINT8_MAX)
                        return 0;
                if (!find_chunk(r, (uint32_t)number)) {
                        *ret_missing = (uint32_t)number;
                        missing++;
                }
        }
        return missing == 1;
}

/* Takes the other chunks of the group out of sum[len]. */
static int subtract(struct ls_reader *r, const struct group *g, uint8_t *sum, size_t len)
{
        for (unsigned i = 0; i < g->n; i++) {
                const struct ls_chunk_ref *ref = find_chunk(r, g->numbers[i]);
                struct ls_chunk_header h;
                size_t n, size;
                int e;

                if (!ref)
                        continue;
                if (!ls_buf_room(&r->stored, len))
                        return -ENOMEM;
                e = ls_read_at(r->fd, r->stored.data, len, ref->offset, &n);
                if (e)
                        return e;
                if (!ls_chunk_header_ok(r->stored.data, n, &h) || ls_chunk_size(&h) > n)
                        return -EBADMSG;
                size = (size_t)ls_chunk_size(&h);
                for (size_t k = 0; k < size; k++)
                        sum[k] ^= r->stored.data[k];
        }
        return 0;
}

static int take(struct ls_reader *r, const uint8_t *chunk, size_t len, uint32_t number)
{
        struct ls_chunk_header h;
        const uint8_t *payload;
        const char *why;

        if (!ls_chunk_header_ok(chunk, len, &h) || h.number != number || h.type != LS_CHUNK_DEFINITIONS ||
            ls_chunk_size(&h) > len || h.raw_size > LS_MAX_RAW)
                return -EBADMSG;
        if (!ls_buf_room(&r->raw, h.raw_size))
                return -ENOMEM;
        payload = chunk + sizeof(h) + h.extra_len;
        if (!ls_chunk_payload_ok(&h, payload) || ls_chunk_unpack(r->zstd, &h, payload, r->raw.data))
                return -EBADMSG;
        return ls_tables_add(r, r->raw.data, h.raw_size, &why);
}

static int repair(struct ls_reader *r, const struct ls_chunk_ref *ref)
{
        struct ls_chunk_header h;
        struct group g;
        uint32_t missing;
        const char *why;
        uint8_t *sum;
        int e = ls_chunk_load(r, ref, &h, &why);

        if (e || !read_group(r, h.extra_len, &g, &missing))
                return e;
        sum = malloc(h.raw_size + 1);
        if (!sum)
                return -ENOMEM;
        memcpy(sum, r->raw.data, h.raw_size);
        e = subtract(r, &g, sum, h.raw_size);
        if (!e)
                e = take(r, sum, h.raw_size, missing);
        free(sum);
        return e;
}

int ls_parity_repair(struct ls_reader *r)
{
        int e = 0;

        r->repairing = 1;
        for (uint32_t i = 0; i < r->n_chunks && (!e || e == -EBADMSG); i++)
                if (r->chunks[i].type == LS_CHUNK_PARITY)
                        e = repair(r, &r->chunks[i]);
        r->repairing = 0;
        return e == -EBADMSG ? 0 : e;
}
