/* formats/jit/map.h on traces made by hand: where code lies, frames of inlined functions, side
 * traces, loops, traces without events; and records that are damaged or made to hurt. tests/jit
 * scores it on real traces. */
#include "formats/jit/map.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { SLOAD, MUL, ADD, LOOP, PHI, NOP, CALLL, LT };
static const char irnames[] = "SLOAD MUL   ADD   LOOP  PHI   NOP   CALLL LT    ";

#define NUM 14
#define GUARD 0x80
#define NO_REG 0xff
#define XMM(n) (16 + (n))
#define CODE_AT 0x7f0000001000ull

/* Function ids; events name them by index. */
enum { MAIN = 11, CALLEE = 22, INNER = 33 };
static const uint32_t ids[] = { MAIN, CALLEE, INNER };

struct parts {                          /* of a record */
        struct ls_rec_jittrace head;
        const struct ls_jit_event *events;
        const struct ls_jit_snapshot *snapshots;
        const uint64_t *ir;
        const uint8_t *code;
};

static uint64_t ir(int op1, int op2, int op, int type, int reg)
{
        return (uint16_t)op1 | (uint64_t)(uint16_t)op2 << 16 | (uint64_t)type << 32 |
               (uint64_t)op << 40 | (uint64_t)reg << 48;
}

static size_t add(uint8_t *blob, size_t at, const void *what, size_t bytes)
{
        if (bytes)
                memcpy(blob + at, what, bytes);
        return at + ((bytes + 7) & ~(size_t)7);
}

/* The record of the parts, to be freed. */
static uint8_t *make_blob(const struct parts *p, size_t *ret_len)
{
        const struct ls_rec_jittrace *h = &p->head;
        size_t len = sizeof(*h) + h->nfunctions * 4 + h->nevents * sizeof(*p->events) +
                     h->nsnapshots * sizeof(*p->snapshots) + h->nir * 8 + h->mcode_size + 64,
               at = 0;
        uint8_t *blob = calloc(1, len);

        assert_non_null(blob);
        at = add(blob, at, h, sizeof(*h));
        at = add(blob, at, ids, h->nfunctions * 4);
        at = add(blob, at, p->events, h->nevents * sizeof(*p->events));
        at = add(blob, at, p->snapshots, h->nsnapshots * sizeof(*p->snapshots));
        at = add(blob, at, p->ir, h->nir * 8);
        *ret_len = add(blob, at, p->code, h->mcode_size);
        return blob;
}

static struct ls_jit_map *make_map(const struct parts *p, const struct ls_jit_map *parent)
{
        struct ls_jit_input in;
        struct ls_jit_map *map = NULL;
        size_t len;
        uint8_t *blob = make_blob(p, &len);

        assert_int_equal(ls_jit_input_parse(blob, len, &in), 0);
        assert_int_equal(ls_jit_map_new(&in, irnames, sizeof(irnames) - 1, parent, &map), 0);
        free(blob);                     /* the map needs it no more */
        return map;
}

/* The frames at an offset as text: "function:line ..." from the outermost on. */
static const char *at(const struct ls_jit_map *map, uint32_t offset)
{
        static char text[200];
        struct ls_jit_frame f[8];
        unsigned n = ls_jit_map_frames(map, offset, f, 8), len = 0;

        text[0] = 0;
        for (unsigned k = 0; k < n && k < 8; k++)
                len += (unsigned)snprintf(text + len, sizeof(text) - len, "%s%u:%u", k ? " " : "",
                                          f[k].function, f[k].line);
        return text;
}

