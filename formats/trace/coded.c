/* Coded columns: see coded.h. Each model below is written once for both directions: when the coder
 * encodes, it takes the value given and returns it; when it decodes, it ignores the value given and
 * returns the one read. */
#include "formats/trace/coded.h"

#include <errno.h>

#define SLOT_BITS_MIN 10
#define SLOT_BITS_MAX 16
#define P_MIN 32u /* of 65536: what is certain costs a little, what cannot be costs 11 bits */
#define N_MAX 30                /* bits that a slot remembers */
#define LENGTH_ADAPTIVE                                                                            \
        3 /* bits of a number behind its highest that are learnt; those below are not */

struct slot { uint16_t p, n; };         /* 65536 times the chance of a 1, less 32768; bits seen so
                                         * far */
struct memo { uint64_t last; int32_t lag; uint32_t seen; };     /* of the rows with one context */

struct coder {
        uint32_t low, high;             /* the range that is left */
        uint32_t x;                     /* decoder: the next 4 bytes, the highest first */
        const uint8_t *p, *end;
        uint32_t over;                  /* decoder: bytes that were taken behind the end, as 0 */
        struct ls_buf *out;             /* encoder */
        struct slot *slots;
        struct memo *memos;             /* a quarter as many */
        unsigned shift;                 /* from a hash to the number of a slot */
};

static uint32_t slot_of(const struct coder *c, uint32_t context, uint32_t node)
{
        return ((context * 2654435761u + node) * 2246822519u) >> c->shift;
}

static int coder_init(struct coder *c, uint32_t rows)
{
        unsigned bits = SLOT_BITS_MIN;

        while (bits < SLOT_BITS_MAX && 1u << bits < 16 * rows)
                bits++;
        *c = (struct coder){ .high = UINT32_MAX, .shift = 32 - bits };
        c->slots = calloc((size_t)1 << bits, sizeof(*c->slots));
        c->memos = calloc((size_t)1 << (bits - 2), sizeof(*c->memos));
        return c->slots && c->memos ? 0 : -ENOMEM;
}

static void coder_done(struct coder *c)
{
        free(c->slots);
        free(c->memos);
}

static void next_byte(struct coder *c)
{
        c->x = c->x << 8 | (c->p < c->end ? *c->p : 0);
        if (c->p < c->end)
                c->p++;
        else
                c->over++;
}

static void put_byte(struct coder *c)
{
        uint8_t *p = ls_buf_room(c->out, 1);

        if (p) {
                *p = (uint8_t)(c->high >> 24);
                c->out->len++;
        }
}

/* One bit, 1 with chance p of 65536. The range is cut in two, and shifted out as far as its ends
 * agree. */
static inline int split(struct coder *c, uint32_t p, int bit)
{
        uint32_t mid = c->low + (uint32_t)((uint64_t)(c->high - c->low) * p >> 16);

        if (!c->out)
                bit = c->x <= mid;
        if (bit)
                c->high = mid;
        else
                c->low = mid + 1;
        while (!((c->low ^ c->high) >> 24)) {
                if (c->out)
                        put_byte(c);
                else
                        next_byte(c);
                c->low <<= 8;
                c->high = c->high << 8 | 0xff;
        }
        return bit;
}

/* One bit with a chance that is learnt for its context and node. */
static inline int code_bit(struct coder *c, uint32_t context, uint32_t node, int bit)
{
        static const uint16_t rate[N_MAX + 1] = {
                /* 65536 / (n + 2) */
                32768, 21845, 16384, 13107, 10922, 9362, 8192, 7281, 6553, 5957, 5461,
                5041,  4681,  4369,  4096,  3855,  3640, 3449, 3276, 3120, 2978, 2849,
                2730,  2621,  2520,  2427,  2340,  2259, 2184, 2114, 2048
        };
        struct slot *s = &c->slots[slot_of(c, context, node)];
        uint32_t p = (uint16_t)(s->p + 32768u), r = rate[s->n];

        bit = split(c, p, bit);
        p = bit ? p + ((65535 - p) * r >> 16) : p - (p * r >> 16);
        p = p < P_MIN ? P_MIN : p > 65535 - P_MIN ? 65535 - P_MIN : p;
        s->p = (uint16_t)(p - 32768u);
        s->n = (uint16_t)(s->n + (s->n < N_MAX));
        return bit;
}

