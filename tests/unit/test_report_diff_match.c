/* Which things of two recordings are the same: report/diff/match.c; which lines of two texts:
 * report/diff/lines.c. */
#include "report/diff/diff.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const enum ls_match_rule rules[LS_DIFF_PASSES] = { LS_MATCH_ALL, LS_MATCH_EQUAL,
                                                          LS_MATCH_ONE };

static void add(struct ls_match *m, const struct ls_match_item *items, uint32_t n,
                const uint32_t *want)
{
        uint32_t got[8];

        assert_int_equal(ls_match(m, items, n, rules, got), 0);
        for (uint32_t i = 0; i < n; i++)
                assert_int_equal(got[i], want[i]);
}

static void test_first(void **state)
{
        struct ls_match m = { .first = 1 };

        (void)state;
        /* things of one recording are different, whatever their keys are */
        add(&m, (struct ls_match_item[]){ { { 7 }, 0 }, { { 7 }, 0 }, { { 0 }, 0 } }, 3,
            (uint32_t[]){ 1, 2, 3 });
        add(&m, NULL, 0, NULL);
        assert_int_equal(m.n, 3);
        ls_match_done(&m);
}

static void test_surest_key_first(void **state)
{
        struct ls_match m = { .first = 0 };

        (void)state;
        add(&m, (struct ls_match_item[]){ { { 1, 9 }, 0 }, { { 2, 9 }, 1 } }, 2,
            (uint32_t[]){ 0, 1 });
        /* the second has key 2 for sure: only the first is left for key 9 of the less sure ones,
         * one to one */
        add(&m, (struct ls_match_item[]){ { { 3, 9 }, 0 }, { { 2, 9 }, 1 } }, 2,
            (uint32_t[]){ 0, 1 });
        /* it is known by its new key from now on, and no longer by the old one */
        add(&m, (struct ls_match_item[]){ { { 3 }, 0 } }, 1, (uint32_t[]){ 0 });
        add(&m, (struct ls_match_item[]){ { { 1 }, 0 } }, 1, (uint32_t[]){ 2 });
        ls_match_done(&m);
}

static void test_order(void **state)
{
        struct ls_match m = { .first = 0 };

        (void)state;
        add(&m, (struct ls_match_item[]){ { { 5 }, 30 }, { { 5 }, 10 } }, 2, (uint32_t[]){ 0, 1 });
        add(&m, (struct ls_match_item[]){ { { 5 }, 100 }, { { 5 }, 200 }, { { 5 }, 300 } }, 3,
            (uint32_t[]){ 1, 0, 2 });
        ls_match_done(&m);
}

static void test_rules(void **state)
{
        struct ls_match m = { .first = 0 };

        (void)state;
        add(&m, (struct ls_match_item[]){ { { 0, 4 }, 1 }, { { 0, 4 }, 2 }, { { 0, 0, 6 }, 0 } }, 3,
            (uint32_t[]){ 0, 1, 2 });
        /* one against two: not the same number; two against one: not one */
        add(&m, (struct ls_match_item[]){ { { 0, 4 }, 1 }, { { 0, 0, 6 }, 0 }, { { 0, 0, 6 }, 1 } },
            3, (uint32_t[]){ 3, 4, 5 });
        ls_match_done(&m);
        add(&m, (struct ls_match_item[]){ { { 0, 4 }, 1 }, { { 0, 4 }, 2 }, { { 0, 0, 6 }, 0 } }, 3,
            (uint32_t[]){ 0, 1, 2 });
        add(&m, (struct ls_match_item[]){ { { 0, 4 }, 8 }, { { 0, 4 }, 7 }, { { 0, 0, 6 }, 0 } }, 3,
            (uint32_t[]){ 1, 0, 2 });
        ls_match_done(&m);
}

static void test_keys(void **state)
{
        uint64_t key = ls_match_key(1, "name", 4);

        (void)state;
        assert_true(key && key == ls_match_key(1, "name", 4));
        assert_true(key != ls_match_key(2, "name", 4) && key != ls_match_key(1, "nam", 3));
        assert_true(ls_match_key(0, "", 0) != 0);
}

/* Texts as strings of lines that are a letter each. want: the place in b of each line of a, from 1;
 * - = nowhere. */
static void check_lines(const char *a, const char *b, const char *want)
{
        struct ls_str lines[2][32];
        uint32_t got[32], n[2] = { (uint32_t)strlen(a), (uint32_t)strlen(b) };

        for (uint32_t i = 0; i < 32; i++) {
                lines[0][i] = (struct ls_str){ i < n[0] ? a + i : "", 1 };
                lines[1][i] = (struct ls_str){ i < n[1] ? b + i : "", 1 };
        }
        assert_int_equal(ls_lines_map(lines[0], n[0], lines[1], n[1], got), 0);
        for (uint32_t i = 0; i < n[0]; i++)
                assert_int_equal(got[i], want[i] == '-' ? 0 : want[i] - '0');
}

static void test_lines(void **state)
{
        (void)state;
        check_lines("abcd", "abcd", "1234");
        check_lines("abcd", "xyabcd", "3456");          /* added above */
        check_lines("abcd", "abxcd", "1245");           /* and between */
        check_lines("abcd", "acd", "1-23");             /* removed */
        check_lines("abcd", "aXcd", "1234");            /* edited: the neighbours say which it is */
        check_lines("abcd", "aXYcd", "1-45");           /* two for one: nobody knows which */
        check_lines("aeeeb", "xaeeeb", "23456");        /* lines that are there many times */
        check_lines("eaebe", "eaeebe", "12356");
        check_lines("abc", "cab", "23-");               /* moved: the most that keep their order
                                                         * stay */
        check_lines("eee", "ee", "12-");
        check_lines("", "abc", "");
        check_lines("abc", "", "---");
        check_lines("abc", "xyz", "123");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_first), cmocka_unit_test(test_surest_key_first),
                cmocka_unit_test(test_order), cmocka_unit_test(test_rules),
                cmocka_unit_test(test_keys),  cmocka_unit_test(test_lines),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
