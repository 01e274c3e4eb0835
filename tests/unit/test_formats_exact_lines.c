/* Entries of lines (formats/exact/lines.c): of functions whose bytecodes and counts are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "formats/exact/lines.h"

enum { FORI = 77, FORL = FORI + 2, JMP = FORI + 11, FUNCF = FORI + 12, RET0 = FORI - 2, CALL = FORI - 11, ISLT = 0, MOV = 18 };
#define INS(op, d) ((uint32_t)(op) | (uint32_t)(d) << 16)
#define TO(from, to) (0x8000 + (to) - (from) - 1)

struct known { const uint32_t *lines, *code; uint64_t *counts; uint32_t n; };

static void check(const struct known *k, const struct ls_exact_line *want, size_t n_want)
{
        struct ls_exact_proto rec = { .n = k->n, .op_fori = FORI };
        struct ls_flow_proto p = { .rec = &rec, .lines = k->lines, .code = k->code, .counts = k->counts };
        struct ls_exact_line *lines;
        size_t n;

        assert_int_equal(ls_exact_lines(&p, &lines, &n), 0);
        assert_int_equal(n, n_want);
        for (size_t i = 0; i < n; i++) {
                assert_int_equal(lines[i].line, want[i].line);
                assert_int_equal(lines[i].entered, want[i].entered);
                assert_int_equal(lines[i].instructions, want[i].instructions);
        }
        free(lines);
}

/* for 1: a loop of ten on line 2, whose body is on line 3, and a call that fails once of them. */
static void a_loop(void **state)
{
        static const uint32_t code[] = { INS(FUNCF, 0), INS(MOV, 0), INS(FORI, TO(2, 5)), INS(CALL, 0), INS(FORL, TO(4, 3)), INS(RET0, 1) };
        static const uint32_t lines[] = { 1, 1, 2, 3, 2, 4 };
        uint64_t counts[] = { 1, 1, 1, 10, 9, 0 };
        static const struct ls_exact_line want[] = { { 1, 1, 1 }, { 2, 10, 10 }, { 3, 10, 10 }, { 4, 0, 0 } };

        (void)state;
        check(&(struct known){ lines, code, counts, 6 }, want, 4);
}

/* if: seven go on to line 2, three jump to line 3, where all come together. What cannot be reached
 * is no line. */
static void a_branch(void **state)
{
        static const uint32_t code[] = { INS(FUNCF, 0), INS(ISLT, 0), INS(JMP, TO(2, 4)), INS(MOV, 0), INS(MOV, 0), INS(RET0, 1), INS(RET0, 1) };
        static const uint32_t lines[] = { 1, 1, 1, 2, 3, 3, 9 };
        uint64_t counts[] = { 10, 10, 0, 7, 10, 10, 0 };
        static const struct ls_exact_line want[] = { { 1, 10, 10 }, { 2, 7, 7 }, { 3, 10, 20 } };

        (void)state;
        check(&(struct known){ lines, code, counts, 7 }, want, 3);
}

/* All on one line: each time that it jumps back is one. */
static void a_loop_on_one_line(void **state)
{
        static const uint32_t code[] = { INS(FUNCF, 0), INS(FORI, TO(1, 4)), INS(MOV, 0), INS(FORL, TO(3, 2)), INS(RET0, 1) };
        static const uint32_t lines[] = { 1, 1, 1, 1, 1 };
        uint64_t counts[] = { 1, 1, 10, 10, 1 };
        static const struct ls_exact_line want[] = { { 1, 10, 22 } };

        (void)state;
        check(&(struct known){ lines, code, counts, 5 }, want, 1);
}

/* Bytecode of a hostile process: jumps lead nowhere, and counts say what cannot be. */
static void what_cannot_be(void **state)
{
        static const uint32_t code[] = { INS(ISLT, 0), INS(JMP, 0xffff), INS(FORL, 0), INS(ISLT, 0) };
        static const uint32_t lines[] = { UINT32_MAX, 0, 5, 5 };
        uint64_t counts[] = { UINT64_MAX, UINT64_MAX, 3, UINT64_MAX };
        struct ls_exact_proto rec = { .n = 4, .op_fori = FORI };
        struct ls_flow_proto p = { .rec = &rec, .lines = lines, .code = code, .counts = counts };
        struct ls_exact_line *ret;
        size_t n;

        (void)state;
        assert_int_equal(ls_exact_lines(&p, &ret, &n), 0);
        free(ret);
        rec.n = 0;
        assert_int_equal(ls_exact_lines(&p, &ret, &n), 0);
        assert_int_equal(n, 0);
        free(ret);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_loop), cmocka_unit_test(a_branch), cmocka_unit_test(a_loop_on_one_line),
                cmocka_unit_test(what_cannot_be),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
