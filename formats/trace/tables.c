/* From the records of definition chunks to rows in tables. Ids and counts are hostile: a row must
 * lie below its kind's limit, and all rows and gaps together below what a file of this size may
 * define. */
#include "formats/trace/coded.h"
#include "formats/trace/reader_parts.h"
#include "formats/trace/schema.h"

#include <errno.h>

/* What the tables may take: a definition can cost less than a byte on disk, but ids that are left
 * out and rows that are all the same cost nothing, so rows count with their memory. Bytes of the
 * payloads, decompressed, are content too, and back more. */
#define NODE_BYTES 16u /* what is made later of a stack or location, of which there are most, */
#define ROW_BYTES 96u                   /* and of any other row */
#define PIECE_BYTES 32u                 /* of a row of texts or maps, in all */
#define SPARE (16u << 20)
#define PER_FILE_BYTE 32u
#define PER_PAYLOAD_BYTE 8u
#define PAYLOAD_MOST 16u                /* of that, for each byte of the file */
#define BLOCK (1u << 20)

void *ls_block_alloc(struct ls_reader *r, size_t n)
{
        struct ls_block *b = r->blocks;
        char *p;

        if (!b || b->cap - b->len < n) {
                size_t cap = n > BLOCK / 4 ? n : BLOCK / 4;

                b = malloc(sizeof(*b) + cap);
                if (!b)
                        return NULL;
                b->next = r->blocks;
                b->len = 0;
                b->cap = cap;
                r->blocks = b;
        }
        p = b->bytes + b->len;
        b->len += n;
        return p;
}

static int scratch_room(struct ls_reader *r, unsigned column, uint32_t rows)
{
        uint64_t *p;

        if (rows <= r->scratch_rows[column])
                return 0;
        p = realloc(r->scratch[column], rows * sizeof(*p));
        if (!p)
                return -ENOMEM;
        r->scratch[column] = p;
        r->scratch_rows[column] = rows;
        return 0;
}

/* Coded columns, after all others; those that others are predicted from come first. */
static int decode_coded(struct ls_reader *r, const struct ls_record *rec)
{
        static const uint8_t first[] = { LS_C_SAMPLE_STACK, LS_C_SAMPLE_THREAD };
        unsigned done = 0;
        int e = 0;

        if (rec->kind == LS_REC_STACK && ls_is_coded(rec, LS_C_STACK_PARENT))
                return ls_coded_get_stacks(rec, r->scratch[LS_C_STACK_PARENT],
                                           r->scratch[LS_C_STACK_LOCATION]);
        for (unsigned i = 0; !e && i < sizeof(first) + LS_COLUMNS_MAX; i++) {
                unsigned c = i < sizeof(first) ? first[i] : i - (unsigned)sizeof(first);

                if (!ls_is_coded(rec, c) || ls_columns[rec->kind][c].type == LS_TYPE_BYTES ||
                    (done & 1u << c))
                        continue;
                if (c >= ls_schema_ncolumns(rec->kind))         /* of a newer writer */
                        continue;
                e = ls_coded_get(rec, c, r->scratch[ls_coded_context(c)], r->scratch[c]);
                done |= 1u << c;
        }
        return e;
}

int ls_columns_decode(struct ls_reader *r, const struct ls_record *rec)
{
        unsigned coded = 0;

        for (unsigned c = 0; c < ls_schema_ncolumns(rec->kind); c++) {
                if (ls_columns[rec->kind][c].type == LS_TYPE_BYTES)
                        continue;
                if (scratch_room(r, c, rec->count))
                        return -ENOMEM;
                if (ls_is_coded(rec, c))
                        coded = 1;
                else if (ls_column_u64(rec, c, UINT64_MAX, r->scratch[c]))
                        return -EBADMSG;
        }
        return coded ? decode_coded(r, rec) : 0;
}

uint32_t ls_stack_coroutine(const struct ls_reader *r, uint64_t stack)
{
        const struct ls_dict *d = &r->dict[LS_REC_STACK];
        uint64_t coroutine =
                ls_dict_has(d, stack) ? ls_dict_row(d, (uint32_t)stack)[LS_C_STACK_COROUTINE] : 0;

        return coroutine <= r->dict[LS_REC_COROUTINE].n ? (uint32_t)coroutine : 0;
}

static int account(struct ls_reader *r, uint64_t bytes)
{
        uint64_t payload = r->payload_bytes < PAYLOAD_MOST * r->size ? r->payload_bytes
                                                                     : PAYLOAD_MOST * r->size;

        if (r->table_bytes + bytes > SPARE + PER_FILE_BYTE * r->size + PER_PAYLOAD_BYTE * payload)
                return -EBADMSG;
        r->table_bytes += bytes;
        return 0;
}

/* Room for n ids more. */
static int account_rows(struct ls_reader *r, const struct ls_dict *d, uint64_t n)
{
        unsigned later = d->kind == LS_REC_STACK || d->kind == LS_REC_LOCATION ? NODE_BYTES
                                                                               : ROW_BYTES;

        return account(r, n * (d->ncol * sizeof(*d->rows) + later));
}

