/* cli/units.c and cli/suggest.c: durations, sizes, and the nearest word. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/command.h"
#include "cli/suggest.h"

static void durations(void **state)
{
        static const struct { const char *text, *unit; int r; uint64_t ns; } rows[] = {
                { "1ms", "s", 0, 1000000 },
                { "250us", "s", 0, 250000 },
                { "1.5ms", "s", 0, 1500000 },
                { "0.1s", "ms", 0, 100000000 },
                { "10", "ms", 0, 10000000 },
                { "2", "s", 0, 2000000000 },
                { "2m", "s", 0, 120000000000 },
                { "1h", "s", 0, 3600000000000 },
                { "7ns", "s", 0, 7 },
                { "0", "ms", 0, 0 },
                { ".5s", "s", 0, 500000000 },
                { "1parsec", "s", -EINVAL, 0 },
                { "", "s", -EINVAL, 0 },
                { "ms", "s", -EINVAL, 0 },
                { "-1ms", "s", -EINVAL, 0 },
                { "1 ms", "s", -EINVAL, 0 },
                { "1ms ", "s", -EINVAL, 0 },
                { "1e99s", "s", -EINVAL, 0 },
                { "99999999999999999999s", "s", -ERANGE, 0 },
                { "18446744074s", "s", -ERANGE, 0 },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                uint64_t ns = 0;

                assert_int_equal(ls_parse_duration(rows[i].text, rows[i].unit, &ns), rows[i].r);
                assert_int_equal(ns, rows[i].ns);
        }
}

static void sizes(void **state)
{
        static const struct { const char *text; int r; uint64_t bytes;
        } rows[] = {
                { "64K", 0, 65536 },  { "64k", 0, 65536 },    { "2M", 0, 2 << 20 },
                { "1G", 0, 1 << 30 }, { "1GiB", 0, 1 << 30 }, { "1.5K", 0, 1536 },
                { "4096", 0, 4096 },  { "12B", 0, 12 },       { "1T", -EINVAL, 0 },
                { "-1", -EINVAL, 0 }, { "", -EINVAL, 0 },     { "99999999999G", -ERANGE, 0 },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                uint64_t bytes = 0;

                assert_int_equal(ls_parse_size(rows[i].text, &bytes), rows[i].r);
                assert_int_equal(bytes, rows[i].bytes);
        }
}

static void suggestions(void **state)
{
        static const char *const words[] = { "record", "report", "dump", "info", "doctor", NULL };
        static const struct { const char *typed, *near;
        } rows[] = {
                { "reprot", "report" },
                { "recrod", "record" },
                { "dmup", "dump" },
                { "repo", "report" },
                { "doctro", "doctor" },
                { "inof", "info" },
                { "stat", NULL },
                { "", NULL },
                { "x", NULL },
                { "a very long word that no command has, longer than any that is compared at all",
                  NULL },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                const char *near = ls_suggest(rows[i].typed, words);

                if (rows[i].near)
                        assert_string_equal(near, rows[i].near);
                else
                        assert_null(near);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(durations),
                cmocka_unit_test(sizes),
                cmocka_unit_test(suggestions),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