/* A number below 2^bits, highest bit first, each with the chance that it has behind those above
 * it. */
static uint64_t code_tree(struct coder *c, uint32_t context, unsigned bits, uint64_t v)
{
        uint32_t node = 1;
        uint64_t got = 0;

        while (bits-- > 0) {
                int bit = code_bit(c, context, node, (int)(v >> bits & 1));

                node = node * 2 + (uint32_t)bit;
                got = got << 1 | (uint64_t)bit;
        }
        return got;
}

/* Any number: how many bits it has, in ones and a zero, and then these without the highest. */
static uint64_t code_number(struct coder *c, uint32_t context, uint64_t v)
{
        unsigned n = 0;
        uint64_t got = 1;

        while (n < 64 && code_bit(c, context, n, n < 64 && v >> n))
                n++;
        if (n == 0)
                return 0;
        for (unsigned i = n - 1; i-- > 0; ) {
                int bit = (int)(v >> i & 1);

                bit = n - 1 - i <= LENGTH_ADAPTIVE
                              ? code_bit(c, context, 128 + n * 8 + (uint32_t)got, bit)
                              : split(c, 32768, bit);
                got = got << 1 | (uint64_t)bit;
        }
        return got;
}

enum { CTX_NEW = 1, CTX_NUMBER = 2, CTX_TREE = 3, CTX_HIT = 4, CTX_MISS = 8, CTX_LOCATION = 32 };

/* Stacks: new ones count up from the greatest so far; others are ids. */
static void code_ids(struct coder *c, unsigned bits, const uint64_t *context, uint64_t *v,
                     uint32_t n)
{
        uint64_t max = 0;
        int is_new = 0;

        (void)context;
        for (uint32_t i = 0; i < n; i++) {
                is_new = code_bit(c, CTX_NEW, (uint32_t)is_new, v[i] > max);
                if (is_new)
                        v[i] = max += code_number(c, CTX_NUMBER, v[i] - max - 1) + 1;
                else
                        v[i] = code_tree(c, CTX_TREE, bits, v[i]);
        }
}

static struct memo *memo_of(const struct coder *c, uint64_t context)
{
        return &c->memos[slot_of(c, 0, (uint32_t)context) >> 2];
}

static uint32_t at_most_7(uint64_t v)
{
        return v < 7 ? (uint32_t)v : 7;
}

/* What is the same as the last time with this stack, or else as in the row before, or else is an
 * id. */
static void code_paired(struct coder *c, unsigned bits, const uint64_t *context, uint64_t *v,
                        uint32_t n)
{
        uint64_t before = 0;

        for (uint32_t i = 0; i < n; i++) {
                struct memo *m = memo_of(c, context[i]);
                uint64_t guess = m->seen ? m->last : before;
                uint32_t g = at_most_7(guess);
                int hit = code_bit(c, CTX_HIT, m->seen * 64 + g * 8 + at_most_7(before),
                                   v[i] == guess);

                v[i] = hit ? guess
                           : code_tree(c, CTX_MISS + m->seen * 8 + (bits <= 3 ? g : 0), bits, v[i]);
                m->seen = 1;
                m->last = before = v[i];
        }
}

/* Times: a tick is one interval, 16 units, after the one before in its thread. One that came late
 * makes the next one early, so it counts how far the thread lags behind. */
