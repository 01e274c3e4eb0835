/* Streams the sample chunks of a trace as blocks of columns, one block for each chunk: decodes,
 * checks ids and totals. The hot path of every report: 10 million rows pass here. */
#include "formats/trace/coded.h"
#include "formats/trace/reader.h"
#include "formats/trace/reader_parts.h"

#include <errno.h>

struct filled { uint64_t value; uint32_t n; };  /* the first n entries of a column buffer hold
                                                 * value */

/* U8_VMSTATE, U32_ZONE and so on: places in the buffers; IN_8_##bits(x) is x where bits is 8, else
 * nothing. */
#define COMMA ,
#define IN_8_8(x) x
#define IN_8_32(x)
#define IN_32_8(x)
#define IN_32_32(x) x
enum {
#define LS_DIM(NAME, name, bits, KIND, key) IN_8_##bits(U8_##NAME COMMA)
#include "formats/dims.def"
#undef LS_DIM
        U8_FLAGS, U8_EVENT, U8_COLUMNS
};
enum {
#define LS_DIM(NAME, name, bits, KIND, key) IN_32_##bits(U32_##NAME COMMA)
#include "formats/dims.def"
#undef LS_DIM
        U32_STACK, U32_WEIGHT, U32_COLUMNS     /* up to the stack dimensions */
};
enum { CODED_STACK, CODED_THREAD, CODED_OUT, CODED_COLUMNS };

struct ls_sample_buffers {
        uint32_t rows;                  /* room: the most rows of a chunk so far */
        uint64_t *time;                 /* start of the memory of all columns */
        uint32_t *u32[U32_COLUMNS];
        uint8_t *u8[U8_COLUMNS];
        uint64_t *coded[CODED_COLUMNS]; /* of a record with coded columns: LS_CODED_ROWS_MAX rows */
        uint32_t *trace;                /* LS_COL_TRACE: room for trace_rows */
        uint32_t trace_rows;
        struct filled f8[U8_COLUMNS], f32[U32_COLUMNS];
        uint8_t same8[U8_COLUMNS], same32[U32_COLUMNS];
};

void ls_sample_buffers_free(struct ls_sample_buffers *b)
{
        if (b) {
                free(b->time);
                free(b->trace);
                free(b->coded[0]);
        }
        free(b);
}

static int buffers_room(struct ls_sample_buffers *b, uint32_t rows)
{
        size_t row = sizeof(uint64_t) + U32_COLUMNS * sizeof(uint32_t) + U8_COLUMNS;
        uint64_t *p;

        if (rows <= b->rows)
                return 0;
        p = realloc(b->time, rows * row);
        if (!p)
                return -ENOMEM;
        b->rows = rows;
        b->time = p;
        for (unsigned i = 0; i < U32_COLUMNS; i++)
                b->u32[i] = (uint32_t *)(p + rows) + (size_t)i * rows;
        for (unsigned i = 0; i < U8_COLUMNS; i++)
                b->u8[i] = (uint8_t *)(b->u32[0] + (size_t)U32_COLUMNS * rows) + (size_t)i * rows;
        memset(b->f8, 0, sizeof(b->f8));
        memset(b->f32, 0, sizeof(b->f32));
        return 0;
}

/* Rows of the chunk in r->extra as its header says: decoding holds it to that. */
static uint32_t stated_rows(const struct ls_reader *r, const struct ls_chunk_header *h)
{
        const uint8_t *p = r->extra, *end = p + h->extra_len;
        uint64_t v[4], rows = 0;

        while (ls_extra_next(&p, end, 4, v) > 0 && rows <= LS_MAX_ROWS)
                rows += v[1] <= LS_MAX_ROWS ? v[1] : LS_MAX_ROWS + 1;
        return rows <= LS_MAX_ROWS ? (uint32_t)rows : 0;
}

static const uint8_t columns8[U8_COLUMNS] = {
#define LS_DIM(NAME, name, bits, KIND, key)                                                        \
        IN_8_##bits([U8_##NAME] = LS_C_SAMPLE_##NAME COMMA)
#include "formats/dims.def"
#undef LS_DIM
        [U8_FLAGS] = LS_C_SAMPLE_FLAGS, [U8_EVENT] = LS_C_SAMPLE_EVENT,
};

