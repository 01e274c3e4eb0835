/* Names of chunks: what is written is read again, and nothing else is taken for a chunk. */
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void test_round_trip(void **state)
{
        static const uint64_t times[] = { 0,        999,           1000,         86399999,
                                          86400000, 1795384466047, 4102444799999 };

        (void)state;
        for (unsigned i = 0; i < sizeof(times) / sizeof(*times); i++) {
                struct ls_chunk c = { .begin_ms = times[i],
                                      .end_ms = times[i] + i * 1000,
                                      .pid = 4194304,
                                      .level = i },
                                back = { .size = 7 };

                ls_chunk_name(&c);
                assert_int_equal(ls_chunk_parse(c.day, c.name, &back), 0);
                assert_int_equal(back.begin_ms, c.begin_ms);
                assert_int_equal(back.end_ms, c.end_ms);
                assert_int_equal(back.pid, c.pid);
                assert_int_equal(back.level, c.level);
                assert_int_equal(back.size, 7);         /* what the name does not say stays */
        }
}

static void test_known(void **state)
{
        struct ls_chunk c = { .begin_ms = 1795384466047, .end_ms = 1795384467087, .pid = 28825 };

        (void)state;
        ls_chunk_name(&c);
        assert_string_equal(c.day, "2026-11-22");
        assert_string_equal(c.name, "215426.047-1040-28825-0.luasample");
}

static void test_refused(void **state)
{
        static const char *const names[][2] = {
                { "2026-11-22", "215426.047-1040-28825-0.luasample.new" },
                { "2026-11-22", "215426.047-1040-28825-0" },
                { "2026-11-22", "215426.047-01040-28825-0.luasample" },
                { "2026-11-22", "255426.047-1040-28825-0.luasample" },
                { "2026-11-22", "215426.47-1040-28825-0.luasample" },
                { "2026-11-22", " 15426.047-1040-28825-0.luasample" },
                { "2026-11-22", "215426.047--1040-28825-0.luasample" },
                { "2026-11-22", "" },
                { "2026-11-22", "215426.047-99999999999999-28825-0.luasample" },
                { "2026-11-22", "215426.047-18446744073709551615-28825-0.luasample" },
                { "2026-11-22", "215426.047-1040-4294967296-0.luasample" },
                { "2026-13-22", "215426.047-1040-28825-0.luasample" },
                { "2026-02-30", "215426.047-1040-28825-0.luasample" },
                { "1960-01-01", "215426.047-1040-28825-0.luasample" },
                { "2026-1-022", "215426.047-1040-28825-0.luasample" },
                { "..", "215426.047-1040-28825-0.luasample" },
        };

        (void)state;
        for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
                struct ls_chunk c = { .pid = 3 };

                assert_int_not_equal(ls_chunk_parse(names[i][0], names[i][1], &c), 0);
                assert_int_equal(c.pid, 3);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_round_trip),
                cmocka_unit_test(test_known),
                cmocka_unit_test(test_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