static void code_steps(struct coder *c, unsigned bits, const uint64_t *context, uint64_t *v,
                       uint32_t n)
{
        uint32_t hit = 1;

        (void)bits;
        for (uint32_t i = 0; i < n; i++) {
                struct memo *m = memo_of(c, context[i]);
                uint32_t lag = (uint32_t)(m->lag < -3 ? -3 : m->lag > 3 ? 3 : m->lag) + 3;
                uint64_t guess = m->last + 16, error = v[i] - guess, sum;

                hit = (uint32_t)code_bit(c, CTX_HIT, lag * 2 + hit, error == 0);
                error = hit ? 0
                            : ls_unzigzag(code_number(c, CTX_MISS + lag, ls_zigzag(error) - 1) + 1);
                v[i] = m->last = guess + error;
                sum = (uint64_t)(int64_t)m->lag + error;
                m->lag = sum + 99 <= 198 ? (int32_t)(int64_t)sum : 0;
        }
}

/* Stacks' definitions: most are the child of the row before, and a location has few that it
 * calls. */
static void code_stacks(struct coder *c, unsigned bits, uint64_t first, uint64_t *parent,
                        uint64_t *location, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                uint64_t id = first + i, caller = 0;
                uint32_t before = i ? (uint32_t)location[i - 1] : 0;

                if (code_bit(c, CTX_NEW, before, parent[i] == id - 1))
                        parent[i] = id - 1;
                else
                        parent[i] = id - 2 - code_number(c, CTX_NUMBER, id - 2 - parent[i]);
                if (parent[i] >= first && parent[i] < id)
                        caller = location[parent[i] - first] + 1;
                location[i] = code_tree(c, CTX_LOCATION + (uint32_t)caller, bits, location[i]);
        }
}

typedef void (*model_fn)(struct coder *c, unsigned bits, const uint64_t *context, uint64_t *v,
                         uint32_t n);

