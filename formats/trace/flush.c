/* From the writer's memory to the file: chunks, definitions, checkpoints, the index, and what
 * happens when a write fails. Sample chunks are block.c's part. Called by writer.c. */
#include "formats/trace/coded.h"
#include "formats/trace/schema.h"
#include "formats/trace/writer.h"
#include "formats/trace/writer_parts.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define RECORD_ROWS 16384u /* most rows of a definition record, so that chunks can be cut between */
#define WRITE_WAIT_MS 1000              /* for a pipe that is full and does not block */

/* Which rows: not in the file; not in a checkpoint; all; all but stacks and locations. */
enum select { PENDING, SINCE, ALL, SMALL };

/* The file's last bytes, so many. Where it goes on is as it was when that is not possible. */
static int cut_off(int fd, size_t len)
{
        off_t to = lseek(fd, 0, SEEK_CUR) - (off_t)len;

        return to >= 0 && !ftruncate(fd, to) && lseek(fd, to, SEEK_SET) == to;
}

/* One try to write it all. What was written of a chunk that did not fit is cut off where that is
 * possible; else it is left for readers to skip. */
int ls_writer_write(struct ls_trace_writer *w, const void *bytes, size_t len)
{
        const char *p = bytes;
        size_t done = 0;
        int r = 0;

        while (done < len) {
                ssize_t n = write(w->fd, p + done, len - done);

                if (n > 0) {
                        done += (size_t)n;
                } else if (n < 0 && errno == EAGAIN) {
                        struct pollfd pfd = { w->fd, POLLOUT, 0 };

                        if (poll(&pfd, 1, WRITE_WAIT_MS) == 0) {
                                r = -EAGAIN;
                                break;
                        }
                } else if (n == 0 || errno != EINTR) {
                        r = n < 0 ? -errno : -ENOSPC;
                        break;
                }
        }
        if (r && done && w->seekable && cut_off(w->fd, done))
                done = 0;
        w->size += done;
        return r;
}

int ls_writer_put_chunk(struct ls_trace_writer *w, uint8_t type, uint8_t flags, uint64_t ticks)
{
        struct ls_chunk_header h = { .type = type, .flags = flags, .number = w->number };
        struct ls_index_row row = { w->number, w->size, 0, type, ticks };
        int r;

        /* Definitions are small beside samples, and a higher level saves a fourteenth of many
         * stacks. */
        ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, w->brief ? LS_ZSTD_BRIEF :
                               type == LS_CHUNK_SAMPLES ? LS_ZSTD_SAMPLES : LS_ZSTD_DEFINITIONS);
        r = ls_chunk_make(&w->out, w->zstd, &h, &w->extra, &w->raw, w->cut);
        ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, LS_ZSTD_SAMPLES);

        w->raw.len = w->extra.len = w->chunk_rows = 0;
        w->cut[0] = w->cut[1] = 0;
        w->raw.failed = w->extra.failed = w->body.failed = 0;
        if (!r && !w->size)             /* the disk was full when the file began */
                r = ls_writer_header(w);
        row.offset = w->size;
        if (!r)
                r = ls_writer_write(w, w->out.data, w->out.len);
        if (r) {
                w->number += w->size != row.offset;     /* a piece of it stays: its number is used
                                                         * up */
                return r;
        }
        row.size = w->out.len;
        w->number++;
        w->since_full += w->out.len;
        w->since_checkpoint++;
        if (type == LS_CHUNK_DEFINITIONS)
                w->definition_bytes += w->out.len;
        ls_buf_add(&w->index, &row, sizeof(row));
        return 0;
}

static struct ls_dict *dict_of(struct ls_trace_writer *w, unsigned kind)
{
        return kind == LS_REC_STRING ? &w->strings.dict : &w->dict[kind];
}

/* After a try to write a definition chunk: what was in it is in the file, or is not. */
static void settle(struct ls_trace_writer *w, uint8_t type, int written)
{
        for (unsigned k = 0; k < LS_KINDS; k++) {
                struct ls_dict *d = dict_of(w, k);
                uint8_t clear = LS_ROW_STAGED;

                if (ls_schemas[k].rows == LS_ROWS_DENSE && written) {
                        if (d->staged > d->written)
                                d->written = d->staged;
                        if (type == LS_CHUNK_CHECKPOINT && d->staged > d->kept)
                                d->kept = d->staged;
                }
                if (ls_schemas[k].rows != LS_ROWS_KEYED)
                        continue;
                if (written)
                        clear |= LS_ROW_DIRTY | (type == LS_CHUNK_CHECKPOINT ? LS_ROW_NEW : 0);
                for (uint32_t i = 0; i < d->n; i++)
                        if (d->state[i] & LS_ROW_STAGED)
                                d->state[i] &= (uint8_t)~clear;
        }
}

