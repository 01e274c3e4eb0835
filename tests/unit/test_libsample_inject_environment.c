/* libsample/inject/environment.c: the agent's entries go in and come out, nothing else of an
 * environment changes. */
#include "libsample/inject/environment.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "formats/wire/shm.h"

#define LIBRARY "/opt/lib/libsample.so"
#define MEMORY "12:3:456"
#define MAX_ENTRIES 16

/* Puts the agent into env, checks what the loader would see, takes it out again and compares with
 * env. */
static void round_trip(char *const *env, const char *preload_with_agent)
{
        static char texts[MAX_ENTRIES][256];
        char *copy[MAX_ENTRIES + 1], memory[LS_ENV_MEMORY_MAX];
        struct ls_env with;
        const char *preload = NULL;
        size_t n;

        assert_int_equal(ls_env_add_agent(env, LIBRARY, MEMORY, &with), 0);
        for (n = 0; with.env[n]; n++) {
                assert_true(n < MAX_ENTRIES);
                copy[n] = strcpy(texts[n], with.env[n]);
                if (strncmp(copy[n], "LD_PRELOAD=", 11) == 0)
                        preload = copy[n];
        }
        copy[n] = NULL;
        assert_non_null(preload);
        assert_string_equal(preload, preload_with_agent);
        assert_ptr_equal(preload, copy[n - 2]);
        assert_string_equal(copy[n - 1], LS_ENV_AGENT "=" MEMORY);
        ls_env_done(&with);

        assert_int_equal(ls_env_remove_agent(copy, LIBRARY, memory), 1);
        assert_string_equal(memory, MEMORY);
        for (n = 0; env && env[n]; n++)
                assert_string_equal(copy[n], env[n]);
        assert_null(copy[n]);
}

static void test_round_trips(void **state)
{
        char *none[] = { NULL };
        char *plain[] = { "B=2", "A=1", "LUA_INIT=@x", NULL };
        char *own[] = { "LD_PRELOAD=/lib/a.so /lib/b.so", "A=1", NULL };
        char *empty[] = { "A=1", "LD_PRELOAD=", "Z=", NULL };
        char *two[] = { "LD_PRELOAD=first", "LD_PRELOAD=second", NULL };
        char *odd[] = { "=", "novalue", "LD_PRELOAD", "LD_PRELOADX=1", NULL };

        (void)state;
        round_trip(NULL, "LD_PRELOAD=" LIBRARY);
        round_trip(none, "LD_PRELOAD=" LIBRARY);
        round_trip(plain, "LD_PRELOAD=" LIBRARY);
        round_trip(own, "LD_PRELOAD=/lib/a.so /lib/b.so:" LIBRARY);
        round_trip(empty, "LD_PRELOAD=:" LIBRARY);
        round_trip(two, "LD_PRELOAD=second:" LIBRARY);
        round_trip(odd, "LD_PRELOAD=" LIBRARY);
}

/* Others may put the library elsewhere in the list. */
static void test_places_in_the_list(void **state)
{
        static const struct { const char *before, *after; } rows[] = {
                { "LD_PRELOAD=" LIBRARY ":/a.so", "LD_PRELOAD=/a.so" },
                { "LD_PRELOAD=" LIBRARY " /a.so", "LD_PRELOAD=/a.so" },
                { "LD_PRELOAD=/a.so " LIBRARY ":/b.so", "LD_PRELOAD=/a.so:/b.so" },
                { "LD_PRELOAD=/x" LIBRARY, "LD_PRELOAD=/x" LIBRARY },
                { "LD_PRELOAD=" LIBRARY ".1", "LD_PRELOAD=" LIBRARY ".1" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                char text[128], memory[LS_ENV_MEMORY_MAX];
                char *env[] = { strcpy(text, rows[i].before), NULL };

                ls_env_remove_agent(env, LIBRARY, memory);
                assert_string_equal(env[0], rows[i].after);
                assert_string_equal(memory, "");
        }
}

static void test_bad_libraries(void **state)
{
        static const char *const bad[] = { "lib.so", "", "/a b.so", "/a:b.so", "/$LIB/b.so" };
        struct ls_env with;

        (void)state;
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
                assert_int_equal(ls_env_add_agent(NULL, bad[i], MEMORY, &with), -EINVAL);
}

/* Some runtimes look for the auxiliary vector behind the NULL. */
static void test_behind_the_end(void **state)
{
        char a[] = "A=1", p[] = "LD_PRELOAD=" LIBRARY, m[] = LS_ENV_AGENT "=" MEMORY,
             memory[LS_ENV_MEMORY_MAX];
        char *stack[] = { p, a, m, NULL, (char *)6, (char *)4096 };

        (void)state;
        ls_env_remove_agent(stack, LIBRARY, memory);
        assert_ptr_equal(stack[0], a);
        assert_null(stack[1]);
        assert_ptr_equal(stack[2], (char *)1);  /* AT_IGNORE, 0 */
        assert_null(stack[3]);
        assert_ptr_equal(stack[4], (char *)6);
        for (size_t i = 0; i < sizeof m; i++)
                assert_int_equal(m[i], 0);
}

static void test_memory_text(void **state)
{
        static const char *const bad[] = {
                "",        "1",         "1:2",      "1:2:",           ":2:3",
                "1::3",    "1:2:3:",    "1:2:3:x",  "1:2:3 ",         " 1:2:3",
                "-1:2:3",  "0:2:3",     "1:2:0",    "4294967297:2:3", "1:2:18446744073709551616",
                "0x1:2:3", "1:2:3:e:e", "1:2:3:ee",
        };
        struct ls_env_memory m = { 2147483647, 2147483647, UINT64_MAX, 'e' }, back;
        char text[LS_ENV_MEMORY_MAX];

        (void)state;
        ls_env_memory_format(&m, text);
        assert_string_equal(text, "2147483647:2147483647:18446744073709551615:e");
        assert_int_equal(ls_env_memory_parse(text, &back), 0);
        assert_int_equal(back.pid, m.pid);
        assert_int_equal(back.fd, m.fd);
        assert_true(back.generation == m.generation);
        assert_int_equal(back.after_exec, 'e');
        assert_int_equal(ls_env_memory_parse("7:0:1", &back), 0);
        assert_int_equal(back.fd, 0);
        assert_int_equal(back.after_exec, 0);
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
                assert_int_equal(ls_env_memory_parse(bad[i], &back), -EINVAL);
}

/* A variable longer than any of ours is taken out, and not copied. */
static void test_long_memory(void **state)
{
        static char text[4096] = LS_ENV_AGENT "=";
        char *env[] = { text, "A=1", NULL }, memory[LS_ENV_MEMORY_MAX];

        (void)state;
        memset(text + strlen(text), '1', sizeof text - strlen(text) - 1);
        ls_env_remove_agent(env, LIBRARY, memory);
        assert_string_equal(memory, "");
        assert_string_equal(env[0], "A=1");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_round_trips),
                cmocka_unit_test(test_places_in_the_list),
                cmocka_unit_test(test_bad_libraries),
                cmocka_unit_test(test_behind_the_end),
                cmocka_unit_test(test_memory_text),
                cmocka_unit_test(test_long_memory),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
