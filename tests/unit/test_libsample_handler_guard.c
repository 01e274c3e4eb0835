/* Guarded reads: pages are asked for once in a tick, and where the heap is watched once until
 * something is unmapped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <sys/mman.h>

#include "libsample/handler/guard.h"
#include "libsample/handler/guard_page.h"

#define PAGE 4096u

static unsigned asked;

/* In place of the kernel's answer, which mincore gives too: it fails for what is not mapped. */
LS_HANDLER int ls_page_readable(uintptr_t page)
{
        unsigned char in;

        asked++;
        return mincore((void *)(page * PAGE), PAGE, &in) == 0;
}

static char *new_pages(unsigned n)
{
        char *p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        assert_ptr_not_equal(p, MAP_FAILED);
        return p;
}

/* As munmap of libsample/interpose/memory.c. */
static void counted_unmap(void *p, size_t n)
{
        atomic_fetch_add(&ls_unmaps.begun, 1);
        munmap(p, n);
        atomic_fetch_add(&ls_unmaps.ended, 1);
}

static int asks(struct ls_guard *g, int (*reads)(struct ls_guard *, const void *, size_t),
                const void *p, size_t n, int want)
{
        unsigned before = asked;

        assert_int_equal(reads(g, p, n), want);
        return (int)(asked - before);
}

static void each_tick_anew(void **state)
{
        struct ls_guard g = { 0 };
        char *p = new_pages(2);

        (void)state;
        atomic_store(&ls_heap_is_watched, 0);
        for (int tick = 0; tick < 2; tick++) {
                ls_guard_begin(&g);
                assert_int_equal(asks(&g, ls_guard_reads, p, 8, 1), 1);
                assert_int_equal(asks(&g, ls_guard_reads, p + 100, 8, 1), 0);
                assert_int_equal(asks(&g, ls_guard_reads, p + PAGE - 4, 8, 1), 1);
        }
        munmap(p, 2 * PAGE);
        ls_guard_begin(&g);
        assert_int_equal(asks(&g, ls_guard_reads, p, 8, 0), 1);
}

static void until_something_is_unmapped(void **state)
{
        struct ls_guard g = { 0 };
        char *p = new_pages(1), *q = new_pages(1);

        (void)state;
        atomic_store(&ls_heap_is_watched, 1);
        ls_guard_begin(&g);
        assert_int_equal(asks(&g, ls_guard_reads, p, 8, 1), 1);
        ls_guard_begin(&g);
        assert_int_equal(asks(&g, ls_guard_reads, p, 8, 1), 0);
        counted_unmap(q, PAGE);
        ls_guard_begin(&g);
        assert_int_equal(asks(&g, ls_guard_reads, p, 8, 1), 1);
        assert_int_equal(asks(&g, ls_guard_reads, q, 8, 0), 1);
        counted_unmap(p, PAGE);
        ls_guard_begin(&g);
        assert_int_equal(asks(&g, ls_guard_reads, p, 8, 0), 1);
}

/* A tick between the two counts: what is asked now may be gone at the next one. */
static void while_it_is_unmapped(void **state)
{
        struct ls_guard g = { 0 };
        char *p = new_pages(1);

        (void)state;
        atomic_store(&ls_heap_is_watched, 1);
        atomic_fetch_add(&ls_unmaps.begun, 1);
        ls_guard_begin(&g);
        assert_int_equal(asks(&g, ls_guard_reads, p, 8, 1), 1);
        munmap(p, PAGE);
        ls_guard_begin(&g);
        assert_int_equal(asks(&g, ls_guard_reads, p, 8, 0), 1);
        atomic_fetch_add(&ls_unmaps.ended, 1);
        ls_guard_begin(&g);
        assert_int_equal(asks(&g, ls_guard_reads, p, 8, 0), 1);
}

static void wild_ones_of_this_tick(void **state)
{
        struct ls_guard g = { 0 };
        char *p = new_pages(1);

        (void)state;
        atomic_store(&ls_heap_is_watched, 1);
        for (int tick = 0; tick < 2; tick++) {
                ls_guard_begin(&g);
                assert_int_equal(asks(&g, ls_guard_reads_wild, p, 8, 1), 1);
                assert_int_equal(asks(&g, ls_guard_reads_wild, p, 8, 1), 0);
        }
        assert_int_equal(asks(&g, ls_guard_reads, p, 8, 1), 1);
        ls_guard_begin(&g);
        assert_int_equal(asks(&g, ls_guard_reads_wild, p, 8, 1), 0);    /* the heap's */
        munmap(p, PAGE);
}

/* A VM with another allocator has come. */
static void no_longer_watched(void **state)
{
        struct ls_guard g = { 0 };
        char *p = new_pages(1);

        (void)state;
        atomic_store(&ls_heap_is_watched, 1);
        ls_guard_begin(&g);
        assert_int_equal(asks(&g, ls_guard_reads, p, 8, 1), 1);
        atomic_store(&ls_heap_is_watched, 0);
        munmap(p, PAGE);
        ls_guard_begin(&g);
        assert_int_equal(asks(&g, ls_guard_reads, p, 8, 0), 1);
        g.sure[0].low = (uintptr_t)p;
        g.sure[0].high = (uintptr_t)p + 16;
        assert_int_equal(asks(&g, ls_guard_reads, p + 8, 8, 1), 0);
        assert_int_equal(asks(&g, ls_guard_reads, p + 12, 8, 0), 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_tick_anew),
                cmocka_unit_test(until_something_is_unmapped),
                cmocka_unit_test(while_it_is_unmapped),
                cmocka_unit_test(wild_ones_of_this_tick),
                cmocka_unit_test(no_longer_watched),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