static int dense_room(struct ls_reader *r, const struct ls_record *rec, struct ls_dict *d)
{
        uint64_t last = (uint64_t)rec->first + rec->count - 1;
        int e;

        if (rec->first == 0 || last > ls_schemas[rec->kind].max)
                return -EBADMSG;
        if (last <= d->n)
                return 0;
        e = account_rows(r, d, last - d->n);
        return e ? e : ls_dict_grow(d, (uint32_t)last);
}

/* Bytes of the column "length" must add up to the bytes that are there. */
static int check_lengths(const struct ls_record *rec, const uint64_t *len, unsigned bytes_column,
                         uint64_t max)
{
        const struct ls_column_view *b = &rec->col[bytes_column];
        uint64_t sum = 0;

        if (b->present && b->encoding != LS_ENC_BYTES)
                return -EBADMSG;
        for (uint32_t i = 0; i < rec->count; i++) {
                if (len[i] > max)
                        return -EBADMSG;
                sum += len[i];
        }
        return sum == b->len ? 0 : -EBADMSG;
}

static int add_strings(struct ls_reader *r, const struct ls_record *rec)
{
        struct ls_dict *d = &r->dict[LS_REC_STRING];
        const uint8_t *p = rec->col[LS_C_STRING_BYTES].data;
        const uint64_t *len = r->scratch[LS_C_STRING_LENGTH];
        int e = check_lengths(rec, len, LS_C_STRING_BYTES, LS_MAX_STRING);

        if (!e)
                e = dense_room(r, rec, d);
        if (!e)
                e = account(r, rec->col[LS_C_STRING_BYTES].len);
        for (uint32_t i = 0; !e && i < rec->count; p += len[i++]) {
                uint32_t id = rec->first + i;
                char *s;

                if (ls_dict_has(d, id))
                        continue;
                s = ls_block_alloc(r, len[i] + 1);
                if (!s)
                        return -ENOMEM;
                if (len[i])
                        memcpy(s, p, len[i]);
                s[len[i]] = '\0';
                ls_dict_row(d, id)[0] = len[i];
                ls_dict_row(d, id)[1] = (uintptr_t)s;
                d->state[id - 1] |= LS_ROW_SEEN;
        }
        return e;
}

static int add_texts(struct ls_reader *r, const struct ls_record *rec)
{
        const uint8_t *p = rec->col[LS_C_TEXT_BYTES].data;
        uint64_t **c = r->scratch;
        int e = check_lengths(rec, c[LS_C_TEXT_LENGTH], LS_C_TEXT_BYTES, LS_MAX_RAW);

        if (!e)
                e = account(r, rec->col[LS_C_TEXT_BYTES].len + (uint64_t)rec->count * PIECE_BYTES);
        for (uint32_t i = 0; !e && i < rec->count; p += c[LS_C_TEXT_LENGTH][i++]) {
                uint64_t len = c[LS_C_TEXT_LENGTH][i], total = c[LS_C_TEXT_TOTAL][i];
                struct ls_text_piece t = { .len = (uint32_t)len };
                uint8_t *bytes;

                if (total > LS_MAX_TEXT || len > total || c[LS_C_TEXT_OFFSET][i] > total - len ||
                    c[LS_C_TEXT_SOURCE][i] > UINT32_MAX)
                        return -EBADMSG;
                if (r->n_texts == r->cap_texts) {
                        uint32_t cap = r->cap_texts ? r->cap_texts * 2 : 16;
                        struct ls_text_piece *pieces = realloc(r->texts, cap * sizeof(*pieces));

                        if (!pieces)
                                return -ENOMEM;
                        r->texts = pieces;
                        r->cap_texts = cap;
                }
                bytes = ls_block_alloc(r, len);
                if (!bytes)
                        return -ENOMEM;
                if (len)
                        memcpy(bytes, p, len);
                t.bytes = bytes;
                t.source = (uint32_t)c[LS_C_TEXT_SOURCE][i];
                t.offset = (uint32_t)c[LS_C_TEXT_OFFSET][i];
                t.total = (uint32_t)total;
                r->texts[r->n_texts++] = t;
        }
        return e;
}

/* Maps of traces: kept as they are, aligned, until jit.c looks at those that samples need. */
static int add_maps(struct ls_reader *r, const struct ls_record *rec)
{
        const uint8_t *p = rec->col[LS_C_JITMAP_BYTES].data;
        uint64_t **c = r->scratch;
        int e = check_lengths(rec, c[LS_C_JITMAP_LENGTH], LS_C_JITMAP_BYTES, LS_MAX_RAW);

        if (!e)
                e = account(r,
                            rec->col[LS_C_JITMAP_BYTES].len + (uint64_t)rec->count * PIECE_BYTES);
        for (uint32_t i = 0; !e && i < rec->count; p += c[LS_C_JITMAP_LENGTH][i++]) {
                uint64_t len = c[LS_C_JITMAP_LENGTH][i];
                uint8_t *bytes = ls_block_alloc(r, len + 8);

                if (!bytes)
                        return -ENOMEM;
                if (r->n_maps == r->cap_maps) {
                        uint32_t cap = r->cap_maps ? r->cap_maps * 2 : 16;
                        struct ls_map_piece *maps = realloc(r->maps, cap * sizeof(*maps));

                        if (!maps)
                                return -ENOMEM;
                        r->maps = maps;
                        r->cap_maps = cap;
                }
                bytes += -(uintptr_t)bytes & 7;
                if (len)
                        memcpy(bytes, p, len);
                r->maps[r->n_maps++] =
                        (struct ls_map_piece){ c[LS_C_JITMAP_FUNCTION][i] > UINT32_MAX
                                                       ? 0
                                                       : (uint32_t)c[LS_C_JITMAP_FUNCTION][i],
                                               (uint32_t)len, bytes };
        }
        return e;
}

