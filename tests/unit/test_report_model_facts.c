/* report/model/facts.c: totals of a trace that ended, that has no end, and whose totals are older
 * than its samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cli/command.h"
#include "report/model/facts.h"
#include "tests/unit/profile_fixture.h"

/* 90 s at 1 ms are readable, 50 ticks were lost; the totals are those of the first minute. */
static struct ls_info infos[] = {
        { .key = { "complete", 8 }, .is_u64 = 1, .u64 = 0 },
        { .key = { "asked_interval_ns", 17 }, .is_u64 = 1, .u64 = 1000000 },
        { .key = { "ticks", 5 }, .is_u64 = 1, .u64 = 60000 },
        { .key = { "samples", 7 }, .is_u64 = 1, .u64 = 59000 },
        { .key = { "cpu_ns", 6 }, .is_u64 = 1, .u64 = 60000000000u },
        { .key = { "elapsed_ns", 10 }, .is_u64 = 1, .u64 = 61000000000u },
        { .key = { "own_handler_ns", 14 }, .is_u64 = 1, .u64 = 60000000u },
        { .key = { "lost.ring-full", 14 }, .is_u64 = 1, .u64 = 50 },
};

static struct ls_facts facts_of(unsigned n_infos, uint64_t complete, uint64_t samples,
                                uint64_t ticks)
{
        struct ls_profile p = { .infos = infos, .n_infos = n_infos, .interval_ns = 1000000,
                                .recorded_samples = samples, .recorded_ticks = ticks };
        struct ls_facts f;

        infos[0].u64 = complete;
        ls_facts_init(&f, &p);
        return f;
}

static void stale_totals(void **state)
{
        struct ls_facts f = facts_of(8, 0, 88000, 89950);

        (void)state;
        assert_int_equal(f.ticks, 90000);
        assert_int_equal(f.samples, 88000);
        assert_int_equal(f.cpu_ns, 90000000000u);
        assert_int_equal(f.elapsed_ns, 0);              /* not known */
        assert_true(f.achieved_hz > 977 && f.achieved_hz < 978);
        assert_true(f.own_share > 0.00099 &&
                    f.own_share < 0.00101); /* both terms are a minute old */
}

/* Chunks that cannot be read do not change what a trace says in the end. */
static void ended(void **state)
{
        struct ls_facts f = facts_of(8, 1, 30000, 30500);

        (void)state;
        assert_int_equal(f.ticks, 60000);
        assert_int_equal(f.samples, 59000);
        assert_int_equal(f.cpu_ns, 60000000000u);
        assert_int_equal(f.elapsed_ns, 61000000000u);
}

static void no_totals(void **state)
{
        struct ls_facts f = facts_of(2, 0, 700, 900);

        (void)state;
        assert_int_equal(f.ticks, 900);
        assert_int_equal(f.samples, 700);
        assert_int_equal(f.cpu_ns, 900000000u);
}

static void counted(void **state)
{
        static const struct { uint64_t n; const char *what, *want;
        } cases[] = {
                { 1, "ticks whose signal was late", "tick whose signal was late" },
                { 2, "ticks seen", "ticks seen" },
                { 0, "ticks seen", "ticks seen" },
                { 1, "native stacks that end", "native stack that end" },
                { 1, "dust", "dust" },
        };
        char buf[64];

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                assert_string_equal(ls_counted_text(cases[i].n, cases[i].what, buf, sizeof(buf)),
                                    cases[i].want);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(stale_totals),
                cmocka_unit_test(ended),
                cmocka_unit_test(no_totals),
                cmocka_unit_test(counted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