/* Number above the greatest value of a column; 0 = each of 8 bits is one. */
static const uint8_t limits8[U8_COLUMNS] = { [U8_VMSTATE] = LS_NVMSTATES };
/* The same of one to which later writers add: what is not known here is 0. */
static const uint8_t known8[U8_COLUMNS] = { [U8_TYPE] = LS_NOBJTYPES };

enum { LS_REC_NONE };                   /* kind of a number that is no id: records count from 1 */
static const struct { uint8_t column; uint8_t kind; } columns32[U32_COLUMNS] = {
#define LS_DIM(NAME, name, bits, KIND, key)                                                        \
        IN_32_##bits([U32_##NAME] = { LS_C_SAMPLE_##NAME COMMA LS_REC_##KIND } COMMA)
#include "formats/dims.def"
#undef LS_DIM
        [U32_STACK] = { LS_C_SAMPLE_STACK, LS_REC_STACK },
        [U32_WEIGHT] = { LS_C_SAMPLE_WEIGHT, 0 },
};

/* Whether the column needs decoding: not when it is constant and the buffer holds that value
 * already. */
static int needs_fill(const struct ls_record *rec, unsigned column, uint32_t at, struct filled *f,
                      uint8_t *same)
{
        const struct ls_column_view *c = &rec->col[column];
        int constant = !c->present || c->encoding == LS_ENC_CONST;

        *same = constant && (at == 0 || (*same && f->value == c->constant));
        if (constant && f->value == c->constant && f->n >= at + rec->count)
                return 0;
        if (constant && (at == 0 || (f->value == c->constant && f->n >= at)))
                *f = (struct filled){ c->constant, at + rec->count };
        else if (f->n > at)
                f->n = at;
        return 1;
}

/* Decodes a coded column into coded[to]. Those that it is predicted from are there as they are
 * needed. */
static int decode_coded(struct ls_sample_buffers *b, const struct ls_record *rec, unsigned column,
                        unsigned to)
{
        unsigned context = ls_coded_context(column) == LS_C_SAMPLE_THREAD ? CODED_THREAD
                                                                          : CODED_STACK;

        return ls_coded_get(rec, column, b->coded[context], b->coded[to]);
}

static int decode_u8(struct ls_sample_buffers *b, const struct ls_record *rec, unsigned column,
                     uint8_t max, uint8_t *out)
{
        int e;

        if (!ls_is_coded(rec, column))
                return ls_column_u8(rec, column, max, out);
        e = decode_coded(b, rec, column, CODED_OUT);
        for (uint32_t i = 0; !e && i < rec->count; i++) {
                e = b->coded[CODED_OUT][i] > max ? -EBADMSG : 0;
                out[i] = (uint8_t)b->coded[CODED_OUT][i];
        }
        return e;
}

static int decode_u32(struct ls_sample_buffers *b, const struct ls_record *rec, unsigned column,
                      uint32_t *out)
{
        unsigned from = column == LS_C_SAMPLE_STACK ? CODED_STACK : CODED_OUT;
        int e;

        if (!ls_is_coded(rec, column))
                return ls_column_u32(rec, column, UINT32_MAX, out);
        e = from == CODED_OUT ? decode_coded(b, rec, column, from) : 0;
        for (uint32_t i = 0; !e && i < rec->count; i++) {
                e = b->coded[from][i] > UINT32_MAX ? -EBADMSG : 0;
                out[i] = (uint32_t)b->coded[from][i];
        }
        return e;
}

static int decode_context(struct ls_sample_buffers *b, const struct ls_record *rec, unsigned column,
                          unsigned to)
{
        return ls_is_coded(rec, column) ? decode_coded(b, rec, column, to)
                                        : ls_column_u64(rec, column, UINT32_MAX, b->coded[to]);
}

