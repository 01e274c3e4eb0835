/* libsample/pages.h: arrays keep what they hold when they grow, and lie far from what the kernel
 * places for the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>

#include "libsample/pages.h"

#define FAR (UINT64_C(1) << 34)

static uint64_t distance(const void *a, const void *b)
{
        uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

        return x > y ? x - y : y - x;
}

static void test_far_away(void **state)
{
        char *ours = ls_pages_new(5000), *more = ls_pages_new(1);
        void *program =
                mmap(NULL, 131072, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        (void)state;
        assert_non_null(ours);
        assert_non_null(more);
        assert_ptr_not_equal(program, MAP_FAILED);
        assert_true(distance(ours, program) > FAR);
        assert_true(distance(more, program) > FAR);
        assert_true(distance(ours, more) >= 4096);
        for (int i = 0; i < 5000; i++)
                assert_int_equal(ours[i], 0);
        munmap(program, 131072);
        ls_pages_free(ours, 5000);
        ls_pages_free(more, 1);
}

static void test_grow(void **state)
{
        void *beside = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        uint32_t *array = NULL;
        size_t room = 0;

        (void)state;
        for (uint32_t i = 0; i < 100000; i++) {
                assert_int_equal(ls_pages_grow((void **)&array, &room, i + 1, sizeof *array), 0);
                assert_int_equal(array[i], 0);
                array[i] = i;
                assert_true(room > i);
        }
        for (uint32_t i = 0; i < 100000; i++)
                assert_int_equal(array[i], i);
        assert_true(distance(array, beside) > FAR);
        ls_pages_free(array, room * sizeof *array);
        munmap(beside, 4096);
}

static void test_no_memory(void **state)
{
        char *array = ls_pages_new(4096);
        size_t room = 4096;

        (void)state;
        array[4095] = 7;
        assert_int_equal(ls_pages_grow((void **)&array, &room, SIZE_MAX / 4, 1), -1);
        assert_int_equal(room, 4096);
        assert_int_equal(array[4095], 7);
        ls_pages_free(array, 4096);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_far_away),
                cmocka_unit_test(test_grow),
                cmocka_unit_test(test_no_memory),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
