/* Which things of two recordings are the same: report/diff_match.c. */
#include "report/diff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const enum ls_match_rule rules[LS_DIFF_PASSES] = { LS_MATCH_ALL, LS_MATCH_EQUAL, LS_MATCH_ONE };

static void add(struct ls_match *m, const struct ls_match_item *items, uint32_t n, const uint32_t *want)
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
        add(&m, (struct ls_match_item[]){ { { 7 }, 0 }, { { 7 }, 0 }, { { 0 }, 0 } }, 3, (uint32_t[]){ 1, 2, 3 });
        add(&m, NULL, 0, NULL);
        assert_int_equal(m.n, 3);
        ls_match_done(&m);
}

static void test_surest_key_first(void **state)
{
        struct ls_match m = { .first = 0 };

        (void)state;
        add(&m, (struct ls_match_item[]){ { { 1, 9 }, 0 }, { { 2, 9 }, 1 } }, 2, (uint32_t[]){ 0, 1 });
        /* the second has key 2 for sure: only the first is left for key 9 of the less sure ones, one to one */
        add(&m, (struct ls_match_item[]){ { { 3, 9 }, 0 }, { { 2, 9 }, 1 } }, 2, (uint32_t[]){ 0, 1 });
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
        add(&m, (struct ls_match_item[]){ { { 5 }, 100 }, { { 5 }, 200 }, { { 5 }, 300 } }, 3, (uint32_t[]){ 1, 0, 2 });
        ls_match_done(&m);
}

static void test_rules(void **state)
{
        struct ls_match m = { .first = 0 };

        (void)state;
        add(&m, (struct ls_match_item[]){ { { 0, 4 }, 1 }, { { 0, 4 }, 2 }, { { 0, 0, 6 }, 0 } }, 3,
            (uint32_t[]){ 0, 1, 2 });
        /* one against two: not the same number; two against one: not one */
        add(&m, (struct ls_match_item[]){ { { 0, 4 }, 1 }, { { 0, 0, 6 }, 0 }, { { 0, 0, 6 }, 1 } }, 3,
            (uint32_t[]){ 3, 4, 5 });
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_first), cmocka_unit_test(test_surest_key_first), cmocka_unit_test(test_order),
                cmocka_unit_test(test_rules), cmocka_unit_test(test_keys),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