/* The columns that coded ones are predicted from: stack, and thread for the times. */
static int decode_contexts(struct ls_sample_buffers *b, const struct ls_record *rec,
                           unsigned columns)
{
        int any = 0, time = (columns & LS_COL_TIME) && ls_is_coded(rec, LS_C_SAMPLE_TIME), e;

        for (unsigned c = 0; c <= LS_C_SAMPLE_LIVED; c++)
                any |= c != LS_C_SAMPLE_TIME && ls_is_coded(rec, c);
        if (!any && !time)
                return 0;
        if (rec->count > LS_CODED_ROWS_MAX)
                return -EBADMSG;
        if (!b->coded[0]) {
                uint64_t *p = malloc((size_t)CODED_COLUMNS * LS_CODED_ROWS_MAX * sizeof(*p));

                if (!p)
                        return -ENOMEM;
                for (unsigned i = 0; i < CODED_COLUMNS; i++)
                        b->coded[i] = p + (size_t)i * LS_CODED_ROWS_MAX;
        }
        e = decode_context(b, rec, LS_C_SAMPLE_STACK, CODED_STACK);
        return e || !time ? e : decode_context(b, rec, LS_C_SAMPLE_THREAD, CODED_THREAD);
}

static int decode_times(struct ls_reader *r, const struct ls_record *rec, uint64_t *out)
{
        const struct ls_column_view *base = &rec->col[LS_C_SAMPLE_BASE],
                                    *unit = &rec->col[LS_C_SAMPLE_INTERVAL];
        uint64_t interval = unit->constant ? unit->constant : r->interval_ns;
        int e = ls_is_coded(rec, LS_C_SAMPLE_TIME)
                ? ls_coded_get(rec, LS_C_SAMPLE_TIME, r->buffers->coded[CODED_THREAD], out)
                : ls_column_u64(rec, LS_C_SAMPLE_TIME, UINT64_MAX, out);

        if (e)
                return e;
        for (uint32_t i = 0; i < rec->count; i++)
                out[i] = base->constant + (uint64_t)((__int128)(int64_t)out[i] * interval >> 4);
        return 0;
}

static int decode_record(struct ls_reader *r, const struct ls_record *rec, uint32_t at,
                         unsigned columns)
{
        struct ls_sample_buffers *b = r->buffers;
        int e;

        if ((rec->col[LS_C_SAMPLE_BASE].encoding | rec->col[LS_C_SAMPLE_INTERVAL].encoding) !=
            LS_ENC_CONST)
                return -EBADMSG;
        e = decode_contexts(b, rec, columns);
        if (e)
                return e;
        for (unsigned i = 0; i < U8_COLUMNS; i++)
                if (needs_fill(rec, columns8[i], at, &b->f8[i], &b->same8[i]) &&
                    (e = decode_u8(b, rec, columns8[i], (uint8_t)(limits8[i] - 1),
                                    b->u8[i] + at))) {
                        b->f8[i].n = 0;
                        return e;
                }
        for (unsigned i = 0; i < U8_COLUMNS; i++)
                for (uint32_t row = at; known8[i] && row < at + rec->count; row++)
                        if (b->u8[i][row] >= known8[i])
                                b->u8[i][row] = 0;
        for (unsigned i = 0; i < U32_COLUMNS; i++)
                if (needs_fill(rec, columns32[i].column, at, &b->f32[i], &b->same32[i]) &&
                    (e = decode_u32(b, rec, columns32[i].column, b->u32[i] + at))) {
                        b->f32[i].n = 0;
                        return e;
                }
        return columns & LS_COL_TIME ? decode_times(r, rec, b->time + at) : 0;
}

/* Decodes all sample records of the payload in r->raw. */
static int decode_chunk(struct ls_reader *r, const struct ls_chunk_header *h, unsigned columns,
                        uint32_t *ret_n)
{
        const uint8_t *p = r->raw.data, *end = p + h->raw_size;
        uint32_t n = 0, most = stated_rows(r, h);
        struct ls_record rec;
        int e = buffers_room(r->buffers, most + 1);

        if (e)
                return e;

        while ((e = ls_record_next(&p, end, &rec)) > 0) {
                if (rec.kind != LS_REC_SAMPLE || rec.count == 0)
                        continue;
                e = rec.count > most - n ? -EBADMSG : decode_record(r, &rec, n, columns);
                if (e)
                        return e;
                n += rec.count;
        }
        *ret_n = n;
        return e;
}