static int put_definitions(struct ls_trace_writer *w, uint8_t type)
{
        int r = 0;

        if (w->raw.len || w->raw.failed) {
                r = ls_writer_put_chunk(w, type, 0, 0);
                settle(w, type, !r);
        }
        return r;
}

static void put_record(struct ls_trace_writer *w, unsigned kind, uint32_t first, uint32_t count)
{
        ls_record_end(&w->raw, kind, &w->body);
        ls_buf_varint(&w->extra, kind);
        ls_buf_varint(&w->extra, first);
        ls_buf_varint(&w->extra, count);
        w->chunk_rows += count;
}

static int chunk_is_full(const struct ls_trace_writer *w)
{
        return w->raw.len >= LS_FLUSH_BYTES || w->extra.len > 200 ||
               w->chunk_rows > LS_MAX_ROWS / 2;
}

/* Columns, from the one with index c on, of rows [from, from + n) of a dense kind, or of the n ids
 * at ids of a keyed one. */
static void put_columns(struct ls_trace_writer *w, const struct ls_dict *d, unsigned c,
                        uint32_t from, const uint32_t *ids, uint32_t n)
{
        for (; c < d->ncol; c++) {
                if (ls_columns[d->kind][c].type == LS_TYPE_BYTES)
                        continue;
                for (uint32_t i = 0; i < n; i++)
                        w->scratch[i] = ls_dict_row(d, ids ? ids[i] : from + i)[c];
                ls_column_put(&w->body, c, ls_columns[d->kind][c].encoding, from, w->scratch, n);
        }
}

/* The stacks of a second or of a short trace, which are one record: coded. Those that are more are
 * read faster as they are. Returns 0 when they are not coded. */
static int put_stacks(struct ls_trace_writer *w, const struct ls_dict *d, uint32_t from, uint32_t n)
{
        uint64_t *parents = w->scratch, *locations = w->scratch + n;

        if (n < LS_CODED_STACKS_MIN)
                return 0;
        for (uint32_t i = 0; i < n; i++) {
                const uint64_t *row = ls_dict_row(d, from + i);

                parents[i] = row[LS_C_STACK_PARENT];
                locations[i] = row[LS_C_STACK_LOCATION];
        }
        if (ls_coded_put_stacks(&w->body, from, parents, locations, n))
                return 0;
        put_columns(w, d, LS_C_STACK_COROUTINE, from, NULL, n);
        return 1;
}

/* Rows of the strings from id on that make about one piece. */
static uint32_t strings_piece(const struct ls_trace_writer *w, uint32_t from, uint32_t most)
{
        size_t bytes = 0;
        uint32_t n = 0;

        while (n < most && bytes < LS_FLUSH_BYTES / 2)
                bytes += ls_dict_row(&w->strings.dict, from + n++)[0];
        return n;
}

static int put_dense(struct ls_trace_writer *w, unsigned kind, enum select select, uint8_t type)
{
        struct ls_dict *d = dict_of(w, kind);
        uint32_t from = select == PENDING ? d->written : select == SINCE ? d->kept : 0;
        int r, coded, few = d->n - from <= LS_CODED_STACKS;

        d->staged = from;
        while (from < d->n) {
                uint32_t n = d->n - from < RECORD_ROWS ? d->n - from : RECORD_ROWS;

                if (kind == LS_REC_STRING)
                        n = strings_piece(w, from + 1, n);
                ls_record_begin(&w->body, from + 1, n);
                coded = few && kind == LS_REC_STACK && put_stacks(w, d, from + 1, n);
                if (!coded)
                        put_columns(w, d, 0, from + 1, NULL, n);
                if (kind == LS_REC_STRING) {
                        uint64_t start = ls_dict_row(d, from + 1)[1];
                        const uint64_t *last = ls_dict_row(d, from + n);

                        ls_column_put_bytes(&w->body, LS_C_STRING_BYTES, w->strings.bytes + start,
                                            last[0] + last[1] - start);
                }
                if (coded)
                        w->cut[0] = w->raw.len;
                put_record(w, kind, from + 1, n);
                if (coded)
                        w->cut[1] = w->raw.len;
                d->staged = from += n;
                if (chunk_is_full(w) && (r = put_definitions(w, type)))
                        return r;
        }
        return 0;
}