/* main calls callee, which multiplies; main adds. */
static const uint8_t root_code[] = {
        0x41, 0xc7, 0x86, 0x38, 0xf1, 0xff, 0xff, 1, 0, 0, 0,   /* 0: mov dword [r14-0xec8], 1 */
        0x81, 0x7a, 0x2c, 0, 0, 0xf9, 0xff,                     /* 11: cmp dword [rdx+0x2c],
                                                                 * 0xfff90000 */
        0x0f, 0x83, 0, 0, 1, 0,                                 /* 18: jae exit */
        0xf2, 0x0f, 0x10, 0x42, 0x28,                           /* 24: movsd xmm0, [rdx+0x28] */
        0xf2, 0x0f, 0x59, 0xc1,                                 /* 29: mulsd xmm0, xmm1 */
        0xf2, 0x0f, 0x58, 0xc2,                                 /* 33: addsd xmm0, xmm2 */
        0xe9, 0, 0, 1, 0,                                       /* 37: jmp */
};
static const struct ls_jit_event root_events[] = {
        { .ref = 1, .function = 0, .depth = 0, .pos = 5, .line = 10 },
        { .ref = 2, .function = 0, .depth = 0, .pos = 6, .line = 11 },
        { .ref = 2, .function = 1, .depth = 1, .pos = 1, .line = 20 },
        { .ref = 3, .function = 0, .depth = 0, .pos = 7, .line = 12 },
};
static const struct ls_jit_snapshot root_snapshots[] = {
        { .ref = 1, .mcofs = 0, .function = 0, .nframes = 0, .pos = 5, .line = 10 },
        { .ref = 3, .mcofs = 33, .function = 1, .nframes = 1, .pos = 2, .line = 21 },
};

static struct parts root_parts(void)
{
        static uint64_t irs[4];

        irs[1] = ir(1, 4, SLOAD, NUM | GUARD, XMM(0));
        irs[2] = ir(0x8001, 0x7fff, MUL, NUM, XMM(0));
        irs[3] = ir(0x8002, 0x7fff, ADD, NUM, XMM(0));
        return (struct parts){ .head = { .jit_id = 1,
                                         .vm_id = 1,
                                         .number = 1,
                                         .start_function = 0,
                                         .start_line = 10,
                                         .start_pos = 5,
                                         .flags = LS_JITF_MAP,
                                         .mcode = CODE_AT,
                                         .mcode_size = sizeof(root_code),
                                         .nir = 4,
                                         .nsnapshots = 2,
                                         .nevents = 4,
                                         .nfunctions = 3 },
                               .events = root_events,
                               .snapshots = root_snapshots,
                               .ir = irs,
                               .code = root_code };
}

static void inlined_frames(void **state)
{
        struct parts p = root_parts();
        struct ls_jit_map *map = make_map(&p, NULL);
        struct ls_jit_frame f[1];
        uint32_t origin;

        (void)state;
        assert_int_equal(ls_jit_map_is_approximate(map), 0);
        assert_string_equal(at(map, 0), "11:10");
        assert_string_equal(at(map, 23), "11:10");
        assert_string_equal(at(map, 28), "11:10");
        assert_string_equal(at(map, 29), "11:11 22:20");
        assert_string_equal(at(map, 32), "11:11 22:20");
        assert_string_equal(at(map, 33), "11:12");
        assert_string_equal(at(map, 41), "11:12");
        assert_string_equal(at(map, 4000), "11:12");            /* behind the code */
        assert_int_equal(ls_jit_map_ref(map, 12, &origin), 1);
        assert_int_equal(ls_jit_map_ref(map, 40, &origin), LS_JIT_REF_TAIL);
        assert_int_equal(ls_jit_map_frames(map, 29, f, 1), 2);  /* there are more than fit */
        assert_int_equal(f[0].function, MAIN);
        assert_int_equal(ls_jit_map_frames(map, 29, NULL, 0), 2);
        ls_jit_map_free(map);
        ls_jit_map_free(NULL);
}

/* A vararg function's header is a frame to LuaJIT, but not to people. */
static void vararg_header(void **state)
{
        static const struct ls_jit_event events[] = {
                { .ref = 1, .function = 0, .depth = 0, .pos = 5, .line = 10 },
                { .ref = 2, .function = 0, .depth = 0, .pos = 6, .line = 11 },
                { .ref = 2, .function = 1, .depth = 1, .pos = 0, .line = 19 },
                { .ref = 2, .function = 1, .depth = 2, .pos = 3, .line = 21 },
        };
        struct parts p = root_parts();
        struct ls_jit_map *map;

        (void)state;
        p.events = events;
        map = make_map(&p, NULL);
        assert_string_equal(at(map, 29), "11:11 22:21");
        ls_jit_map_free(map);
}

/* A function that is not known counts for its caller; references that were given up belong to what
 * came after. */