/* The rows must be what the chunk's header says: totals were shown from it. */
static int check_totals(struct ls_reader *r, const struct ls_chunk_header *h, uint32_t n)
{
        const struct ls_sample_buffers *b = r->buffers;
        const uint8_t *p = r->extra, *end = p + h->extra_len, *event = b->u8[U8_EVENT],
                      *flags = b->u8[U8_FLAGS];
        const uint32_t *weight = b->u32[U32_WEIGHT];
        uint64_t v[4], all = 0;

        while (ls_extra_next(&p, end, 4, v) > 0) {
                uint64_t rows = 0, samples = 0, sum = 0;

                if (b->same8[U8_EVENT] && n && event[0] != v[0])
                        return -EBADMSG;
                for (uint32_t i = 0; i < n; i++) {
                        uint64_t is = event[i] == v[0];

                        rows += is;
                        samples += is & !(flags[i] & LS_SAMPLE_CONT);
                        sum += is ? weight[i] : 0;
                }
                if (rows != v[1] || samples != v[2] || sum != v[3])
                        return -EBADMSG;
                all += rows;
        }
        return all == n ? 0 : -EBADMSG;
}

static uint32_t greatest(const uint32_t *v, uint32_t n, int same)
{
        uint32_t m = n ? v[0] : 0;

        for (uint32_t i = 1; i < n && !same; i++)
                m = v[i] > m ? v[i] : m;
        return m;
}

/* Ids beyond their table become its entry for lost definitions, or 0 where there is none. */
static void check_ids(struct ls_reader *r, uint32_t n)
{
        struct ls_sample_buffers *b = r->buffers;
        const struct ls_dict *stacks = &r->dict[LS_REC_STACK];
        uint32_t *s = b->u32[U32_STACK], *coroutine = b->u32[U32_COROUTINE];

        if (greatest(coroutine, n, b->same32[U32_COROUTINE]) == LS_COROUTINE_OF_STACK) {
                b->f32[U32_COROUTINE].n = b->same32[U32_COROUTINE] = 0;
                for (uint32_t k = 0; k < n; k++)
                        if (coroutine[k] == LS_COROUTINE_OF_STACK)
                                coroutine[k] = ls_stack_coroutine(r, s[k]);
        }
        for (unsigned i = 0; i < U32_STACK; i++) {
                uint32_t max = r->dict[columns32[i].kind].n;
                uint32_t lost = r->lost[columns32[i].kind];

                if (columns32[i].kind == LS_REC_NONE || greatest(b->u32[i], n, b->same32[i]) <= max)
                        continue;
                b->f32[i].n = 0;
                for (uint32_t k = 0; k < n; k++)
                        if (b->u32[i][k] > max)
                                b->u32[i][k] = lost;
        }
        if (!r->holes && greatest(s, n, b->same32[U32_STACK]) <= stacks->n)
                return;
        b->f32[U32_STACK].n = 0;
        for (uint32_t k = 0; k < n; k++)
                if (s[k] && !ls_dict_has(stacks, s[k])) {
                        s[k] = r->p->lost_stack;
                        r->p->lost_ticks += b->u32[U32_WEIGHT][k];
                }
}

/* A chunk that passed the scan but cannot be decoded leaves the totals, and becomes a damage. */
static int disown(struct ls_reader *r, struct ls_chunk_ref *ref, const struct ls_chunk_header *h,
                  const char *why)
{
        const uint8_t *p = r->extra, *end = p + h->extra_len;
        uint64_t v[4];
        int e;

        ref->bad = 1;
        while (ls_extra_next(&p, end, 4, v) > 0) {
                r->sums[v[0] & UINT8_MAX].rows -= v[1];
                r->sums[v[0] & UINT8_MAX].samples -= v[2];
                r->sums[v[0] & UINT8_MAX].sum -= v[3];
        }
        e = ls_resolve_totals(r);
        return e ? e : ls_damage_add(r, ref->number, ref->offset, ls_chunk_size(h), why);
}

static void fill_block(struct ls_reader *r, struct ls_sample_block *s)
{
        const struct ls_sample_buffers *b = r->buffers;

        s->stack = b->u32[U32_STACK];
        s->weight = b->u32[U32_WEIGHT];
        s->flags = b->u8[U8_FLAGS];
        s->event = b->u8[U8_EVENT];
        s->same_flags = b->same8[U8_FLAGS];
        s->same_event = b->same8[U8_EVENT];
#define LS_DIM(NAME, name, bits, KIND, key) s->name = b->u##bits[U##bits##_##NAME]; \
                                            s->same_##name = b->same##bits[U##bits##_##NAME];
#include "formats/dims.def"
#undef LS_DIM
}

