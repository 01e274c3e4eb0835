/* What is known of the C library of a process that is attached to, and written into its threads'
 * data. The process is this one. The argument is a library that says to be another version. */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/attach/modules.h"
#include "record/attach/threads.h"

static struct ls_modules modules;

static void version_of_this_one(void **state)
{
        const struct ls_module *libc = ls_modules_find(&modules, "gnu_get_libc_version");
        unsigned major, minor;

        (void)state;
        assert_int_equal(sscanf(gnu_get_libc_version(), "%u.%u", &major, &minor), 2);
        assert_non_null(libc);
        assert_int_equal((int)libc->object.libc_version, 100 * major + minor);
}

static void version_of_another(void **state)
{
        const struct ls_module *m = NULL;

        (void)state;
        for (unsigned i = 0; i < modules.n; i++)
                if (strstr(modules.m[i].path, "fake_libc"))
                        m = &modules.m[i];
        assert_non_null(m);
        assert_int_equal((int)m->object.libc_version, 235);
}

static void version_of_none(void **state)
{
        (void)state;
        assert_int_equal((int)modules.m[0].object.libc_version, 0);
}

/* The word after a call, of one that was so before; all around it must stay. */
static uint32_t word_after(unsigned version, uint32_t before)
{
        uint32_t tcb[16], others;

        for (unsigned i = 0; i < 16; i++)
                tcb[i] = 0x5a5a5a5a;
        tcb[6] = before;
        ls_thread_has_company(&modules, (uintptr_t)tcb, version);
        others = 0;
        for (unsigned i = 0; i < 16; i++)
                others += i != 6 && tcb[i] != 0x5a5a5a5a;
        assert_int_equal(others, 0);
        return tcb[6];
}

static void word_of_a_thread(void **state)
{
        static const struct { unsigned version; uint32_t before, after;
        } cases[] = {
                { 231, 0, 1 }, { 234, 0, 1 }, { 235, 0, 1 }, { 235, 1, 1 },
                { 235, 7, 7 }, { 236, 0, 0 }, { 241, 0, 0 }, { 0, 0, 0 },
        };

        (void)state;
        for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
                assert_int_equal(word_after(cases[i].version, cases[i].before), cases[i].after);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(version_of_this_one),
                cmocka_unit_test(version_of_another),
                cmocka_unit_test(version_of_none),
                cmocka_unit_test(word_of_a_thread),
        };
        int failed;

        if (argc < 2 || !dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) ||
            ls_modules_open(&modules, getpid(), NULL) < 0)
                return 1;
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        ls_modules_close(&modules);
        return failed;
}