static void odd_events(void **state)
{
        static const struct ls_jit_event events[] = {
                { .ref = 1, .function = 0, .depth = 0, .pos = 5, .line = 10 },
                { .ref = 900, .function = 2, .depth = 1, .pos = 2, .line = 90 },
                { .ref = 2, .function = 0, .depth = 0, .pos = 6, .line = 11 },
                { .ref = 3, .function = 0xffff, .depth = 1, .pos = 0, .line = 0 },
        };
        struct parts p = root_parts();
        struct ls_jit_map *map;

        (void)state;
        p.events = events;
        map = make_map(&p, NULL);
        assert_string_equal(at(map, 29), "11:11");
        assert_string_equal(at(map, 33), "11:11");
        ls_jit_map_free(map);
}

static const struct ls_jit_event side_events[] = {
        { .ref = 1, .function = 1, .depth = 1, .pos = 2, .line = 21 },
        { .ref = 2, .function = 2, .depth = 2, .pos = 4, .line = 30 },
        { .ref = 3, .function = 0, .depth = 0, .pos = 9, .line = 14 },
};

static const struct ls_jit_snapshot side_snapshot = {
        .ref = 1, .function = 1, .nframes = 1, .pos = 2, .line = 21
};

static struct parts side_parts(void)
{
        struct parts p = root_parts();

        p.head.number = 1;              /* as root_code stores it */
        p.head.root = 1;
        p.head.jit_id = 2;
        p.head.parent_id = 1;
        p.head.parent_exit = 1;
        p.head.nevents = 3;
        p.head.nsnapshots = 1;
        p.events = side_events;
        p.snapshots = &side_snapshot;
        return p;
}

static void side_trace(void **state)
{
        struct parts r = root_parts(), s = side_parts();
        struct ls_jit_map *root = make_map(&r, NULL), *side = make_map(&s, root);

        (void)state;
        assert_int_equal(ls_jit_map_is_approximate(side), 0);
        assert_string_equal(at(side, 12), "11:11 22:21");
        assert_string_equal(at(side, 29), "11:11 22:21 33:30");
        assert_string_equal(at(side, 33), "11:14");             /* it has returned */
        ls_jit_map_free(side);
        side = make_map(&s, NULL);
        assert_int_equal(ls_jit_map_is_approximate(side), LS_JIT_NO_PARENT);
        assert_string_equal(at(side, 12), "0:0 22:21");         /* the sample's own frame is
                                                                 * below */
        assert_string_equal(at(side, 33), "11:14");
        ls_jit_map_free(side);
        s.head.nevents = 0;             /* given up at once */
        side = make_map(&s, root);
        assert_int_equal(ls_jit_map_is_approximate(side), 0);
        assert_string_equal(at(side, 12), "11:11 22:21");
        ls_jit_map_free(side);
        s.head.parent_exit = 77;
        side = make_map(&s, root);
        assert_int_equal(ls_jit_map_is_approximate(side) & LS_JIT_NO_PARENT, LS_JIT_NO_PARENT);
        ls_jit_map_free(side);
        ls_jit_map_free(root);
}

static void without_events(void **state)
{
        struct parts p = root_parts();
        struct ls_jit_map *map;

        (void)state;
        p.head.flags = 0;
        map = make_map(&p, NULL);
        assert_int_equal(ls_jit_map_is_approximate(map), LS_JIT_NO_EVENTS);
        assert_string_equal(at(map, 5), "11:10");
        assert_string_equal(at(map, 35), "11:10 22:21");
        ls_jit_map_free(map);
        p.head.nevents = p.head.nsnapshots = p.head.nir = p.head.mcode_size = 0;
        map = make_map(&p, NULL);
        assert_int_equal(ls_jit_map_is_approximate(map), LS_JIT_NO_EVENTS);
        assert_string_equal(at(map, 5), "11:10");
        ls_jit_map_free(map);
        p.head.root = 7;                /* a side trace of which nothing is known */
        map = make_map(&p, NULL);
        assert_string_equal(at(map, 5), "");
        ls_jit_map_free(map);
}

/* 1 SLOAD, 2 MUL, 3 ADD, 4 LOOP, 5 MUL (of 2), 6 ADD (of 3): the copies get the lines of what they
 * are copied from. */