/* From the file's stacks to those that are meant: of rows without a line, and of those that end in
 * machine code. */
static int move_stacks(struct ls_reader *r, unsigned columns, struct ls_sample_block *s)
{
        struct ls_sample_buffers *b = r->buffers;

        if (r->no_line) {
                b->f32[U32_STACK].n = 0;
                ls_no_line_move_rows(r, s->vmstate, s->flags, s->n, b->u32[U32_STACK]);
        }
        if (!r->jit_moves || (columns & LS_COL_PLACE))
                return 0;
        if ((columns & LS_COL_TRACE) && s->n > b->trace_rows) {
                uint32_t *p = realloc(b->trace, s->n * sizeof(*p));

                if (!p)
                        return -ENOMEM;
                b->trace = p;
                b->trace_rows = s->n;
        }
        s->trace = columns & LS_COL_TRACE ? b->trace : NULL;
        b->f32[U32_STACK].n = 0;
        ls_jit_move_rows(r, b->u32[U32_WEIGHT], s->n, b->u32[U32_STACK],
                         columns & LS_COL_TRACE ? b->trace : NULL);
        return 0;
}

static int stream_chunk(struct ls_reader *r, struct ls_chunk_ref *ref, unsigned columns,
                        ls_sample_fn fn, void *ctx)
{
        struct ls_sample_block block = { .chunk = ref->number };
        struct ls_chunk_header h = { 0 };
        const char *why = NULL;
        int e;

        e = ls_chunk_load(r, ref, &h, &why);
        if (!e) {
                why = "its records make no sense";
                e = decode_chunk(r, &h, columns, &block.n);
        }
        if (!e) {
                why = "its totals are not those of its rows";
                e = check_totals(r, &h, block.n);
        }
        if (e)
                return e == -EBADMSG ? disown(r, ref, &h, why) : e;
        if (block.n == 0)
                return 0;
        check_ids(r, block.n);
        fill_block(r, &block);
        e = move_stacks(r, columns, &block);
        if (e)
                return e;
        block.time_ns = columns & LS_COL_TIME ? r->buffers->time : NULL;
        return fn(ctx, &block);
}

static int make_buffers(struct ls_reader *r)
{
        if (!r->buffers)
                r->buffers = calloc(1, sizeof(*r->buffers));
        return r->buffers ? 0 : -ENOMEM;
}

int ls_samples_scan(struct ls_reader *r, ls_sample_fn fn, void *ctx)
{
        int e = make_buffers(r);

        for (uint32_t i = 0; !e && i < r->n_chunks; i++) {
                struct ls_sample_block block = { .chunk = r->chunks[i].number };
                struct ls_chunk_header h;
                const char *why;

                if (r->chunks[i].type != LS_CHUNK_SAMPLES || r->chunks[i].bad)
                        continue;
                e = ls_chunk_load(r, &r->chunks[i], &h, &why);
                if (!e)
                        e = decode_chunk(r, &h, 0, &block.n);
                if (!e) {
                        check_ids(r, block.n);
                        fill_block(r, &block);
                        e = fn(ctx, &block);
                }
                e = e == -EBADMSG ? 0 : e;      /* ls_profile_samples lists it as damage */
        }
        return e;
}

int ls_profile_samples(struct ls_profile *p, unsigned columns, ls_sample_fn fn, void *ctx)
{
        struct ls_reader *r = p->priv;

        if (make_buffers(r))
                return -ENOMEM;
        p->lost_ticks = p->jit_ticks = p->jit_approximate_ticks = p->jit_unknown_ticks = 0;
        for (uint32_t i = 0; i < r->n_chunks; i++) {
                struct ls_chunk_ref *ref = &r->chunks[i];
                int e = 0;

                if (ref->type == LS_CHUNK_SAMPLES && !ref->bad)
                        e = stream_chunk(r, ref, columns, fn, ctx);
                if (e)
                        return e;
        }
        return 0;
}
