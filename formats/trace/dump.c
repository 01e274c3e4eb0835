/* Every record of a trace, row by row, as keys and values: what `luasample dump` prints. Layouts
 * come from the table of columns; there is no code for any kind of record but the sample's time. */
#include "formats/trace/dump.h"

#include "formats/real.h"
#include "formats/trace/reader.h"
#include "formats/trace/reader_parts.h"
#include "formats/trace/schema.h"

#include <errno.h>

#define FIELDS (LS_COLUMNS_MAX + 2)

struct dump {
        struct ls_reader *r;
        ls_dump_fn fn;
        void *ctx;
        const struct ls_chunk_ref *chunk;
        struct ls_dump_field fields[FIELDS];
        unsigned n;
        char real[LS_REAL_TEXT];        /* no kind has two such columns */
};

static void add_u64(struct dump *d, const char *key, uint64_t v)
{
        d->fields[d->n++] = (struct ls_dump_field){ key, 1, v, { "", 0 } };
}

static void add_str(struct dump *d, const char *key, const char *s, size_t len)
{
        d->fields[d->n++] = (struct ls_dump_field){ key, 0, 0, { s, (uint32_t)len } };
}

static int emit(struct dump *d, uint64_t chunk, uint64_t offset, const char *kind)
{
        unsigned n = d->n;

        d->n = 0;
        return d->fn(d->ctx, chunk, offset, kind, d->fields, n);
}

static const char *const chunk_types[] = {
        [LS_CHUNK_DEFINITIONS] = "definitions",
        [LS_CHUNK_SAMPLES] = "samples",
        [LS_CHUNK_CHECKPOINT] = "checkpoint",
        [LS_CHUNK_INDEX] = "index",
        [LS_CHUNK_PARITY] = "parity",
};

static int dump_header(struct dump *d, const struct ls_chunk_header *h)
{
        const char *type =
                h->type < sizeof(chunk_types) / sizeof(*chunk_types) ? chunk_types[h->type] : NULL;

        type = type ? type : "unknown";
        add_str(d, "type", type, strlen(type));
        add_u64(d, "type_number", h->type);
        add_u64(d, "size", ls_chunk_size(h));
        add_u64(d, "raw_size", h->raw_size);
        add_u64(d, "flags", h->flags);
        return emit(d, d->chunk->number, d->chunk->offset, "chunk");
}

/* Fields of row i; *bytes walks through the record's column of bytes. */
static void row_fields(struct dump *d, const struct ls_record *rec, uint32_t i,
                       const uint8_t **bytes)
{
        const struct ls_column *columns = ls_columns[rec->kind];
        uint64_t length = 0;

        if (ls_schemas[rec->kind].rows == LS_ROWS_DENSE)
                add_u64(d, "id", (uint64_t)rec->first + i);
        for (unsigned c = 0; c < ls_schema_ncolumns(rec->kind); c++) {
                uint64_t v = columns[c].type == LS_TYPE_BYTES ? 0 : d->r->scratch[c][i];

                if (columns[c].type == LS_TYPE_BYTES) {
                        add_str(d, columns[c].name, length ? (const char *)*bytes : "", length);
                        *bytes += length;
                } else if (columns[c].type == LS_TYPE_STR) {
                        struct ls_str s = ls_reader_str(d->r, v);

                        add_str(d, columns[c].name, s.s, s.len);
                } else if (columns[c].type == LS_TYPE_REAL) {
                        double value;

                        memcpy(&value, &v, sizeof(value));
                        ls_real_text(value, d->real);
                        add_str(d, columns[c].name, d->real, strlen(d->real));
                } else {
                        add_u64(d, columns[c].name, v);
                        if (!strcmp(columns[c].name, "length"))
                                length = v;
                }
        }
        if (rec->kind == LS_REC_SAMPLE) {
                const uint64_t *const *s = (const uint64_t *const *)d->r->scratch;
                uint64_t interval = s[LS_C_SAMPLE_INTERVAL][i] ? s[LS_C_SAMPLE_INTERVAL][i]
                                                               : d->r->interval_ns;
                __int128 t = (__int128)(int64_t)s[LS_C_SAMPLE_TIME][i] * interval >> 4;

                add_u64(d, "time_ns", s[LS_C_SAMPLE_BASE][i] + (uint64_t)t);
        }
}