static void loop_copy(void **state)
{
        static const uint8_t code[] = {
                0x41, 0xc7, 0x86, 0x38, 0xf1, 0xff, 0xff, 1, 0, 0, 0, /* 0 */
                0xf2, 0x0f, 0x10, 0x42, 0x28, /* 11: movsd xmm0, [rdx+0x28] */
                0xf2, 0x0f, 0x59, 0xc1,       /* 16: mulsd xmm0, xmm1 */
                0xf2, 0x0f, 0x58, 0xc2,       /* 20: addsd xmm0, xmm2 */
                0xf2, 0x0f, 0x59, 0xc1,       /* 24: mulsd xmm0, xmm1 */
                0xf2, 0x0f, 0x58, 0xc2,       /* 28: addsd xmm0, xmm2 */
                0xe9, 0xf3, 0xff, 0xff, 0xff, /* 32: jmp 24 */
        };
        static const struct ls_jit_event events[] = {
                { .ref = 1, .function = 0, .pos = 5, .line = 10 },
                { .ref = 2, .function = 0, .pos = 6, .line = 11 },
                { .ref = 3, .function = 1, .depth = 1, .pos = 7, .line = 20 },
                { .ref = 4, .function = 0, .pos = 8, .line = 12 },
        };
        uint64_t irs[8] = { 0 };
        struct parts p = root_parts();
        struct ls_jit_map *map;
        uint32_t origin;

        (void)state;
        irs[1] = ir(1, 4, SLOAD, NUM, XMM(0));
        irs[2] = ir(0x8001, 0x7fff, MUL, NUM, XMM(0));
        irs[3] = ir(0x8002, 0x7ffe, ADD, NUM, XMM(0));
        irs[4] = ir(0, 0, LOOP, GUARD, NO_REG);
        irs[5] = ir(0x8003, 0x7fff, MUL, NUM, XMM(0));
        irs[6] = ir(0x8005, 0x7ffe, ADD, NUM, XMM(0));
        irs[7] = ir(0x8003, 0x8006, PHI, NUM, XMM(0));
        p.ir = irs;
        p.head.nir = 8;
        p.head.nsnapshots = 1;
        p.head.mcode_loop = 24;
        p.head.mcode_size = sizeof(code);
        p.code = code;
        p.events = events;
        map = make_map(&p, NULL);
        assert_int_equal(ls_jit_map_ref(map, 24, &origin), 5);
        assert_int_equal(origin, 2);
        assert_int_equal(ls_jit_map_ref(map, 28, &origin), 6);
        assert_int_equal(origin, 3);
        assert_string_equal(at(map, 16), "11:11");
        assert_string_equal(at(map, 25), "11:11");
        assert_string_equal(at(map, 28), "11:11 22:20");
        assert_string_equal(at(map, 32), "11:12");
        ls_jit_map_free(map);
}

/* Bytes that are no code: interpolated, and said so. */
static void no_code(void **state)
{
        uint8_t code[sizeof(root_code)];
        struct parts p = root_parts();
        struct ls_jit_map *map;

        (void)state;
        memset(code, 0x06, sizeof(code));
        p.code = code;
        map = make_map(&p, NULL);
        assert_true(ls_jit_map_is_approximate(map) & LS_JIT_NO_DISASSEMBLY);
        assert_string_equal(at(map, 41), "11:12");
        ls_jit_map_free(map);
}

static void damaged_records(void **state)
{
        struct parts p = root_parts();
        struct ls_jit_input in;
        size_t len, cut;
        uint8_t *blob = make_blob(&p, &len);
        struct ls_rec_jittrace *h = (struct ls_rec_jittrace *)blob;
        uint32_t *counts[] = { &h->nfunctions, &h->nevents, &h->nsnapshots, &h->nir,
                               &h->mcode_size };

        (void)state;
        assert_int_equal(ls_jit_input_parse(blob, len, &in), 0);
        for (cut = 0; cut < len - 7; cut++) {
                uint8_t *copy = malloc(cut + 1);        /* so that a sanitizer sees what reads
                                                         * behind it */

                memcpy(copy, blob, cut);
                assert_int_equal(ls_jit_input_parse(copy, cut, &in), -EINVAL);
                free(copy);
        }
        assert_int_equal(ls_jit_input_parse(blob + 4, len - 4, &in), -EINVAL);
        for (size_t k = 0; k < sizeof(counts) / sizeof(*counts); k++) {
                uint32_t was = *counts[k];

                for (uint32_t bit = 8; bit < 32; bit++) {
                        *counts[k] = was | 1u << bit;
                        assert_int_equal(ls_jit_input_parse(blob, len, &in), -EINVAL);
                }
                *counts[k] = was;
        }
        h->mcode_loop = h->mcode_size + 1;
        assert_int_equal(ls_jit_input_parse(blob, len, &in), -EINVAL);
        free(blob);
}

