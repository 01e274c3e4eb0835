/* What is merged of a store, and what a merged chunk hides. */
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define N(a) (sizeof(a) / sizeof(*(a)))

static struct ls_chunk made(const char *service, uint64_t begin, uint64_t end, uint32_t pid,
                            uint32_t level)
{
        struct ls_chunk c = { .begin_ms = begin, .end_ms = end, .pid = pid, .level = level };

        strcpy(c.service, service);
        ls_chunk_name(&c);
        return c;
}

static struct ls_chunks list(const struct ls_chunk *v, size_t n)
{
        struct ls_chunks all = { .v = malloc((n + 1) * sizeof(*v)), .n = n, .room = n };

        memcpy(all.v, v, n * sizeof(*v));
        return all;
}

static void test_hides(void **state)
{
        const struct ls_chunk v[] = {
                made("a", 0, 600, 0, 1),        /* merged */
                made("a", 0, 60, 5, 0),         /* was merged */
                made("a", 599, 700, 5, 0),      /* began in the time: was merged */
                made("a", 600, 700, 5, 0),      /* began behind it */
                made("a", 100, 160, 6, 1),      /* came late */
                made("b", 100, 160, 6, 0),      /* another service's */
        };
        struct ls_chunks all = list(v, N(v)), hidden;

        (void)state;
        assert_int_equal(ls_store_hide(&all, &hidden), 0);
        assert_int_equal(hidden.n, 2);
        assert_string_equal(hidden.v[0].name, v[1].name);
        assert_string_equal(hidden.v[1].name, v[2].name);
        assert_int_equal(all.n, 4);
        assert_string_equal(all.v[2].name, v[4].name);
        ls_chunks_done(&all);
        ls_chunks_done(&hidden);
}

/* A late chunk of one process, of level 1 as it came late, hides nothing of the others. */
static void test_late_hides_nothing(void **state)
{
        const struct ls_chunk v[] = { made("a", 100, 900, 6, 1), made("a", 700, 760, 5, 0) };
        struct ls_chunks all = list(v, N(v));

        (void)state;
        assert_int_equal(ls_store_hide(&all, NULL), 0);
        assert_int_equal(all.n, 2);
        ls_chunks_done(&all);
}

static void test_level(void **state)
{
        const struct ls_chunk v[] = { made("a", 0, 600, 0, 1), made("a", 0, 7200, 0, 2),
                                      made("a", 7200, 7800, 0, 1) };
        struct ls_chunks all = list(v, N(v));
        struct ls_chunk c = made("a", 100, 160, 5, 0);

        (void)state;
        assert_int_equal(ls_store_level(&all, &c), 2);
        c = made("a", 7300, 7400, 5, 0);
        assert_int_equal(ls_store_level(&all, &c), 1);
        c = made("a", 7800, 7900, 5, 0);
        assert_int_equal(ls_store_level(&all, &c), 0);
        c = made("b", 100, 160, 5, 0);
        assert_int_equal(ls_store_level(&all, &c), 0);
        ls_chunks_done(&all);
}

static int skip_first(void *ctx, const struct ls_window *w)
{
        return ctx && w->begin_ms == 0;
}

static void test_windows(void **state)
{
        const struct ls_chunk v[] = {
                made("a", 10, 70, 5, 0),
                made("a", 590, 650, 5, 0), /* [0, 600) */
                made("a", 600, 660, 5, 0), /* alone in its time */
                made("a", 1200, 1800, 0, 1),
                made("a", 1300, 1310, 5, 0), /* one is of the level already */
                made("a", 2400, 2460, 5, 0),
                made("a", 2460, 2500, 5, 0),
                made("b", 2400, 2460, 5, 0),
        };
        struct ls_chunks all = list(v, N(v));
        struct ls_window w;
        int yes = 1;

        (void)state;
        assert_int_equal(ls_window_find(&all, 1, 600, 100000, skip_first, NULL, &w), 1);
        assert_int_equal(w.begin_ms, 0);
        assert_int_equal(w.end_ms, 600);
        assert_true(ls_window_has(&w, &v[1]));
        assert_false(ls_window_has(&w, &v[2]));
        assert_int_equal(ls_window_find(&all, 1, 600, 100000, skip_first, &yes, &w), 1);
        assert_int_equal(w.begin_ms, 2400);
        assert_false(ls_window_has(&w, &v[7]));
        assert_int_equal(ls_window_find(&all, 1, 600, 3000, skip_first, &yes, &w),
                         0); /* not over yet */
        assert_int_equal(ls_window_find(&all, 2, 3000, 100000, skip_first, NULL, &w), 1);
        assert_true(ls_window_has(&w, &v[3]));
        ls_chunks_done(&all);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_hides),
                cmocka_unit_test(test_late_hides_nothing),
                cmocka_unit_test(test_level),
                cmocka_unit_test(test_windows),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