/* Decodes the number columns, and checks that the lengths are those of the bytes. */
static int decode_record(struct dump *d, const struct ls_record *rec, const uint8_t **ret_bytes)
{
        int e = ls_columns_decode(d->r, rec);
        uint64_t total = 0, *coroutine = d->r->scratch[LS_C_SAMPLE_COROUTINE];

        for (uint32_t i = 0; !e && rec->kind == LS_REC_SAMPLE && i < rec->count; i++)
                if (coroutine[i] == LS_COROUTINE_OF_STACK)
                        coroutine[i] =
                                ls_stack_coroutine(d->r, d->r->scratch[LS_C_SAMPLE_STACK][i]);
        *ret_bytes = NULL;
        for (unsigned c = 0; !e && c < ls_schema_ncolumns(rec->kind); c++) {
                const struct ls_column *col = &ls_columns[rec->kind][c];
                const struct ls_column_view *view = &rec->col[c];

                for (uint32_t i = 0; i < rec->count && !strcmp(col->name, "length"); i++) {
                        if (d->r->scratch[c][i] > LS_MAX_RAW)
                                return -EBADMSG;
                        total += d->r->scratch[c][i];
                }
                if (col->type != LS_TYPE_BYTES)
                        continue;
                if ((view->present && view->encoding != LS_ENC_BYTES) || total != view->len)
                        return -EBADMSG;
                *ret_bytes = view->data;
        }
        return e;
}

static int dump_record(struct dump *d, const struct ls_record *rec)
{
        const uint8_t *bytes;
        int e;

        if (rec->kind >= LS_KINDS || !ls_schemas[rec->kind].name) {
                add_u64(d, "kind", rec->kind);
                add_u64(d, "bytes", rec->body_len);
                return emit(d, d->chunk->number, d->chunk->offset, "unknown");
        }
        e = decode_record(d, rec, &bytes);
        for (uint32_t i = 0; !e && i < rec->count; i++) {
                row_fields(d, rec, i, &bytes);
                e = emit(d, d->chunk->number, d->chunk->offset, ls_schemas[rec->kind].name);
        }
        return e;
}

static int dump_damage(struct dump *d, const struct ls_damage *m)
{
        add_str(d, "why", m->why, strlen(m->why));
        add_u64(d, "bytes", m->bytes);
        add_u64(d, "ticks", m->ticks);
        return emit(d, m->chunk, m->offset, "damage");
}

static int dump_chunk(struct dump *d)
{
        struct ls_chunk_header h;
        struct ls_record rec;
        const uint8_t *p, *end;
        const char *why;
        int e = ls_chunk_load(d->r, d->chunk, &h, &why);

        if (e == -EBADMSG)
                return dump_damage(d, &(struct ls_damage){ d->chunk->number, d->chunk->offset, 0,
                                                           why, 0 });
        if (!e)
                e = dump_header(d, &h);
        p = d->r->raw.data;
        /* A parity chunk, and one of a type of a newer version, has no records. */
        end = e || h.type < LS_CHUNK_DEFINITIONS || h.type > LS_CHUNK_INDEX ? p : p + h.raw_size;
        while (!e && (e = ls_record_next(&p, end, &rec)) > 0)
                e = dump_record(d, &rec);
        if (e == -EBADMSG)
                e = dump_damage(d, &(struct ls_damage){ d->chunk->number, d->chunk->offset, 0,
                                                        "its records make no sense", 0 });
        return e;
}

static int ignore_block(void *ctx, const struct ls_sample_block *block)
{
        (void)ctx;
        (void)block;
        return 0;
}

int ls_profile_dump(struct ls_profile *p, ls_dump_fn fn, void *ctx)
{
        struct dump d = { .r = p->priv, .fn = fn, .ctx = ctx };
        uint32_t damage = 0;
        int e;

        add_u64(&d, "header_ok", (uint64_t)d.r->header_ok);
        add_u64(&d, "interval_ns", p->interval_ns);
        add_u64(&d, "size", p->file_size);
        add_u64(&d, "complete", (uint64_t)p->complete);
        e = emit(&d, 0, 0, "file");
        /* Only decoding finds a sample chunk that lies; it is then listed as damage, without its
         * rows. */
        if (!e)
                e = ls_profile_samples(p, LS_COL_TIME, ignore_block, NULL);
        for (uint32_t i = 0; !e && i <= d.r->n_chunks; i++) {
                d.chunk = i < d.r->n_chunks ? &d.r->chunks[i] : NULL;
                while (!e && damage < p->n_damages &&
                       (!d.chunk || p->damages[damage].offset <= d.chunk->offset))
                        e = dump_damage(&d, &p->damages[damage++]);
                if (!e && d.chunk && !d.chunk->bad)
                        e = dump_chunk(&d);
        }
        return e;
}