static int put_keyed(struct ls_trace_writer *w, unsigned kind, enum select select, uint8_t type)
{
        struct ls_dict *d = &w->dict[kind];
        uint8_t want = select == PENDING ? LS_ROW_DIRTY
                       : select == SINCE ? LS_ROW_NEW
                                         : LS_ROW_SEEN;
        uint32_t ids[1024], n = 0;
        int r;

        for (uint32_t id = 1; id <= d->n + 1; id++) {
                if (id <= d->n && (d->state[id - 1] & want)) {
                        d->state[id - 1] |= LS_ROW_STAGED;
                        ids[n++] = id;
                }
                if (n == 0 || (id <= d->n && n < 1024))
                        continue;
                ls_record_begin(&w->body, 0, n);
                put_columns(w, d, 0, 0, ids, n);
                put_record(w, kind, 0, n);
                n = 0;
                if (chunk_is_full(w) && (r = put_definitions(w, type)))
                        return r;
        }
        return 0;
}

/* Texts are large and repeated in no checkpoint: a lost one costs an annotation, not a name. */
static int put_texts(struct ls_trace_writer *w)
{
        while (w->text_rows.len) {
                const struct ls_text_row *rows = (const void *)w->text_rows.data;
                uint32_t all = (uint32_t)(w->text_rows.len / sizeof(*rows)), n = 0;
                size_t bytes = 0;
                int r;

                while (n < all && n < RECORD_ROWS && bytes < LS_FLUSH_BYTES / 2)
                        bytes += rows[n++].len;
                ls_record_begin(&w->body, 0, n);
                for (unsigned c = 0; c < LS_C_TEXT_BYTES; c++) {
                        for (uint32_t i = 0; i < n; i++)
                                w->scratch[i] = ((const uint32_t *)&rows[i])[c];
                        ls_column_put(&w->body, c, LS_ENC_VARINT, 0, w->scratch, n);
                }
                ls_column_put_bytes(&w->body, LS_C_TEXT_BYTES, w->texts.data, bytes);
                put_record(w, LS_REC_TEXT, 0, n);
                r = put_definitions(w, LS_CHUNK_DEFINITIONS);
                if (r)
                        return r;
                w->text_rows.len -= n * sizeof(*rows);
                w->texts.len -= bytes;
                memmove(w->text_rows.data, rows + n, w->text_rows.len);
                memmove(w->texts.data, w->texts.data + bytes, w->texts.len);
        }
        return 0;
}

/* As texts: a lost one costs the lines of one trace. */
static int put_maps(struct ls_trace_writer *w)
{
        while (w->map_rows.len) {
                const struct ls_map_row *rows = (const void *)w->map_rows.data;
                uint32_t all = (uint32_t)(w->map_rows.len / sizeof(*rows)), n = 0;
                size_t bytes = 0;
                int r;

                while (n < all && n < RECORD_ROWS && bytes < LS_FLUSH_BYTES / 2)
                        bytes += rows[n++].len;
                ls_record_begin(&w->body, 0, n);
                for (uint32_t i = 0; i < n; i++)
                        w->scratch[i] = rows[i].function;
                ls_column_put(&w->body, LS_C_JITMAP_FUNCTION, LS_ENC_DELTA, 0, w->scratch, n);
                for (uint32_t i = 0; i < n; i++)
                        w->scratch[i] = rows[i].len;
                ls_column_put(&w->body, LS_C_JITMAP_LENGTH, LS_ENC_VARINT, 0, w->scratch, n);
                ls_column_put_bytes(&w->body, LS_C_JITMAP_BYTES, w->maps.data, bytes);
                put_record(w, LS_REC_JITMAP, 0, n);
                r = put_definitions(w, LS_CHUNK_DEFINITIONS);
                if (r)
                        return r;
                w->map_rows.len -= n * sizeof(*rows);
                w->maps.len -= bytes;
                memmove(w->map_rows.data, rows + n, w->map_rows.len);
                memmove(w->maps.data, w->maps.data + bytes, w->maps.len);
        }
        return 0;
}

static int in_checkpoint(unsigned kind, enum select select)
{
        if (select == SMALL && (kind == LS_REC_STACK || kind == LS_REC_LOCATION))
                return 0;
        return kind != LS_REC_AGGREGATE && kind != LS_REC_SPAN && kind != LS_REC_LINECOUNT &&
               kind != LS_REC_COUNT && kind != LS_REC_ATTEMPT;
}

/* Whether totals are all that waits: each second they would make a chunk of their own, a tenth of a
 * small trace. */
