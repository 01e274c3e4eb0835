/* See draw.h. */
#include "libsample/alloc/draw.h"

/* A counter whose steps are mixed (splitmix64): any seed will do. */
static uint64_t next(struct ls_draw *d)
{
        uint64_t x = d->state += UINT64_C(0x9e3779b97f4a7c15);

        x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
        return x ^ x >> 31;
}

/* -ln((x + 1/2) / 2^63) of 63 bits: the power of two, and the rest in [1, 2) by the series of
 * 2 artanh((m - 1) / (m + 1)), whose next term is less than 1e-9. */
static double minus_log(uint64_t x)
{
        uint64_t bits = x << 1 | 1;
        int zeros = __builtin_clzll(bits);
        double m = (double)(bits << zeros) / 0x1p63, s = (m - 1) / (m + 1), s2 = s * s;
        double sum = 1 +
                     s2 * (1.0 / 3 +
                           s2 * (1.0 / 5 +
                                 s2 * (1.0 / 7 +
                                       s2 * (1.0 / 9 +
                                             s2 * (1.0 / 11 +
                                                   s2 * (1.0 / 13 + s2 * (1.0 / 15 + s2 / 17)))))));

        return (zeros + 1) * 0.69314718055994530942 - 2 * s * sum;
}

void ls_draw_begin(struct ls_draw *d, uint64_t mean, uint64_t seed)
{
        d->state = seed;
        d->mean = mean;
}

int64_t ls_draw_bytes(struct ls_draw *d)
{
        return (int64_t)(minus_log(next(d) >> 1) * (double)d->mean);
}
