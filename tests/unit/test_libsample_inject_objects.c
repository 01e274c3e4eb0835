/* libsample/inject/objects.c: symbols, build ids and owners of addresses as the loader and the
 * linker have them. */
#include "libsample/inject/objects.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int same_as_dlsym(const struct ls_object *object, void *data)
{
        static const char *const names[] = { "malloc",  "free",           "fopen",
                                             "environ", "pthread_create", "getpid" };
        void *handle;

        if (!strstr(object->path, "libc.so"))
                return 0;
        handle = dlopen(object->path, RTLD_NOW | RTLD_NOLOAD);
        assert_non_null(handle);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                size_t size = 0;

                assert_ptr_equal(ls_object_symbol(object, names[i], &size),
                                 dlsym(handle, names[i]));
                assert_true(size > 0);
        }
        assert_null(ls_object_symbol(object, "no_such_symbol", NULL));
        assert_null(ls_object_symbol(object, "", NULL));
        dlclose(handle);
        *(int *)data = 1;
        return 1;
}

static void test_symbols(void **state)
{
        int found = 0;

        (void)state;
        assert_int_equal(ls_objects_each(same_as_dlsym, &found), 1);
        assert_int_equal(found, 1);
}

static int first_is_main(const struct ls_object *object, void *data)
{
        char path[4096];
        ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

        (void)data;
        path[n > 0 ? n : 0] = '\0';
        assert_string_equal(object->path, path);
        return 7;
}

static int look_everywhere(const struct ls_object *object, void *data)
{
        size_t len;

        ls_object_symbol(object, "lua_newstate", NULL);
        ls_object_build_id(object, &len);
        ls_object_has_runpath(object);
        ++*(int *)data;
        return 0;
}

static void test_each(void **state)
{
        int n = 0;

        (void)state;
        assert_int_equal(ls_objects_each(first_is_main, NULL), 7);
        assert_int_equal(ls_objects_each(look_everywhere, &n), 0);
        assert_true(n >= 3);            /* this program, the vdso too, libc and its loader */
}

static void test_address(void **state)
{
        struct ls_object object;
        int on_stack = 0;

        (void)state;
        assert_int_equal(ls_object_of_address((const void *)test_address, &object), 1);
        assert_int_equal(first_is_main(&object, NULL), 7);
        assert_int_equal(ls_object_of_address(dlsym(RTLD_DEFAULT, "getpid"), &object), 1);
        assert_non_null(strstr(object.path, "libc.so"));
        assert_int_equal(ls_object_of_address(&on_stack, &object), 0);
        assert_int_equal(ls_object_of_address(NULL, &object), 0);
}

/* Each note as in the file: NT_GNU_BUILD_ID (3) of owner GNU. */
static void test_build_id(void **state)
{
        uint32_t note[] = { 4, 2, 1, 0x00554e47, 0x2222,        /* another type, padded */
                            4, 20, 3, 0x00554e47, 1, 2, 3, 4, 5 };
        ElfW(Phdr) ph = {
                .p_type = PT_NOTE, .p_vaddr = (uintptr_t)note, .p_memsz = sizeof note, .p_align = 4
        };
        struct ls_object object = { .phdrs = &ph, .nphdrs = 1, .path = "x" };
        size_t len;

        (void)state;
        assert_ptr_equal(ls_object_build_id(&object, &len), &note[9]);
        assert_int_equal(len, 20);
        ph.p_memsz -= 4;                /* cut: nothing beyond the segment is given */
        assert_null(ls_object_build_id(&object, &len));
        ph.p_memsz = sizeof note;
        note[0] = 0xfffffff0u;
        assert_null(ls_object_build_id(&object, &len));
        note[0] = 4;
        note[6] = 0xffffffffu;
        assert_null(ls_object_build_id(&object, &len));
        assert_int_equal(len, 0);
}

static void test_version(void **state)
{
        unsigned long long before = ls_objects_version();
        void *handle;

        (void)state;
        assert_true(ls_objects_version() == before);
        handle = dlopen("libBrokenLocale.so.1", RTLD_NOW);
        if (!handle)
                skip();
        assert_true(ls_objects_version() != before);
        dlclose(handle);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_symbols),
                cmocka_unit_test(test_each),
                cmocka_unit_test(test_address),
                cmocka_unit_test(test_build_id),
                cmocka_unit_test(test_version),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