static void copy_row(struct ls_reader *r, const struct ls_dict *d, uint32_t i, uint64_t *row)
{
        for (unsigned c = 0; c < d->ncol; c++)
                row[c] = r->scratch[c][i];
}

/* Exact values add to their event once: rows that a chunk repeats are known by their id. */
static void add_value(struct ls_reader *r, unsigned kind, const uint64_t *row)
{
        if (kind != LS_REC_AGGREGATE && kind != LS_REC_SPAN && kind != LS_REC_LINECOUNT)
                return;
        if (row[0] <= UINT8_MAX) {
                r->exact[row[0]].rows++;
                r->exact[row[0]].sum += row[1];
        }
}
_Static_assert(LS_C_AGGREGATE_EVENT == 0 && LS_C_SPAN_EVENT == 0 && LS_C_LINECOUNT_EVENT == 0 &&
               LS_C_AGGREGATE_VALUE == 1 && LS_C_SPAN_VALUE == 1 && LS_C_LINECOUNT_VALUE == 1,
               "exact records start with event and value");

static int add_dense(struct ls_reader *r, const struct ls_record *rec)
{
        struct ls_dict *d = &r->dict[rec->kind];
        int e = dense_room(r, rec, d);

        for (uint32_t i = 0; !e && i < rec->count; i++) {
                uint32_t id = rec->first + i;

                if (d->state[id - 1] & LS_ROW_SEEN)
                        continue;
                copy_row(r, d, i, ls_dict_row(d, id));
                d->state[id - 1] |= LS_ROW_SEEN;
                add_value(r, rec->kind, ls_dict_row(d, id));
        }
        return e;
}

/* Whether a row of a keyed kind replaces the one before: better names, later clocks, and otherwise
 * the last. */
static int replaces(unsigned kind, const uint64_t *row, const uint64_t *old)
{
        if (kind == LS_REC_NAME)
                return row[LS_C_NAME_RANK] > old[LS_C_NAME_RANK];
        if (kind == LS_REC_THREADCPU)
                return row[LS_C_THREADCPU_MONOTONIC] >= old[LS_C_THREADCPU_MONOTONIC];
        return 1;
}

static int add_keyed(struct ls_reader *r, const struct ls_record *rec)
{
        struct ls_dict *d = &r->dict[rec->kind];

        for (uint32_t i = 0; i < rec->count; i++) {
                uint64_t row[LS_COLUMNS_MAX];
                int is_new, e;
                uint32_t id;

                copy_row(r, d, i, row);
                id = ls_dict_intern(d, row, &is_new);
                if (!id)
                        return d->n < ls_schemas[rec->kind].max ? -ENOMEM : -EBADMSG;
                if (is_new && (e = account_rows(r, d, 1)))
                        return e;
                if (!is_new && replaces(rec->kind, row, ls_dict_row(d, id)))
                        memcpy(ls_dict_row(d, id), row, d->ncol * sizeof(*row));
        }
        return 0;
}

static int add_record(struct ls_reader *r, const struct ls_record *rec)
{
        int e;

        if (rec->kind >= LS_KINDS || !ls_schemas[rec->kind].name || rec->count == 0 ||
            rec->kind == LS_REC_SAMPLE)
                return 0;
        e = ls_columns_decode(r, rec);
        if (e)
                return e;
        if (rec->kind == LS_REC_STRING)
                return add_strings(r, rec);
        if (rec->kind == LS_REC_TEXT)
                return add_texts(r, rec);
        if (rec->kind == LS_REC_JITMAP)
                return add_maps(r, rec);
        return ls_schemas[rec->kind].rows == LS_ROWS_DENSE ? add_dense(r, rec) : add_keyed(r, rec);
}

int ls_tables_add(struct ls_reader *r, const uint8_t *payload, size_t len, const char **ret_why)
{
        const uint8_t *p = payload, *end = payload + len;
        struct ls_record rec;
        uint64_t rows = 0;
        int e;

        r->payload_bytes += len;
        while ((e = ls_record_next(&p, end, &rec)) > 0) {
                rows += rec.count;
                e = rows > LS_MAX_ROWS ? -EBADMSG : add_record(r, &rec);
                if (e == -ENOSPC)
                        e = -EBADMSG;
                if (e)
                        break;
        }
        if (e == -EBADMSG)
                *ret_why = "its records make no sense";
        return e;
}
