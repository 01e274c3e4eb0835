/* From the bytes of a file to its sound chunks. The file may grow, be cut anywhere, or be damaged
 * anywhere: what does not check is skipped up to the next header that does. */
#include "formats/trace/reader_parts.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#define WASTE_SPARE (64u << 20)
#define WASTE_PER_BYTE 8u
#define MIN(a, b) ((a) < (b) ? (a) : (b))

/* Reads up to len bytes at offset; short only at the end of the file. */
int ls_read_at(int fd, void *buf, size_t len, uint64_t offset, size_t *ret_len)
{
        size_t done = 0;

        while (done < len) {
                ssize_t n = pread(fd, (char *)buf + done, len - done, (off_t)(offset + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                done += (size_t)n;
        }
        *ret_len = done;
        return 0;
}

/* The file's bytes at offset, at least want of them unless the file ends. NULL on a read error (in
 * *ret_error). */
static const uint8_t *peek(struct ls_reader *r, uint64_t offset, size_t want, size_t *ret_len,
                           int *ret_error)
{
        if (offset < r->window_offset || offset + want > r->window_offset + r->window_len) {
                *ret_error = ls_read_at(r->fd, r->window, (size_t)MIN(LS_WINDOW, r->size - offset),
                                        offset, &r->window_len);
                if (*ret_error)
                        return NULL;
                r->window_offset = offset;
        }
        *ret_len = (size_t)(r->window_offset + r->window_len - offset);
        return r->window + (offset - r->window_offset);
}

int ls_damage_add(struct ls_reader *r, uint64_t chunk, uint64_t offset, uint64_t bytes,
                  const char *why)
{
        struct ls_profile *p = r->p;

        if (p->n_damages == r->cap_damages) {
                uint32_t cap = r->cap_damages ? r->cap_damages * 2 : 16;
                struct ls_damage *d = realloc(p->damages, cap * sizeof(*d));

                if (!d)
                        return -ENOMEM;
                p->damages = d;
                r->cap_damages = cap;
        }
        p->damages[p->n_damages++] = (struct ls_damage){ chunk, offset, bytes, why, 0 };
        return 0;
}

int ls_extra_next(const uint8_t **p, const uint8_t *end, unsigned n, uint64_t *ret)
{
        if (*p == end)
                return 0;
        for (unsigned i = 0; i < n; i++)
                if (ls_varint_get(p, end, &ret[i]))
                        return -EBADMSG;
        return 1;
}

static int header_at(struct ls_reader *r, uint64_t offset, struct ls_chunk_header *ret_h,
                     int *ret_error)
{
        size_t len;
        const uint8_t *p = peek(r, offset, sizeof(*ret_h) + UINT8_MAX, &len, ret_error);

        if (!p || !ls_chunk_header_ok(p, len, ret_h))
                return 0;
        memcpy(r->extra, p + sizeof(*ret_h), ret_h->extra_len);
        return 1;
}

/* Reads the stored payload of the chunk with header h. Returns NULL when it is sound, else what is
 * wrong. */
static const char *load_stored(struct ls_reader *r, uint64_t offset,
                               const struct ls_chunk_header *h, int *ret_error)
{
        size_t len;

        if (h->stored_size > LS_MAX_STORED || h->raw_size > LS_MAX_RAW)
                return "its size is not possible";
        if (h->stored_size > r->size - offset)
                return "cut short, or still being written";
        if (!ls_buf_room(&r->stored, h->stored_size) || !ls_buf_room(&r->raw, h->raw_size)) {
                *ret_error = -ENOMEM;
                return "there is no memory for it";
        }
        *ret_error = ls_read_at(r->fd, r->stored.data, h->stored_size,
                                offset + sizeof(*h) + h->extra_len, &len);
        if (*ret_error)
                return "it cannot be read";
        if (len < h->stored_size)
                return "cut short, or still being written";
        return ls_chunk_payload_ok(h, r->stored.data) ? NULL : "checksum does not match";
}

/* The next place from offset on where a header checks, or the end of the file. */
static uint64_t resync(struct ls_reader *r, uint64_t offset, int *ret_error)
{
        static const uint32_t magic = LS_CHUNK_MAGIC;
        struct ls_chunk_header h;

        while (offset + sizeof(h) <= r->size) {
                size_t len;
                const uint8_t *p = peek(r, offset, sizeof(h), &len, ret_error), *q;

                if (!p || len < sizeof(h))
                        break;
                q = memmem(p, len, &magic, sizeof(magic));
                if (!q) {
                        offset += len - (sizeof(magic) - 1);
                        continue;
                }
                offset += (uint64_t)(q - p);
                if (header_at(r, offset, &h, ret_error) && h.number >= r->next_number)
                        return offset;
                if (*ret_error)
                        break;
                offset++;
        }
        return r->size;
}

static int chunk_add(struct ls_reader *r, uint64_t offset, const struct ls_chunk_header *h)
{
        if (r->n_chunks == r->cap_chunks) {
                uint32_t cap = r->cap_chunks ? r->cap_chunks * 2 : 64;
                struct ls_chunk_ref *c = realloc(r->chunks, cap * sizeof(*c));

                if (!c)
                        return -ENOMEM;
                r->chunks = c;
                r->cap_chunks = cap;
        }
        r->chunks[r->n_chunks++] = (struct ls_chunk_ref){ offset, h->number, h->type, 0 };
        return 0;
}

/* Totals from the header of a sample chunk; only decoding finds one that lies (samples.c). */
static int add_totals(struct ls_reader *r, const struct ls_chunk_header *h)
{
        const uint8_t *p = r->extra, *end = p + h->extra_len;
        uint64_t v[4];
        int n;

        while ((n = ls_extra_next(&p, end, 4, v)) > 0)
                if (v[0] > UINT8_MAX)
                        return -EBADMSG;
        if (n < 0)
                return n;
        /* Nothing is added before the whole list is known to be right. */
        p = r->extra;
        while ((n = ls_extra_next(&p, end, 4, v)) > 0) {
                r->sums[v[0]].rows += v[1];
                r->sums[v[0]].samples += v[2];
                r->sums[v[0]].sum += v[3];
        }
        return n;
}

static const char *take_chunk(struct ls_reader *r, uint64_t offset, const struct ls_chunk_header *h,
                              int *ret_error)
{
        const char *why = NULL;

        /* A checkpoint repeats what the chunks before it said: nothing new as long as all of these
         * were sound. */
        if (h->type == LS_CHUNK_SAMPLES) {
                if (add_totals(r, h))
                        why = "its list of contents makes no sense";
        } else if (h->type == LS_CHUNK_DEFINITIONS || h->type == LS_CHUNK_INDEX ||
                   (h->type == LS_CHUNK_CHECKPOINT && r->p->n_damages)) {
                if (ls_chunk_unpack(r->zstd, h, r->stored.data, r->raw.data))
                        why = "it cannot be decompressed";
                else
                        *ret_error = ls_tables_add(r, r->raw.data, h->raw_size, &why);
                if (*ret_error == -EBADMSG)
                        *ret_error = 0;
        }
        if (!*ret_error && !why)
                *ret_error = chunk_add(r, offset, h);
        r->p->complete = !why && h->type == LS_CHUNK_INDEX && (h->flags & LS_CHUNKF_END);
        return why;
}

static int scan_header(struct ls_reader *r)
{
        struct ls_file_header h;
        int error = 0;
        size_t len;
        const uint8_t *p = peek(r, 0, sizeof(h), &len, &error);

        if (!p)
                return error;
        r->header_ok = 0;
        if (len < sizeof(h))
                return 0;
        memcpy(&h, p, sizeof(h));
        if (memcmp(h.magic, LS_FILE_MAGIC, sizeof(h.magic)) ||
            h.check != ls_hash(&h, offsetof(struct ls_file_header, check)))
                return 0;
        if (h.major > LS_TRACE_MAJOR)
                return -EPROTONOSUPPORT;
        r->header_ok = 1;
        r->minor = h.minor;
        r->interval_ns = h.interval_ns;
        return 0;
}

/* A damaged file header is no loss: chunks and INFO records repeat what it says. */
static int skip_bad_header(struct ls_reader *r, uint64_t *offset)
{
        uint64_t head = sizeof(struct ls_file_header);
        int error = 0;
        uint64_t next = resync(r, 0, &error);

        if (!error)
                error = ls_damage_add(r, 0, 0, MIN(next, head), "the file header is damaged");
        if (!error && next > head)
                error = ls_damage_add(r, 0, head, next - head, "its header is damaged");
        *offset = next;
        return error;
}

/* Whether the bytes before offset are already listed as damage. */
static int after_damage(const struct ls_reader *r, uint64_t offset)
{
        const struct ls_damage *d = r->p->damages;
        uint32_t n = r->p->n_damages;

        return n && d[n - 1].offset + d[n - 1].bytes == offset;
}

/* Takes the chunk at offset with a sound header h. Returns NULL, or why it cannot be used. */
static const char *scan_chunk(struct ls_reader *r, uint64_t offset, const struct ls_chunk_header *h,
                              int *ret_error)
{
        const char *why = NULL;

        if (h->number < r->next_number)
                return "it is out of order";
        if (h->number > r->next_number && !after_damage(r, offset))
                *ret_error = ls_damage_add(r, r->next_number, offset, 0, "it is missing");
        if (!*ret_error)
                why = load_stored(r, offset, h, ret_error);
        if (!*ret_error && !why)
                why = h->major > LS_TRACE_MAJOR ? "it is of a newer version"
                                                : take_chunk(r, offset, h, ret_error);
        r->next_number = (uint64_t)h->number + 1;
        return why;
}

/* Where to go on behind damage at offset. h: its header, NULL when that is not sound. Sizes of
 * damaged chunks are not trusted, unless a hostile file makes the reader check the same bytes again
 * and again. */
static uint64_t resync_after(struct ls_reader *r, uint64_t offset, const struct ls_chunk_header *h,
                             int *ret_error)
{
        uint64_t next = offset + 1;

        if (h)
                r->wasted += h->stored_size;
        if (h && r->wasted > WASTE_SPARE + WASTE_PER_BYTE * r->size &&
            ls_chunk_size(h) <= r->size - offset)
                next = offset + ls_chunk_size(h);
        return resync(r, next, ret_error);
}

int ls_scan(struct ls_reader *r)
{
        uint64_t offset = sizeof(struct ls_file_header), next, number;
        struct ls_chunk_header h;
        int error = scan_header(r), sound;

        if (!error && !r->header_ok)
                error = skip_bad_header(r, &offset);
        while (!error && offset < r->size) {
                const char *why = r->size - offset < sizeof(h) ? "cut short, or still being written"
                                                               : "its header is damaged";

                number = r->next_number;
                sound = header_at(r, offset, &h, &error);
                if (sound) {
                        number = h.number;
                        why = scan_chunk(r, offset, &h, &error);
                }
                if (error)
                        break;
                if (!why) {
                        offset += ls_chunk_size(&h);
                        continue;
                }
                next = resync_after(r, offset, sound ? &h : NULL, &error);
                if (!error)
                        error = ls_damage_add(r, number, offset, next - offset, why);
                r->p->complete = 0;
                offset = next;
        }
        return error;
}

int ls_chunk_load(struct ls_reader *r, const struct ls_chunk_ref *ref,
                  struct ls_chunk_header *ret_h, const char **ret_why)
{
        uint8_t head[sizeof(*ret_h) + UINT8_MAX];
        size_t len;
        int error = ls_read_at(r->fd, head, sizeof(head), ref->offset, &len);

        *ret_why = "it cannot be read";
        if (error)
                return error;
        *ret_why = "it changed while it was read";
        if (!ls_chunk_header_ok(head, len, ret_h) || ret_h->number != ref->number)
                return -EBADMSG;
        memcpy(r->extra, head + sizeof(*ret_h), ret_h->extra_len);
        *ret_why = load_stored(r, ref->offset, ret_h, &error);
        if (!*ret_why && ls_chunk_unpack(r->zstd, ret_h, r->stored.data, r->raw.data))
                *ret_why = "it cannot be decompressed";
        return error ? error : *ret_why ? -EBADMSG : 0;
}
