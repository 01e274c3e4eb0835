/* record/options.c: values that people and scripts get wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "record/commands.h"
#include "record/options.h"

/* cli/ wants the table of all commands. */
const struct ls_command *const ls_commands[] = { &ls_cmd_record, NULL };

static int parse(struct ls_record_options *o, const char *a, const char *b)
{
        const char *argv[] = { "record", a, b, "--", "app", "-i", "x", NULL };

        return ls_record_options_parse(&ls_cmd_record, 7, argv, o);
}

static void refused(void **state)
{
        static const char *const bad[][2] = {
                { "-i", "0" }, { "-i", "-1" }, { "-i", "1parsec" }, { "-i", "1ns" }, { "-i", "49us" }, { "-i", "" },
                { "-i", "2h" }, { "-i", "nan" }, { "-i", "99999999999999999999s" }, { "-F", "0" }, { "-F", "-5" },
                { "-F", "20001" }, { "-F", "inf" }, { "-F", "nan" }, { "-F", "1x" }, { "-d", "0" }, { "-d", "soon" },
                { "--depth", "-1" }, { "--depth", "1e3" }, { "--depth", "" }, { "--depth", "99999999999999999999" },
                { "--scope", "x" }, { "--scope", "" }, { "--timer", "itimer" }, { "-m", "1" }, { "-m", "1T" },
                { "-m", "-1" }, { "-o", "" }, { "-o", "-" }, { "--no-such", "x" },
        };

        (void)state;
        for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                struct ls_record_options o;
                int status = parse(&o, bad[i][0], bad[i][1]);

                if (status != LS_EXIT_USAGE)
                        fail_msg("%s %s gives %d", bad[i][0], bad[i][1], status);
                ls_record_options_done(&o);
        }
}

static void taken(void **state)
{
        static const struct { const char *opt, *value; uint64_t interval; } good[] = {
                { "-i", "1ms", 1000000 }, { "-i", "50us", 50000 }, { "-i", "2", 2000000 }, { "-i", "1.5ms", 1500000 },
                { "-i", "1s", 1000000000 }, { "-F", "1000", 1000000 }, { "-F", "20000", 50000 }, { "-F", "999", 1001001 },
                { "--depth", "5", 1000000 }, { "-m", "64K", 1000000 },
        };

        (void)state;
        for (unsigned i = 0; i < sizeof(good) / sizeof(*good); i++) {
                struct ls_record_options o;

                assert_int_equal(parse(&o, good[i].opt, good[i].value), -1);
                assert_int_equal(o.interval_ns, good[i].interval);
                assert_string_equal(o.command[0], "app");
                assert_string_equal(o.command[1], "-i");        /* the program's own */
                assert_null(o.command[3]);
                ls_record_options_done(&o);
        }
}

static void ring_sizes_are_powers_of_two(void **state)
{
        struct ls_record_options o;

        (void)state;
        assert_int_equal(parse(&o, "-m", "65K"), -1);
        assert_int_equal(o.ring_size, 128u << 10);
        ls_record_options_done(&o);
}

static void without_a_program(void **state)
{
        const char *argv[] = { "record", "-q", NULL };
        struct ls_record_options o;

        (void)state;
        assert_int_equal(ls_record_options_parse(&ls_cmd_record, 2, argv, &o), LS_EXIT_USAGE);
        ls_record_options_done(&o);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(refused), cmocka_unit_test(taken), cmocka_unit_test(ring_sizes_are_powers_of_two),
                cmocka_unit_test(without_a_program),
        };

        return cmocka_run_group_tests_name("record_options", tests, NULL, NULL);
}
