/* record/translate/jit_keep.c: which process sees which traces when programs fork, exec and end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "record/translate/jit_keep.h"
#include "tests/unit/jit_fixture.h"

static struct ls_trace_writer *writer;
static struct ls_jit_keep parent, child;

static int setup(void **state)
{
        int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

        (void)state;
        if (fd < 0 || ls_trace_writer_open(fd, 1000000, &writer) < 0)
                return -1;
        return ls_jit_keep_init(&parent, writer, 0) < 0 || ls_jit_keep_init(&child, writer, 1) < 0
                       ? -1
                       : 0;
}

static int teardown(void **state)
{
        (void)state;
        ls_jit_keep_done(&parent);
        ls_jit_keep_done(&child);
        return ls_trace_writer_close(writer);
}

/* line tells one definition of a trace from another. */
static void add(struct ls_jit_keep *k, uint32_t jit_id, uint32_t parent_id, uint32_t line)
{
        const struct jit_part parts[] = { { 0, 0, line }, { 0, 0, line }, { 0, 0, line + 1 } };
        const uint32_t functions[] = { 1 };
        uint32_t size;
        struct ls_rec_jittrace *rec = jit_record((struct ls_rec_jittrace){ .jit_id = jit_id,
                                                                           .parent_id = parent_id,
                                                                           .number = jit_id,
                                                                           .start_line = line },
                                                 functions, 1, parts, 3, &size);

        assert_int_equal(ls_jit_keep_names(k, 1, JIT_NAMES, sizeof(JIT_NAMES) - 1), 0);
        assert_int_equal(ls_jit_keep_add(k, rec, size, 1), 0);
        free(rec);
}

static uint32_t function(struct ls_jit_keep *k, uint32_t jit_id)
{
        uint32_t offset = 0, id = ls_jit_keep_function(k, jit_id, &offset);

        assert_int_not_equal(id, 0);
        return id;
}

/* Where a place in its second part is put: at its first when the definition is known. */
static uint32_t place(struct ls_jit_keep *k, uint32_t jit_id)
{
        uint32_t offset = JIT_PART_BYTES + 3;

        assert_int_not_equal(ls_jit_keep_function(k, jit_id, &offset), 0);
        return offset;
}

#define KNOWN 0u
#define UNKNOWN (JIT_PART_BYTES + 3)

static void a_child_has_what_was_there(void **state)
{
        (void)state;
        add(&parent, 1, 0, 10);
        add(&parent, 2, 1, 20);
        function(&parent, 1);
        ls_jit_keep_inherit(&child, &parent, 2);
        assert_int_equal(place(&child, 2), KNOWN);              /* a side trace: with its parent */
        assert_int_equal(function(&child, 1), function(&parent, 1));
        assert_int_equal(function(&child, 2), function(&parent, 2));
        assert_int_not_equal(function(&child, 1), function(&child, 2));
        assert_int_equal(child.missing + parent.missing, 0);
}

static void later_ones_are_each_its_own(void **state)
{
        (void)state;
        add(&parent, 1, 0, 10);
        ls_jit_keep_inherit(&child, &parent, 1);
        add(&parent, 2, 1, 20);
        assert_int_equal(place(&child, 2), UNKNOWN);
        assert_int_equal(place(&parent, 2), KNOWN);
        assert_int_not_equal(function(&child, 2), function(&parent, 2));
        add(&child, 2, 1, 30);
        assert_int_equal(place(&child, 2), KNOWN);
        assert_int_not_equal(function(&child, 2), function(&parent, 2));
}

static void exec_in_the_child(void **state)
{
        uint32_t before;

        (void)state;
        add(&parent, 1, 0, 10);
        add(&parent, 2, 0, 20);
        ls_jit_keep_inherit(&child, &parent, 2);
        before = function(&child, 1);
        add(&child, 1, 0, 99);
        assert_int_not_equal(function(&child, 1), before);
        assert_int_equal(function(&parent, 1), before);
        add(&child, 1, 0, 98);                                  /* and once more */
        assert_int_equal(function(&parent, 1), before);
        assert_int_equal(function(&child, 2), function(&parent, 2));
}

