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
                { "-i", "0" },
                { "-i", "-1" },
                { "-i", "1parsec" },
                { "-i", "1ns" },
                { "-i", "49us" },
                { "-i", "" },
                { "-i", "2h" },
                { "-i", "nan" },
                { "-i", "99999999999999999999s" },
                { "-F", "0" },
                { "-F", "-5" },
                { "-F", "20001" },
                { "-F", "inf" },
                { "-F", "nan" },
                { "-F", "1x" },
                { "-d", "0" },
                { "-d", "soon" },
                { "--depth", "-1" },
                { "--depth", "1e3" },
                { "--depth", "" },
                { "--depth", "99999999999999999999" },
                { "--scope", "x" },
                { "--scope", "" },
                { "--timer", "itimer" },
                { "-m", "1" },
                { "-m", "1T" },
                { "-m", "-1" },
                { "-o", "" },
                { "-D", "-2" },
                { "-D", "-1" },
                { "--control", "x" },
                { "--switch-output", "10" },
                { "--keep", "0" },
                { "--engine", "jump" },
                { "--engine", "" },
                { "--jit-leaf", "no" },
                { "--native=1", "x" },
                { "--native=1G", "x" },
                { "--native=lots", "x" },
                { "--no-such", "x" },
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
        static const struct { const char *opt, *value; uint64_t interval;
        } good[] = {
                { "-i", "1ms", 1000000 },   { "-i", "50us", 50000 },    { "-i", "2", 2000000 },
                { "-i", "1.5ms", 1500000 }, { "-i", "1s", 1000000000 }, { "-F", "1000", 1000000 },
                { "-F", "20000", 50000 },   { "-F", "999", 1001001 },   { "--depth", "5", 1000000 },
                { "-m", "64K", 1000000 },
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

/* A power of two; larger where more is written in a second, unless it was asked for. */
static void ring_sizes(void **state)
{
        static const struct { const char *opt, *value; uint32_t size;
        } cases[] = {
                { "-m", "65K", 128u << 10 },
                { "-i", "1ms", LS_DEFAULT_RING },
                { "-i", "100us", LS_DEFAULT_RING },
                { "--native", "-q", LS_DEFAULT_RING },
                { "--native", "-i100us", LS_NATIVE_RING },
                { "--native", "-m64K", 64u << 10 },
        };

        (void)state;
        for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct ls_record_options o;

                assert_int_equal(parse(&o, cases[i].opt, cases[i].value), -1);
                assert_int_equal(o.ring_size, cases[i].size);
                ls_record_options_done(&o);
        }
}

/* Options that were renamed are known by their old names, which help does not show. */
static void old_names(void **state)
{
        struct ls_record_options o;
        unsigned shown = 0;

        (void)state;
        assert_int_equal(parse(&o, "--last=5s", "--buffer-size=1M"), -1);
        assert_int_equal(o.ring_ns, 5000000000u);
        assert_int_equal(o.ring_size, 1u << 20);
        ls_record_options_done(&o);
        assert_int_equal(parse(&o, "--ring=5s", "--ring-size=1M"), -1);
        assert_int_equal(o.ring_ns, 5000000000u);
        assert_int_equal(o.ring_size, 1u << 20);
        ls_record_options_done(&o);
        assert_int_equal(parse(&o, "--ring=5s", "--ring-on-mark=slow"), -1);
        assert_string_equal(o.ring_mark, "slow");
        ls_record_options_done(&o);
        for (const struct poptOption *p = ls_record_option_table; p->longName; p++)
                shown += !strncmp(p->longName, "ring", 4) &&
                         !(p->argInfo & POPT_ARGFLAG_DOC_HIDDEN);
        assert_int_equal(shown, 0);
}

/* An option whose value may be left out takes no word of the program. */
static void native_stacks(void **state)
{
        static const struct { const char *a, *b; uint32_t bytes; const char *first;
        } cases[] = {
                { "-q", "-q", 0, "app" },
                { "--native", "-q", LS_DEFAULT_NATIVE, "app" },
                { "-q", "--native", LS_DEFAULT_NATIVE, "app" },
                { "--native", "app2", LS_DEFAULT_NATIVE, "app2" },
                { "--native=4K", "--engine=walk", 4096, "app" },
                { "--native=1025", "-q", 1032, "app" },
                { "--native", "--no-native", 0, "app" },
                { "-q", "app2", 0, "app2" },
                { "-i", "5ms", 0, "app" },
                { "-qi", "5ms", 0, "app" },
                { "app2", "--native", 0, "app2" },
        };

        (void)state;
        for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct ls_record_options o;

                assert_int_equal(parse(&o, cases[i].a, cases[i].b), -1);
                assert_int_equal(o.native_bytes, cases[i].bytes);
                assert_string_equal(o.command[0], cases[i].first);
                ls_record_options_done(&o);
        }
}

static void engines(void **state)
{
        struct ls_record_options o;

        (void)state;
        assert_int_equal(parse(&o, "-q", "-q"), -1);
        assert_int_equal(o.engine, LS_ENGINE_AUTO);
        assert_int_equal(o.jit_leaf, LS_JIT_LEAF_MAP);
        ls_record_options_done(&o);
        assert_int_equal(parse(&o, "--engine", "hook"), -1);
        assert_int_equal(o.engine, LS_ENGINE_HOOK);
        ls_record_options_done(&o);
        assert_int_equal(parse(&o, "--jit-leaf", "root"), -1);
        assert_int_equal(o.jit_leaf, LS_JIT_LEAF_ROOT);
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
                cmocka_unit_test(refused), cmocka_unit_test(taken), cmocka_unit_test(ring_sizes),
                cmocka_unit_test(old_names),
                cmocka_unit_test(native_stacks), cmocka_unit_test(engines),
                cmocka_unit_test(without_a_program),
        };

        return cmocka_run_group_tests_name("record_options", tests, NULL, NULL);
}
