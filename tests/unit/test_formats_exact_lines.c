/* Entries of lines (formats/exact/lines.c): of functions whose bytecodes and counts are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "formats/exact/lines.h"

enum { FORI = 77, ITERN = FORI - 7, ISNEXT = FORI - 5, ITERL = FORI + 5, FORL = FORI + 2,
       JMP = FORI + 11, FUNCF = FORI + 12, RET0 = FORI - 2, CALL = FORI - 11, ISLT = 0, MOV = 18 };
#define INS(op, d) ((uint32_t)(op) | (uint32_t)(d) << 16)
#define TO(from, to) (0x8000 + (to) - (from) - 1)

struct known { const uint32_t *lines, *code; uint64_t *counts; uint32_t n; };

static void check(const struct known *k, const struct ls_exact_line *want, size_t n_want)
{
        struct ls_exact_proto rec = { .n = k->n, .op_fori = FORI };
        struct ls_flow_proto p = {
                .rec = &rec, .lines = k->lines, .code = k->code, .counts = k->counts
        };
        struct ls_exact_solved s;

        assert_int_equal(ls_exact_solve(&p, &s), 0);
        assert_int_equal(s.n_lines, n_want);
        for (size_t i = 0; i < s.n_lines; i++) {
                assert_int_equal(s.lines[i].line, want[i].line);
                assert_int_equal(s.lines[i].entered, want[i].entered);
                assert_int_equal(s.lines[i].instructions, want[i].instructions);
        }
        ls_exact_solved_done(&s);
}

/* for 1: a loop of ten on line 2, whose body is on line 3, and a call that fails once of them. */
static void a_loop(void **state)
{
        static const uint32_t code[] = { INS(FUNCF, 0), INS(MOV, 0),         INS(FORI, TO(2, 5)),
                                         INS(CALL, 0),  INS(FORL, TO(4, 3)), INS(RET0, 1) };
        static const uint32_t lines[] = { 1, 1, 2, 3, 2, 4 };
        uint64_t counts[] = { 1, 1, 1, 10, 9, 0 };
        static const struct ls_exact_line want[] = {
                { 1, 1, 1 }, { 2, 10, 10 }, { 3, 10, 10 }, { 4, 0, 0 }
        };

        (void)state;
        check(&(struct known){ lines, code, counts, 6 }, want, 4);
}

/* Two loops of ten after each other: the first may be left by either of two edges. */
static void a_loop_behind_a_loop(void **state)
{
        static const uint32_t code[] = { INS(FUNCF, 0), INS(FORI, TO(1, 4)), INS(MOV, 0),
                                         INS(FORL, TO(3, 2)), INS(MOV, 0), INS(FORI, TO(5, 8)),
                                         INS(MOV, 0), INS(FORL, TO(7, 6)), INS(RET0, 1) };
        static const uint32_t lines[] = { 1, 1, 2, 1, 3, 3, 4, 3, 5 };
        uint64_t counts[] = { 1, 1, 10, 10, 1, 1, 10, 10, 1 };
        static const struct ls_exact_line want[] = { { 1, 11, 11 }, { 2, 10, 10 }, { 3, 11, 12 },
                                                     { 4, 10, 10 }, { 5, 1, 1 } };

        (void)state;
        check(&(struct known){ lines, code, counts, 9 }, want, 5);
}

/* if: seven go on to line 2, three jump to line 3, where all come together. What cannot be reached
 * is no line. */
static void a_branch(void **state)
{
        static const uint32_t code[] = { INS(FUNCF, 0), INS(ISLT, 0), INS(JMP, TO(2, 4)),
                                         INS(MOV, 0),   INS(MOV, 0),  INS(RET0, 1),
                                         INS(RET0, 1) };
        static const uint32_t lines[] = { 1, 1, 1, 2, 3, 3, 9 };
        uint64_t counts[] = { 10, 10, 0, 7, 10, 10, 0 };
        static const struct ls_exact_line want[] = { { 1, 10, 10 }, { 2, 7, 7 }, { 3, 10, 20 } };

        (void)state;
        check(&(struct known){ lines, code, counts, 7 }, want, 3);
}

/* All on one line: each time that it jumps back is one. */
static void a_loop_on_one_line(void **state)
{
        static const uint32_t code[] = { INS(FUNCF, 0), INS(FORI, TO(1, 4)), INS(MOV, 0),
                                         INS(FORL, TO(3, 2)), INS(RET0, 1) };
        static const uint32_t lines[] = { 1, 1, 1, 1, 1 };
        uint64_t counts[] = { 1, 1, 10, 10, 1 };
        static const struct ls_exact_line want[] = { { 1, 10, 22 } };

        (void)state;
        check(&(struct known){ lines, code, counts, 5 }, want, 1);
}

