/* record/translate/counts.c: values of counters on their way into the trace, and a program that
 * lies about them. */
#include "record/translate/counts.h"
#include "tests/unit/translate_fixture.h"

#include <math.h>
#include <string.h>

static struct ls_counter *cell(uint32_t i)
{
        return &ls_shm_counters(memory.shm)[i];
}

static void name(uint32_t i, const char *as)
{
        memcpy(cell(i)->name, as, strlen(as));
        cell(i)->named = (uint32_t)strlen(as) + 1;
        if (memory.shm->counters <= i)
                memory.shm->counters = i + 1;
}

static uint64_t bits(double value)
{
        return ls_count_bits(value);
}

static void put(uint32_t i, uint64_t time_ns, double value)
{
        struct ls_rec_count rec = { time_ns, bits(value), i, 0 };

        assert_int_equal(fake_put(ring, LS_REC_COUNT, &rec, sizeof(rec), NULL, 0), 0);
}

static void put_cell(uint32_t i, uint64_t time_ns, double value)
{
        cell(i)->value = bits(value);
        cell(i)->time_ns = time_ns;
}

static void values_come_by_the_ring_and_by_the_table(void **state)
{
        (void)state;
        name(0, "a");
        name(1, "b");
        put(0, START_NS + 5, 1);
        put(0, START_NS + 10, 2);               /* too soon: passed over */
        put_cell(0, START_NS + 20, 3);          /* but this one holds at the end */
        put_cell(1, START_NS + 7, -0.5);        /* never came by a ring */
        finish();
        assert_int_equal(profile->n_counters, 3);
        assert_string_equal(profile->counters[1].name.s, "a");
        assert_int_equal(profile->processes[profile->counters[1].process].pid, 41);
        assert_int_equal(profile->counters[1].n, 2);
        assert_true(profile->counters[1].counts[0].value == 1 &&
                    profile->counters[1].counts[0].time_ns == START_NS + 5);
        assert_true(profile->counters[1].counts[1].value == 3 &&
                    profile->counters[1].counts[1].time_ns == START_NS + 20);
        assert_int_equal(profile->counters[2].n, 1);
        assert_true(profile->counters[2].counts[0].value == -0.5);
        assert_int_equal(translate.bad_records, 0);
}

/* Half an hour at 1 ms: 16384 rows, and as many each time that their distance has doubled. */
static void long_recordings_have_sparse_values(void **state)
{
        const uint32_t n = 1800 * 1000;
        const struct ls_counter_series *c;
        uint64_t widest = 0;

        (void)state;
        name(0, "n");
        for (uint32_t i = 0; i < n; i++) {
                put(0, START_NS + i * 1000000ull, i);
                put_cell(0, START_NS + i * 1000000ull, i);
                if (i % 4096 == 0)
                        run_drain();
        }
        finish();
        c = &profile->counters[1];
        assert_in_range(c->n, 6 * 16384, 8 * 16384);
        assert_true(c->counts[0].value == 0 && c->counts[c->n - 1].value == n - 1);
        for (uint32_t i = 1; i + 1 < c->n; i++)
                if (c->counts[i].time_ns - c->counts[i - 1].time_ns > widest)
                        widest = c->counts[i].time_ns - c->counts[i - 1].time_ns;
        assert_in_range(widest, 64 * 1000000, 256 * 1000000);
}

/* Each file begins with the values that hold. */
static void another_file_begins_anew(void **state)
{
        (void)state;
        name(0, "n");
        put(0, START_NS + 5, 1);
        run_drain();
        ls_counts_restart(&translate);
        assert_int_equal(translate.counts.one[0].time_ns, 0);
        put_cell(0, START_NS + 5, 1);
        ls_translate_settle(&translate);
        assert_int_equal(translate.counts.one[0].time_ns, START_NS + 5);
        finish();
}

static void a_program_that_lies(void **state)
{
        static const uint64_t times[] = { 0, 1, NOW_NS + 3000000000000ull, UINT64_MAX };
        struct ls_rec_count rec = { START_NS, bits(1), LS_COUNTERS, 0 };

        (void)state;
        name(0, "good");
        put(0, START_NS, 1);
        run_drain();
        put(0, START_NS + 9000000, NAN);
        put(0, START_NS + 9000000, INFINITY);
        put(0, START_NS + 9000000, -INFINITY);
        for (unsigned i = 2; i < 4; i++)
                put(0, times[i], 2);
        assert_int_equal(fake_put(ring, LS_REC_COUNT, &rec, sizeof(rec), NULL, 0), 0);
        rec.counter = UINT32_MAX;
        assert_int_equal(fake_put(ring, LS_REC_COUNT, &rec, sizeof(rec), NULL, 0), 0);
        assert_int_equal(fake_put(ring, LS_REC_COUNT, &rec, sizeof(rec) - 8, NULL, 0), 0);
        put(1, START_NS, 4);                    /* has no name: no error, it may come */
        memset(cell(2)->name, 'x', sizeof(cell(2)->name));
        cell(2)->named = UINT32_MAX;            /* longer than its place */
        put(2, START_NS, 5);
        cell(3)->named = LS_COUNTER_NAME + 2;
        put(3, START_NS, 5);
        name(4, "nan");
        put_cell(4, START_NS, NAN);
        name(5, "later");
        put_cell(5, UINT64_MAX, 1);
        memory.shm->counters = UINT32_MAX;
        finish();
        assert_int_equal(translate.bad_records, 8);
        assert_int_equal(profile->n_counters, 2);
        assert_int_equal(profile->counters[1].n, 1);
        assert_string_equal(profile->counters[1].name.s, "good");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(values_come_by_the_ring_and_by_the_table),
                TEST(long_recordings_have_sparse_values),
                TEST(another_file_begins_anew),
                TEST(a_program_that_lies),
        };

        return cmocka_run_group_tests_name("record_counts", tests, NULL, NULL);
}
