/* The tests of luasample diff against values of scipy 1.10 (scipy.stats: norm, t, ttest_ind,
 * mannwhitneyu, chi2_contingency with Yates' correction); those of ls_test_rates and ls_adjust by
 * their formulas. */
#include "report/diff/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define NEAR(got, want) assert_true(fabs((got) - (want)) <= 1e-9 * (want) + 1e-16)

static void test_normal(void **state)
{
        (void)state;
        NEAR(ls_normal_tails(0.5), 0.617075077452);
        NEAR(ls_normal_tails(-0.5), 0.617075077452);
        NEAR(ls_normal_tails(1.959964), 0.0499999981929);
        NEAR(ls_normal_tails(3.3), 0.000966848284768);
        NEAR(ls_normal_tails(8), 1.24419211485e-15);
        NEAR(ls_normal_tails(0), 1);
        NEAR(ls_normal_tails(NAN), 1);
}

static void test_student(void **state)
{
        static const struct { double t, df, p;
        } known[] = {
                { 2.0, 3.5, 0.126138522576 },
                { 0.1, 1, 0.936548965139 },
                { 12.7062047, 1, 0.0500000001418 },
                { 5.5, 8, 0.000573744445946 },
                { -5.5, 8, 0.000573744445946 },
                { 2.1, 120.7, 0.0378112104424 },
                { 30, 4, 7.35285609766e-06 },
                { 0.0001, 7, 0.99992300171 },
                { 0, 3, 1 },
                { 2, 0, 1 },
                { NAN, 4, 1 },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
                assert_true(fabs(ls_student_tails(known[i].t, known[i].df) - known[i].p) <=
                            1e-8 * known[i].p + 1e-13);
        NEAR(ls_student_tails(1.959964, 1e9), ls_normal_tails(1.959964));
        assert_true(fabs(ls_student_tails(1.959964, 9e5) - ls_normal_tails(1.959964)) < 1e-6);
}

static const double a[] = { 27.1, 26.8, 27.9, 28.3, 27.0 }, b[] = { 29.2, 28.8, 30.1, 29.9 };
static const double a2[] = { 0.11, 0.14, 0.09, 0.12 }, b2[] = { 0.13, 0.10, 0.16, 0.12, 0.15 };

static void test_welch(void **state)
{
        static const double flat[] = { 1, 1, 1 }, other[] = { 2, 2 };

        (void)state;
        NEAR(ls_test_welch(a, 5, 0, b, 4, 0), 0.00179693210431);
        NEAR(ls_test_welch(b, 4, 0, a, 5, 0), 0.00179693210431);
        NEAR(ls_test_welch(a2, 4, 0, b2, 5, 0), 0.292249610192);
        /* one value on a side says nothing of how values vary; values that never vary differ when
         * they differ */
        NEAR(ls_test_welch(a, 1, 0, b, 4, 0), 1);
        NEAR(ls_test_welch(flat, 3, 0, flat, 2, 0), 1);
        NEAR(ls_test_welch(flat, 3, 0, other, 2, 0), 0);
        /* variance that must be there makes a difference less sure, unless the values vary more
         * themselves */
        assert_true(ls_test_welch(flat, 3, 0.5, other, 2, 0.5) > 0.1);
        assert_true(ls_test_welch(a, 5, 4, b, 4, 4) > 0.05);
        NEAR(ls_test_welch(a, 5, 1e-9, b, 4, 1e-9), 0.00179693210431);
}

static void test_mann_whitney(void **state)
{
        static const double c[] = { 1.5, 3.5, 7.1, 9.9, 2.2 },
                            d[] = { 4.4, 8.8, 3.9, 10.5, 11.0, 12.2 };
        double e[15], f[14];

        (void)state;
        NEAR(ls_test_mann_whitney(a, 5, b, 4), 1 / 63.0);       /* 2 of 126 orders */
        NEAR(ls_test_mann_whitney(b, 4, a, 5), 1 / 63.0);
        NEAR(ls_test_mann_whitney(c, 5, d, 6), 0.0822510822510822511);
        NEAR(ls_test_mann_whitney(a2, 4, b2, 5), 0.325162680378);       /* with ties */
        for (int i = 0; i < 15; i++)
                e[i] = i * 1.01;
        for (int i = 0; i < 14; i++)
                f[i] = i * 1.03 + 4.005;
        NEAR(ls_test_mann_whitney(e, 15, f, 14), 0.0381657694588);      /* too many to count */
        NEAR(ls_test_mann_whitney(e, 10, f, 10), ls_test_mann_whitney(f, 10, e, 10));
        NEAR(ls_test_mann_whitney(e, 1, f, 1), 1);
        NEAR(ls_test_mann_whitney(e, 0, f, 3), 1);
        for (int i = 0; i < 15; i++)
                e[i] = 1;
        NEAR(ls_test_mann_whitney(e, 7, e, 8), 1);
}

static void test_counts(void **state)
{
        (void)state;
        NEAR(ls_test_shares(120, 1000, 165, 1100), 0.0522594227361);
        NEAR(ls_test_shares(165, 1100, 120, 1000), 0.0522594227361);
        NEAR(ls_test_shares(3, 40, 9, 38), 0.095668901916);
        NEAR(ls_test_shares(0, 40, 0, 38), 1);
        NEAR(ls_test_shares(40, 40, 38, 38), 1);
        NEAR(ls_test_shares(0, 0, 3, 38), 1);
        NEAR(ls_test_rates(150, 1, 200, 1), 0.00881465490421);
        NEAR(ls_test_rates(90, 2, 70, 1), 0.00670336202178);
        NEAR(ls_test_rates(0, 1, 0, 1), 1);
        NEAR(ls_test_rates(5, 0, 5, 1), 1);
        NEAR(ls_test_rates(100, 2, 50, 1), 1);
}

static void test_adjust(void **state)
{
        static const double p[] = { 0.001, 0.04, 0.03, 0.8, 0.012, 0.2 },
                            want[] = { 0.006, 0.06, 0.06, 0.8, 0.036, 0.24 };
        double q[6], all[3] = { 1, 1, 1 };

        (void)state;
        assert_int_equal(ls_adjust(p, 6, q), 0);
        for (int i = 0; i < 6; i++)
                NEAR(q[i], want[i]);
        assert_int_equal(ls_adjust(all, 3, q), 0);
        NEAR(q[2], 1);
        assert_int_equal(ls_adjust(all, 0, q), 0);
}

/* Of counts that come from one distribution no more than 5 % may be said to differ at 5 %: all
 * outcomes of two throws. */
static void test_false_alarms(void **state)
{
        enum { N = 60 };
        double chance[N + 1], alarms = 0;

        (void)state;
        for (int k = 0; k <= N; k++)
                chance[k] = exp(lgamma(N + 1) - lgamma(k + 1) - lgamma(N - k + 1) + k * log(0.2) +
                                (N - k) * log(0.8));
        for (int i = 0; i <= N; i++)
                for (int k = 0; k <= N; k++)
                        alarms += ls_test_shares(i, N, k, N) <= 0.05 ? chance[i] * chance[k] : 0;
        assert_true(alarms <= 0.05 && alarms > 0.01);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_normal),       cmocka_unit_test(test_student),
                cmocka_unit_test(test_welch),        cmocka_unit_test(test_mann_whitney),
                cmocka_unit_test(test_counts),       cmocka_unit_test(test_adjust),
                cmocka_unit_test(test_false_alarms),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