static void check_arms(const struct known *k, const struct ls_exact_arm *want, size_t n_want,
                       size_t unknown)
{
        struct ls_exact_proto rec = { .n = k->n, .op_fori = FORI };
        struct ls_flow_proto p = { .rec = &rec, .lines = k->lines, .code = k->code,
                                   .counts = k->counts };
        struct ls_exact_solved s;

        assert_int_equal(ls_exact_solve(&p, &s), 0);
        assert_int_equal(s.n_arms, n_want);
        assert_int_equal(s.unknown, unknown);
        for (size_t i = 0; i < s.n_arms; i++) {
                assert_int_equal(s.arms[i].pos, want[i].pos);
                assert_int_equal(s.arms[i].line, want[i].line);
                assert_int_equal(s.arms[i].jumps, want[i].jumps);
                assert_int_equal(s.arms[i].times, want[i].times);
        }
        ls_exact_solved_done(&s);
}

/* if: seven of ten. A loop over numbers is none. */
static void arms(void **state)
{
        static const uint32_t code[] = { INS(FUNCF, 0), INS(ISLT, 0), INS(JMP, TO(2, 4)),
                                         INS(MOV, 0),
                                         INS(FORI, TO(4, 7)), INS(MOV, 0), INS(FORL,
                                                                               TO(6, 5)), INS(RET0,
                                                                                              1) };
        static const uint32_t lines[] = { 1, 1, 1, 2, 3, 4, 3, 5 };
        uint64_t counts[] = { 10, 10, 0, 7, 10, 50, 50, 10 };
        static const struct ls_exact_arm want[] = { { 1, 1, 0, 7 }, { 1, 1, 1, 3 } };

        (void)state;
        check_arms(&(struct known){ lines, code, counts, 8 }, want, 2, 0);
}

/* An iterator that gives three: ITERN takes the ways of the ITERL behind it. */
static void arms_of_an_iterator(void **state)
{
        static const uint32_t code[] = { INS(FUNCF, 0), INS(ISNEXT, TO(1, 3)), INS(MOV, 0),
                                         INS(ITERN, 0), INS(ITERL, TO(4, 2)), INS(RET0, 1) };
        static const uint32_t lines[] = { 1, 1, 2, 1, 1, 3 };
        uint64_t counts[] = { 1, 1, 3, 4, 0, 1 };
        static const struct ls_exact_arm want[] = { { 4, 1, 0, 1 }, { 4, 1, 1, 3 } };

        (void)state;
        check_arms(&(struct known){ lines, code, counts, 6 }, want, 2, 0);
}

/* A jump back to where the first one goes on: five that come in leave it again; of none nothing is
 * taken. */
static void arms_with_a_jump_back(void **state)
{
        static const uint32_t code[] = { INS(FUNCF, 0), INS(ISLT, 0), INS(JMP, TO(2, 4)),
                                         INS(MOV, 0),
                                         INS(ISLT, 0), INS(JMP, TO(5, 3)), INS(FORI, TO(6, 9)),
                                         INS(MOV, 0), INS(FORL, TO(8, 7)), INS(RET0, 1) };
        static const uint32_t lines[] = { 1, 1, 1, 2, 3, 3, 4, 4, 4, 4 };
        uint64_t counts[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
        uint64_t some[] = { 5, 5, 0, 9, 12, 0, 5, 5, 5, 5 };
        static const struct ls_exact_arm want[] = { { 1, 1, 0, 0 }, { 1, 1, 1, 0 }, { 4, 3, 0, 0 },
                                                    { 4, 3, 1, 0 } };

        (void)state;
        check_arms(&(struct known){ lines, code, some, 10 },
                   (const struct ls_exact_arm[]){ { 1, 1, 0, 2 }, { 1, 1, 1, 3 }, { 4, 3, 0, 5 },
                                                  { 4, 3, 1, 7 } }, 4, 0);
        check_arms(&(struct known){ lines, code, counts, 10 }, want, 4, 0);
}

/* Bytecode of a hostile process: jumps lead nowhere, and counts say what cannot be. */
static void what_cannot_be(void **state)
{
        static const uint32_t code[] = { INS(ISLT, 0), INS(JMP, 0xffff), INS(FORL, 0),
                                         INS(ISLT, 0) };
        static const uint32_t lines[] = { UINT32_MAX, 0, 5, 5 };
        uint64_t counts[] = { UINT64_MAX, UINT64_MAX, 3, UINT64_MAX };
        struct ls_exact_proto rec = { .n = 4, .op_fori = FORI };
        struct ls_flow_proto p = { .rec = &rec, .lines = lines, .code = code, .counts = counts };
        struct ls_exact_solved s;

        (void)state;
        assert_int_equal(ls_exact_solve(&p, &s), 0);
        ls_exact_solved_done(&s);
        rec.n = 0;
        assert_int_equal(ls_exact_solve(&p, &s), 0);
        assert_int_equal(s.n_lines + s.n_arms, 0);
        ls_exact_solved_done(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_loop),
                cmocka_unit_test(a_branch),
                cmocka_unit_test(a_loop_on_one_line),
                cmocka_unit_test(what_cannot_be),
                cmocka_unit_test(a_loop_behind_a_loop),
                cmocka_unit_test(arms),
                cmocka_unit_test(arms_of_an_iterator),
                cmocka_unit_test(arms_with_a_jump_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
