/* Tests of luasample diff. The tails of the distributions come from libm's erfc and lgamma; for
 * Student's t the incomplete beta function is summed up as a continued fraction. libgsl has all of
 * this, under a licence that ours cannot take. */
#include "report/diff/stats.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#define EXACT_MAX 20                    /* values of both sides for which all orders are counted */

static double chance(double p)
{
        return p >= 0 && p < 1 ? p : 1; /* NaN too */
}

double ls_normal_tails(double z)
{
        return chance(erfc(fabs(z) / M_SQRT2));
}

/* The continued fraction of the incomplete beta function, evaluated from the front (Lentz). */
static double beta_fraction(double x, double a, double b)
{
        const double tiny = 1e-300;
        double c = 1, d = 1 - (a + b) * x / (a + 1), f;

        d = 1 / (fabs(d) < tiny ? tiny : d);
        f = d;
        for (int m = 1; m < 500; m++) {
                double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
                double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), step;

                d = 1 + even * d;
                c = 1 + even / c;
                d = 1 / (fabs(d) < tiny ? tiny : d);
                c = fabs(c) < tiny ? tiny : c;
                f *= d * c;
                d = 1 + odd * d;
                c = 1 + odd / c;
                d = 1 / (fabs(d) < tiny ? tiny : d);
                c = fabs(c) < tiny ? tiny : c;
                step = d * c;
                f *= step;
                if (fabs(step - 1) < 1e-14)
                        break;
        }
        return f;
}

/* The regularized incomplete beta function I_x(a, b); y is 1 - x, exact also where x is next to
 * 1. */
static double incomplete_beta(double x, double y, double a, double b)
{
        double front;

        if (x <= 0)
                return 0;
        if (y <= 0)
                return 1;
        front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(y));
        if (x < (a + 1) / (a + b + 2))
                return front * beta_fraction(x, a, b) / a;
        return 1 - front * beta_fraction(y, b, a) / b;
}

double ls_student_tails(double t, double df)
{
        if (!(df > 0))
                return 1;
        if (df > 1e6)                   /* where lgamma's difference of large numbers would be
                                         * worse */
                return ls_normal_tails(t);
        return chance(incomplete_beta(df / (df + t * t), t * t / (df + t * t), df / 2, 0.5));
}

double ls_test_shares(double x1, double n1, double x2, double n2)
{
        double p = (x1 + x2) / (n1 + n2), distance, deviation;

        if (!(n1 > 0 && n2 > 0))
                return 1;
        deviation = sqrt(p * (1 - p) * (1 / n1 + 1 / n2));
        distance = fabs(x1 / n1 - x2 / n2) - (1 / n1 + 1 / n2) / 2;
        return distance > 0 && deviation > 0 ? ls_normal_tails(distance / deviation) : 1;
}

double ls_test_rates(double x1, double exposure1, double x2, double exposure2)
{
        double n = x1 + x2, p = exposure1 / (exposure1 + exposure2), deviation, distance;

        if (!(n > 0 && exposure1 > 0 && exposure2 > 0))
                return 1;
        deviation = sqrt(n * p * (1 - p));
        distance = fabs(x1 - n * p) - 0.5;
        return distance > 0 && deviation > 0 ? ls_normal_tails(distance / deviation) : 1;
}

static double mean_of(const double *v, size_t n)
{
        double sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += v[i];
        return n ? sum / (double)n : 0;
}

static double variance_of(const double *v, size_t n, double mean)
{
        double sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += (v[i] - mean) * (v[i] - mean);
        return n > 1 ? sum / (double)(n - 1) : 0;
}

double ls_test_welch(const double *a, size_t n1, double floor1, const double *b, size_t n2,
                     double floor2)
{
        double mean1 = mean_of(a, n1), mean2 = mean_of(b, n2), v1, v2, sum, df;

        if (n1 < 2 || n2 < 2)
                return 1;
        v1 = fmax(variance_of(a, n1, mean1), floor1) / (double)n1;
        v2 = fmax(variance_of(b, n2, mean2), floor2) / (double)n2;
        sum = v1 + v2;
        if (!(sum > 0))                 /* no value varies at all */
                return mean1 != mean2 ? 0 : 1;
        df = sum * sum / (v1 * v1 / (double)(n1 - 1) + v2 * v2 / (double)(n2 - 1));
        return ls_student_tails((mean1 - mean2) / sqrt(sum), df);
}

