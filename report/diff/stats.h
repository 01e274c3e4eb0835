/* Whether two sides differ by more than chance: the tests of luasample diff. Pure functions, used
 * by report/diff/rows.c. */
#ifndef LS_REPORT_DIFF_STATS_H
#define LS_REPORT_DIFF_STATS_H

#include <stddef.h>

/* Tests of significance. All return the chance, 0 to 1 and never NaN, of a difference at least as
 * large when there is none; 1 where the numbers cannot tell. */

/* Both tails of the normal distribution beyond +-z, and of Student's t with df degrees of freedom
 * (any, above 0). */
double ls_normal_tails(double z);
double ls_student_tails(double t, double df);

/* Two shares x1 / n1 and x2 / n2 of counts, which need not be whole: pooled z-test, corrected for
 * continuity. */
double ls_test_shares(double x1, double n1, double x2, double n2);

/* Two counts that were taken with these exposures (running time, or number of runs): given their
 * sum, the first is binomial. Normal approximation, corrected for continuity. */
double ls_test_rates(double x1, double exposure1, double x2, double exposure2);

/* Means of two small samples with variances of their own: Welch's t-test. floor1, floor2: least
 * variance of one value on each side, for values that are estimates themselves; 0 = none. */
double ls_test_welch(const double *a, size_t n1, double floor1, const double *b, size_t n2,
                     double floor2);

/* Ranks of two samples: Mann-Whitney's U, exact without ties up to 20 values in all, else normal
 * with corrections. */
double ls_test_mann_whitney(const double *a, size_t n1, const double *b, size_t n2);

/* Benjamini and Hochberg: q[i] is the least rate of false discoveries at which p[i] counts as one.
 * Returns 0 or -ENOMEM. */
int ls_adjust(const double *p, size_t n, double *q);

#endif