static void exec_in_the_parent(void **state)
{
        uint32_t first, second;

        (void)state;
        add(&parent, 1, 0, 10);
        add(&parent, 2, 0, 20);
        ls_jit_keep_inherit(&child, &parent, 2);
        first = function(&parent, 1);
        add(&parent, 1, 0, 99);
        second = function(&parent, 1);
        assert_int_not_equal(second, first);
        assert_int_equal(function(&child, 1), first);
        add(&parent, 2, 0, 98);                                 /* that the child has no sample in
                                                                 * yet */
        function(&parent, 2);
        assert_int_equal(place(&child, 2), KNOWN);
        assert_int_not_equal(function(&child, 2), function(&parent, 2));
        add(&parent, 1, 0, 97);
        assert_int_not_equal(function(&parent, 1), first);
        assert_int_not_equal(function(&parent, 1), second);
        assert_int_equal(function(&child, 1), first);
}

/* What it replaces is its own parent's, and its child goes on with that. */
static void exec_in_a_parent_that_has_all_from_its_own(void **state)
{
        struct ls_jit_keep grandchild;
        uint32_t first;

        (void)state;
        add(&parent, 1, 0, 10);
        add(&parent, 2, 0, 20);
        first = function(&parent, 1);
        ls_jit_keep_inherit(&child, &parent, 2);
        assert_int_equal(ls_jit_keep_init(&grandchild, writer, 2), 0);
        ls_jit_keep_inherit(&grandchild, &child, 2);
        add(&child, 1, 0, 99);
        assert_int_not_equal(function(&child, 1), first);
        assert_int_equal(function(&grandchild, 1), first);
        add(&child, 2, 0, 98);
        assert_int_not_equal(function(&child, 2), function(&parent, 2));
        assert_int_equal(function(&grandchild, 2), function(&parent, 2));
        ls_jit_keep_done(&grandchild);
}

static void the_parent_ends_first(void **state)
{
        struct ls_jit_keep grandchild;

        (void)state;
        add(&parent, 1, 0, 10);
        ls_jit_keep_inherit(&child, &parent, 1);
        ls_jit_keep_done(&parent);
        add(&child, 2, 1, 20);
        assert_int_equal(ls_jit_keep_init(&grandchild, writer, 2), 0);
        ls_jit_keep_inherit(&grandchild, &child, 2);
        ls_jit_keep_done(&child);
        assert_int_equal(place(&grandchild, 1), KNOWN);
        assert_int_equal(place(&grandchild, 2), KNOWN);
        ls_jit_keep_done(&grandchild);
}

static void those_given_up_are_counted(void **state)
{
        uint32_t n = LS_JIT_KEPT_MAX / 100;

        (void)state;
        for (uint32_t i = 1; i <= n; i++)                       /* each has some 300 bytes */
                add(&parent, i, 0, 10);
        ls_jit_keep_inherit(&child, &parent, n);
        assert_int_equal(place(&child, n), KNOWN);
        assert_int_equal(child.missing, 0);
        assert_int_equal(place(&child, 1), UNKNOWN);
        assert_int_equal(child.missing, 1);
        assert_int_equal(parent.missing, 0);
        assert_int_equal(place(&parent, 2), UNKNOWN);
        assert_int_equal(parent.missing, 1);
}

static double seconds(void)
{
        struct timespec t;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The recorder serves all processes meanwhile: what a child costs must not depend on what its
 * parent has. */
static void a_fork_costs_the_same_whatever_there_is(void **state)
{
        enum { TRACES = 20000, FORKS = 20000 };
        double start, filled, forked;

        (void)state;
        start = seconds();
        for (uint32_t i = 1; i <= TRACES; i++)
                add(&parent, i, 0, 10);
        filled = seconds();
        for (unsigned i = 0; i < FORKS; i++) {
                struct ls_jit_keep one;

                assert_int_equal(ls_jit_keep_init(&one, writer, 2 + i), 0);
                ls_jit_keep_inherit(&one, &parent, TRACES);
                ls_jit_keep_done(&one);
        }
        forked = seconds();
        print_message("%d traces %.4f s, %d forks %.4f s\n", TRACES, filled - start, FORKS,
                      forked - filled);
        /* a copy of all of them would cost as much as they did, each time */
        assert_true(forked - filled < 10 * (filled - start));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_child_has_what_was_there, setup, teardown),
                cmocka_unit_test_setup_teardown(later_ones_are_each_its_own, setup, teardown),
                cmocka_unit_test_setup_teardown(exec_in_the_child, setup, teardown),
                cmocka_unit_test_setup_teardown(exec_in_the_parent, setup, teardown),
                cmocka_unit_test_setup_teardown(exec_in_a_parent_that_has_all_from_its_own, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(the_parent_ends_first, setup, teardown),
                cmocka_unit_test_setup_teardown(those_given_up_are_counted, setup, teardown),
                cmocka_unit_test_setup_teardown(a_fork_costs_the_same_whatever_there_is, setup,
                                                teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