static const struct { model_fn code; uint8_t context; uint8_t any; } models[LS_COLUMNS_MAX] = {
        [LS_C_SAMPLE_EVENT] = { code_paired, LS_C_SAMPLE_STACK, 0 },
#define LS_DIM(NAME, name, bits, KIND, key)                                                        \
        [LS_C_SAMPLE_##NAME] = { code_paired, LS_C_SAMPLE_STACK, 0 },
#include "formats/dims.def"
#undef LS_DIM
        [LS_C_SAMPLE_STACK] = { code_ids, LS_C_SAMPLE_STACK, 0 },
        [LS_C_SAMPLE_FLAGS] = { code_paired, LS_C_SAMPLE_STACK, 0 },
        [LS_C_SAMPLE_TIME] = { code_steps, LS_C_SAMPLE_THREAD, 1 },
        [LS_C_SAMPLE_WEIGHT] = { code_paired, LS_C_SAMPLE_STACK, 0 },
        [LS_C_SAMPLE_VALUE] = { code_paired, LS_C_SAMPLE_STACK, 0 },
};

unsigned ls_coded_context(unsigned column)
{
        return models[column].context;
}

static unsigned bits_of(const uint64_t *v, uint32_t n)
{
        uint64_t all = 0;
        unsigned bits = 0;

        for (uint32_t i = 0; i < n; i++)
                all |= v[i];
        while (bits < 64 && all >> bits)
                bits++;
        return bits;
}

/* Starts a coded column in out, which the coder then fills: the bits of its ids, and the bytes of
 * the coder. */
static int begin_put(struct coder *c, struct ls_buf *out, unsigned bits, uint32_t n)
{
        uint8_t byte = (uint8_t)bits;
        int r;

        if (bits > 32 || n > LS_CODED_ROWS_MAX)
                return -ERANGE;
        r = coder_init(c, n);
        if (r)
                coder_done(c);
        else
                ls_buf_add(out, &byte, 1);
        c->out = out;
        return r;
}

/* Ends it: one byte more, which with zeros behind it lies in the range. */
static int end_put(struct coder *c, struct ls_buf *body, unsigned column)
{
        uint8_t byte = (uint8_t)((c->low >> 24) + 1);
        int r;

        ls_buf_add(c->out, &byte, 1);
        ls_buf_varint(body, (column + 1) << 3 | LS_ENC_CODED);
        ls_buf_varint(body, c->out->len);
        ls_buf_add(body, c->out->data, c->out->len);
        r = c->out->failed || body->failed ? -ENOMEM : 0;
        coder_done(c);
        return r;
}

/* The models write what they read back: a copy keeps the caller's values. */
static uint64_t *copy_of(const uint64_t *v, uint32_t n)
{
        uint64_t *copy = malloc((size_t)n * sizeof(*v) + 1);

        if (copy && n)
                memcpy(copy, v, (size_t)n * sizeof(*v));
        return copy;
}

int ls_coded_put(struct ls_buf *body, unsigned column, const uint64_t *values,
                 const uint64_t *context, uint32_t n)
{
        struct ls_buf out = { 0 };
        struct coder c;
        uint64_t *v = copy_of(values, n);
        int r = v ? begin_put(&c, &out, models[column].any ? 0 : bits_of(values, n), n) : -ENOMEM;

        if (!r) {
                models[column].code(&c, out.data ? out.data[0] : 0, context, v, n);
                r = end_put(&c, body, column);
        }
        ls_buf_free(&out);
        free(v);
        return r;
}

int ls_coded_put_stacks(struct ls_buf *body, uint64_t first, const uint64_t *parents,
                        const uint64_t *locations, uint32_t n)
{
        struct ls_buf out = { 0 };
        struct coder c;
        unsigned bits = bits_of(locations, n);
        uint64_t *p = copy_of(parents, n), *l = copy_of(locations, n);
        int r = p && l ? begin_put(&c, &out, bits, n) : -ENOMEM;

        if (!r) {
                code_stacks(&c, bits, first, p, l, n);
                r = end_put(&c, body, LS_C_STACK_PARENT);
        }
        ls_buf_free(&out);
        free(p);
        free(l);
        return r;
}

static int begin_get(struct coder *c, const struct ls_column_view *col, uint32_t n,
                     unsigned *ret_bits)
{
        int r;

        if (n > LS_CODED_ROWS_MAX || col->len < 2 || col->data[0] > 32)
                return -EBADMSG;
        r = coder_init(c, n);
        if (r) {
                coder_done(c);
                return r;
        }
        *ret_bits = col->data[0];
        c->p = col->data + 1;
        c->end = col->data + col->len;
        for (unsigned i = 0; i < 4; i++)
                next_byte(c);
        return 0;
}

/* The encoder ends with one byte of the four that the decoder is ahead. */
static int end_get(struct coder *c)
{
        int r = c->p == c->end && c->over == 3 ? 0 : -EBADMSG;

        coder_done(c);
        return r;
}

int ls_coded_get(const struct ls_record *rec, unsigned column, const uint64_t *context,
                 uint64_t *out)
{
        struct coder c;
        unsigned bits;
        int r;

        if (rec->kind != LS_REC_SAMPLE || !models[column].code)
                return -EBADMSG;
        r = begin_get(&c, &rec->col[column], rec->count, &bits);
        if (r)
                return r;
        memset(out, 0, rec->count * sizeof(*out));
        models[column].code(&c, bits, context, out, rec->count);
        return end_get(&c);
}

int ls_coded_get_stacks(const struct ls_record *rec, uint64_t *parents, uint64_t *locations)
{
        struct coder c;
        unsigned bits;
        int r;

        if (rec->col[LS_C_STACK_LOCATION].present)
                return -EBADMSG;
        r = begin_get(&c, &rec->col[LS_C_STACK_PARENT], rec->count, &bits);
        if (r)
                return r;
        memset(parents, 0, rec->count * sizeof(*parents));
        memset(locations, 0, rec->count * sizeof(*locations));
        code_stacks(&c, bits, rec->first, parents, locations, rec->count);
        return end_get(&c);
}
