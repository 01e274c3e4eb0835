/* Hash of a function's definition (proto_hash.h): bytecode and constants, without what the JIT
 * compiler patches into them. */

#include "libsample/handler/proto_hash.h"
#include "formats/wire/mix.h"

#include "libsample/handler/walk.h"

static uint64_t mix(uint64_t h, uint64_t v)
{
        h = ls_mix(h ^ v);
        return h ^ h >> 29;
}

#define BYTES_EACH_END (128u << 10)

uint64_t ls_bytes_hash(const char *s, size_t len)
{
        uint64_t h = len, v;

        if (len > 2 * BYTES_EACH_END) {
                for (const char *end = s + BYTES_EACH_END; s < end; s += 8) {
                        memcpy(&v, s, 8);
                        h = mix(h, v);
                }
                s += len - 2 * BYTES_EACH_END;
                len = BYTES_EACH_END;
        }
        for (; len >= 8; s += 8, len -= 8) {
                memcpy(&v, s, 8);
                h = mix(h, v);
        }
        v = 0;
        memcpy(&v, s, len);
        return mix(h, v);
}

uint64_t ls_text_hash(const char *s, size_t len)
{
        size_t end = len < BYTES_EACH_END ? len : BYTES_EACH_END;

        ls_at(s, end);
        ls_at(s + (len - end), end);
        return ls_bytes_hash(s, len);
}

/* The compiler overwrites loop heads, function heads, returns and specialised iterator calls with
 * its own variants (numbered next to them) and puts a trace number where their operand was. Each
 * family becomes one instruction. The order of the numbers is that of all LuaJIT 2.1: ITERC ITERN
 * VARG ISNEXT RETM RET RET0 RET1 FORI JFORI FORL IFORL JFORL ITERL IITERL JITERL LOOP ILOOP JLOOP
 * JMP FUNCF IFUNCF JFUNCF FUNCV IFUNCV JFUNCV. */
static uint32_t normal(uint32_t ins)
{
        enum { ANY = 0xff00, NONE = 0 };
        static const struct { int8_t first, last; uint32_t keep;
        } families[] = {
                { -8, -7, NONE }, { -4, -1, NONE }, { 8, 10, NONE }, /* each may turn into JLOOP */
                { 0, 1, ANY },    { 2, 4, ANY },    { 5, 7, ANY },
                { 12, 14, ANY },  { 15, 17, ANY },
        };
        int op = (int)(ins & 0xff) - ls_vm_facts.op_fori;

        if (op == -5)                   /* ISNEXT turns into JMP */
                return (ins & ~(uint32_t)0xff) | (uint32_t)(ls_vm_facts.op_fori + 11);
        for (unsigned i = 0; i < sizeof families / sizeof *families; i++)
                if (op >= families[i].first && op <= families[i].last)
                        return (ins & families[i].keep) |
                               (uint32_t)(families[i].keep == NONE ? 8 : families[i].first + 32);
        return ins;
}

/* A collectable constant: strings by their bytes, functions by their size and line. */
static uint64_t constant(const char *o)
{
        switch (LS_READ(uint8_t, o, LS_GC_TYPE)) {
        case LS_T_STR:
                return ls_text_hash(ls_str_data(o), ls_str_len(o) < 256 ? ls_str_len(o) : 256);
        case LS_T_PROTO:
                return (uint64_t)LS_READ(uint32_t, o, LS_PT_SIZEBC) << 32 |
                       LS_READ(uint32_t, o, LS_PT_FIRSTLINE);
        default:
                return LS_READ(uint8_t, o, LS_GC_TYPE);
        }
}

/* Of a long array only so many elements at its begin and at its end count: a generated function may
 * have millions, and the program waits. */
#define EACH_END 4096u

/* The element after i. */
static uint32_t next(uint32_t i, uint32_t n)
{
        return i + 1 == EACH_END && n > 2 * EACH_END ? n - EACH_END : i + 1;
}

uint64_t ls_proto_hash(const char *pt)
{
        const uint32_t *bc = (const uint32_t *)(const void *)(pt + LS_PT_SIZE);
        uint32_t n = LS_READ(uint32_t, pt, LS_PT_SIZEBC);
        const uint64_t *k = LS_READ(const uint64_t *, pt, LS_PT_K);
        uint32_t nnum = LS_READ(uint32_t, pt, LS_PT_SIZEKN),
                 ngc = LS_READ(uint32_t, pt, LS_PT_SIZEKGC);
        uint64_t h = n;

        for (uint32_t i = 0; i < n; i = next(i, n))
                h = mix(h, normal(LS_GET(bc[i])));
        for (uint32_t i = 0; i < nnum; i = next(i, nnum))
                h = mix(h, LS_GET(k[i]));
        for (uint32_t i = 0; i < ngc; i = next(i, ngc))
                h = mix(h, constant((const char *)(uintptr_t)LS_GET(k[-1 - (int64_t)i])));
        return h ? h : 1;
}