struct ranked { double value; int side; };

static int by_value(const void *x, const void *y)
{
        const struct ranked *a = x, *b = y;

        return a->value < b->value ? -1 : a->value > b->value;
}

/* Ways to choose n1 of the ranks 1 .. n with each sum of U, counted one rank after the other. */
static double exact_tails(size_t n1, size_t n2, double u)
{
        double ways[EXACT_MAX / 2 + 1][EXACT_MAX * EXACT_MAX / 4 + 1] = { { 0 } }, all = 0,
                                                                   tail = 0;
        size_t most = n1 * n2, few = n1 < n2 ? n1 : n2;

        ways[0][0] = 1;
        for (size_t rank = 0; rank < n1 + n2; rank++)
                for (size_t taken = few < rank + 1 ? few : rank + 1; taken > 0; taken--)
                        for (size_t sum = rank - (taken - 1); sum <= most; sum++)
                                ways[taken][sum] += ways[taken - 1][sum - (rank - (taken - 1))];
        for (size_t sum = 0; sum <= most; sum++) {
                all += ways[few][sum];
                if ((double)sum <= u)
                        tail += ways[few][sum];
        }
        return chance(2 * tail / all);
}

double ls_test_mann_whitney(const double *a, size_t n1, const double *b, size_t n2)
{
        size_t n = n1 + n2;
        struct ranked *all = malloc((n + 1) * sizeof(*all));
        double ranks = 0, ties = 0, u, low, mean, deviation;

        if (!all || !n1 || !n2) {
                free(all);
                return 1;
        }
        for (size_t i = 0; i < n; i++)
                all[i] = i < n1 ? (struct ranked){ a[i], 0 } : (struct ranked){ b[i - n1], 1 };
        qsort(all, n, sizeof(*all), by_value);
        for (size_t i = 0, end; i < n; i = end) {
                double equal;

                for (end = i + 1; end < n && all[end].value == all[i].value; end++)
                        ;
                equal = (double)(end - i);
                ties += equal * equal * equal - equal;
                for (size_t k = i; k < end; k++)
                        ranks += all[k].side ? 0
                                             : (double)(i + end + 1) /
                                                       2; /* the mean of ranks i + 1 .. end */
        }
        free(all);
        u = ranks - (double)n1 * (double)(n1 + 1) / 2;
        low = fmin(u, (double)n1 * (double)n2 - u);
        if (ties == 0 && n <= EXACT_MAX)
                return exact_tails(n1, n2, low);
        mean = (double)n1 * (double)n2 / 2;
        deviation = sqrt((double)n1 * (double)n2 / 12 *
                         ((double)(n + 1) - ties / ((double)n * (double)(n - 1))));
        return deviation > 0 && mean - low > 0.5 ? ls_normal_tails((mean - low - 0.5) / deviation)
                                                 : 1;
}

struct numbered { double p; size_t at; };

static int by_p(const void *x, const void *y)
{
        const struct numbered *a = x, *b = y;

        if (a->p != b->p)
                return a->p < b->p ? -1 : 1;
        return a->at < b->at ? -1 : a->at > b->at;
}

int ls_adjust(const double *p, size_t n, double *q)
{
        struct numbered *sorted = malloc((n + 1) * sizeof(*sorted));
        double least = 1;

        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                sorted[i] = (struct numbered){ p[i], i };
        qsort(sorted, n, sizeof(*sorted), by_p);
        for (size_t i = n; i-- > 0;) {
                least = fmin(least, sorted[i].p * (double)n / (double)(i + 1));
                q[sorted[i].at] = least;
        }
        free(sorted);
        return 0;
}