static uint32_t next(uint64_t *seed)
{
        *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
        return (uint32_t)(*seed >> 33);
}

/* Whatever the bytes say, every offset has an answer. */
static void random_records(void **state)
{
        struct parts r = root_parts(), s = side_parts();
        struct ls_jit_map *parent = make_map(&r, NULL);
        size_t len;
        uint8_t *good = make_blob(&s, &len), *blob = malloc(len);
        uint64_t seed = 1;
        unsigned made = 0;

        (void)state;
        for (unsigned round = 0; round < 20000; round++) {
                struct ls_jit_input in;
                struct ls_jit_map *map = NULL;

                memcpy(blob, good, len);
                for (unsigned k = next(&seed) % 12; k > 0; k--)
                        blob[next(&seed) % len] = (uint8_t)next(&seed);
                if (ls_jit_input_parse(blob, len, &in) < 0 ||
                    ls_jit_map_new(&in, irnames, sizeof(irnames) - 1, round & 1 ? parent : NULL,
                                   &map) < 0)
                        continue;
                made++;
                for (uint32_t o = 0; o < 64; o++) {
                        struct ls_jit_frame f[4];

                        assert_true(ls_jit_map_frames(map, o, f, 4) <= 300);
                }
                ls_jit_map_free(map);
        }
        assert_true(made > 1000);
        free(blob);
        free(good);
        ls_jit_map_free(parent);
}

static double seconds(void)
{
        struct timespec t;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* As large as a record may be, with nothing but guards, in one region, with and without a loop:
 * interpolated. */
static void large_records(void **state)
{
        struct parts p = root_parts();
        uint64_t *irs = calloc(0x8000, 8);
        uint8_t *code = malloc(200000);
        struct ls_jit_event *events = calloc(100000, sizeof(*events));
        struct ls_jit_snapshot *snapshots = calloc(0xffff, sizeof(*snapshots));

        (void)state;
        memset(code, 0x90, 200000);
        for (uint32_t k = 1; k < 0x8000; k++)
                irs[k] = ir((int)(0x8000 + k - 1), 0x7fff, LT, GUARD | NUM, NO_REG);
        for (uint32_t k = 0; k < 100000; k++)
                events[k] = (struct ls_jit_event){ .ref = (uint16_t)(k / 4),
                                                   .function = (uint16_t)(k % 3),
                                                   .line = k,
                                                   .depth = (uint16_t)k,
                                                   .pos = 1 };
        p.ir = irs;
        p.code = code;
        p.events = events;
        p.snapshots = snapshots;
        p.head.nir = 0x8000;
        p.head.mcode_size = 200000;
        p.head.nevents = 100000;
        p.head.nsnapshots = 1;
        for (int loop = 0; loop < 3; loop++) {
                double start = seconds();
                struct ls_jit_map *map;

                if (loop)
                        irs[0x4000] = ir(0, 0, LOOP, GUARD, NO_REG);
                p.head.nsnapshots = loop == 2 ? 0xffff : 1;
                p.head.mcode_loop = loop ? 100000 : 0;
                map = make_map(&p, NULL);
                assert_true(ls_jit_map_is_approximate(map) & LS_JIT_TOO_LARGE);
                assert_true(ls_jit_map_frames(map, 150000, NULL, 0) > 0);
                assert_true(seconds() - start < 5);
                ls_jit_map_free(map);
        }
        free(irs);
        free(code);
        free(events);
        free(snapshots);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(inlined_frames), cmocka_unit_test(vararg_header),
                cmocka_unit_test(odd_events),     cmocka_unit_test(side_trace),
                cmocka_unit_test(without_events), cmocka_unit_test(loop_copy),
                cmocka_unit_test(no_code),        cmocka_unit_test(damaged_records),
                cmocka_unit_test(random_records), cmocka_unit_test(large_records),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