static int facts_only(struct ls_trace_writer *w)
{
        for (unsigned k = 0; k < LS_KINDS; k++) {
                const struct ls_dict *d = dict_of(w, k);

                if (ls_schemas[k].rows == LS_ROWS_DENSE && d->n > d->written)
                        return 0;
                if (ls_schemas[k].rows != LS_ROWS_KEYED || k == LS_REC_INFO ||
                    k == LS_REC_THREADCPU)
                        continue;
                for (uint32_t i = 0; i < d->n; i++)
                        if (d->state[i] & LS_ROW_DIRTY)
                                return 0;
        }
        return !w->text_rows.len && !w->map_rows.len && !w->raw.len;
}

static int put_all(struct ls_trace_writer *w, enum select select, uint8_t type)
{
        int r = 0;

        for (unsigned k = 0; k < LS_KINDS; k++)
                dict_of(w, k)->staged = 0;
        for (unsigned k = 0; k < LS_KINDS && !r; k++) {
                if (select != PENDING && !in_checkpoint(k, select))
                        continue;
                if (ls_schemas[k].rows == LS_ROWS_DENSE)
                        r = put_dense(w, k, select, type);
                else if (ls_schemas[k].rows == LS_ROWS_KEYED)
                        r = put_keyed(w, k, select, type);
        }
        if (!r && select == PENDING)
                r = put_maps(w);
        if (!r && select == PENDING)
                r = put_texts(w);
        if (!r)
                r = put_definitions(w, type);
        w->raw.len = w->extra.len = w->chunk_rows = 0;
        if (r)
                settle(w, type, 0);
        return r;
}

/* What the file says so far is said again, so that the loss of one chunk loses no name. In full
 * when that is little beside the file, and else only what is new since the last checkpoint. Many
 * stacks are said once: their repetition would be half of such a file, and what a lost one costs is
 * counted. */
int ls_writer_checkpoint(struct ls_trace_writer *w, int last)
{
        uint64_t affordable = (last ? w->size : w->since_full) / 16;
        struct ls_dict *stacks = &w->dict[LS_REC_STACK], *locations = &w->dict[LS_REC_LOCATION];
        int full = w->definition_bytes <= affordable;
        int many = !full && stacks->written - stacks->kept >= LS_MANY_STACKS;
        int r = put_all(w, many ? SMALL : full ? ALL : SINCE, LS_CHUNK_CHECKPOINT);

        if (!r && many) {
                stacks->kept = stacks->written;
                locations->kept = locations->written;
        }
        w->since_checkpoint = 0;
        if (!r && full)
                w->since_full = 0;
        return r;
}

int ls_writer_flush(struct ls_trace_writer *w)
{
        int held = w->hold_facts && w->pending_bytes && facts_only(w), r, r2;

        ls_writer_coroutines(w);
        r = held ? 0 : put_all(w, PENDING, LS_CHUNK_DEFINITIONS);
        r2 = ls_writer_samples(w);

        /* Definitions that could not be written stay, and are tried again with the next flush. */
        w->pending_bytes = r || held ? 1 : 0;
        if (!r)
                r = r2;
        if (!r && w->since_checkpoint >= LS_CHECKPOINT_CHUNKS)
                r = ls_writer_checkpoint(w, 0);
        return r;
}

int ls_writer_index(struct ls_trace_writer *w)
{
        const struct ls_index_row *rows = (const void *)w->index.data;
        size_t all = w->index.len / sizeof(*rows), at = 0;
        int r;

        if (w->index.failed)
                return -ENOMEM;
        do {
                uint32_t n = all - at < LS_FLUSH_ROWS ? (uint32_t)(all - at) : LS_FLUSH_ROWS;

                if (n)          /* without a chunk there is no data */
                        rows = (const struct ls_index_row *)(const void *)w->index.data + at;
                ls_record_begin(&w->body, 0, n);
                for (unsigned c = 0; c < sizeof(*rows) / sizeof(uint64_t); c++) {
                        for (uint32_t i = 0; i < n; i++)
                                w->scratch[i] = ((const uint64_t *)&rows[i])[c];
                        ls_column_put(&w->body, c, ls_columns[LS_REC_INDEX][c].encoding, 0,
                                      w->scratch, n);
                }
                ls_record_end(&w->raw, LS_REC_INDEX, &w->body);
                at += n;
                r = ls_writer_put_chunk(w, LS_CHUNK_INDEX, at == all ? LS_CHUNKF_END : 0, 0);
        } while (!r && at < all);
        return r;
}
