/* record/translate/drain.c: what is committed arrives once and in order; what is not, is waited for
 * or given up; garbage neither stops nor crashes the drainer. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/translate/drain.h"
#include "tests/unit/record_fake.h"

static struct ls_memory memory;
static struct ls_drain drain;
static struct ls_ring *ring;
static struct { uint64_t records, gaps, next, wrong, bytes; uint32_t longest; } seen;

/* Records of these tests: a number, and as many bytes with its low byte as it says. */
struct numbered { uint64_t number; uint32_t fill; };

static void on_record(void *ctx, unsigned i, unsigned kind, const void *body, uint32_t len)
{
        const struct numbered *n = body;
        const uint8_t *fill = (const uint8_t *)(n + 1);

        (void)ctx, (void)i;
        seen.records++;
        seen.bytes += len;
        if (len > seen.longest)
                seen.longest = len;
        if (kind != LS_REC_TEXT)
                return;
        if (len < sizeof(*n) || n->fill > len - sizeof(*n) || n->number < seen.next) {
                seen.wrong++;
                return;
        }
        seen.next = n->number + 1;
        for (uint32_t b = 0; b < n->fill; b++)
                seen.wrong += fill[b] != (uint8_t)n->number;
}

static void on_gap(void *ctx, unsigned i)
{
        (void)ctx, (void)i;
        seen.gaps++;
}

static int setup(void **state)
{
        struct ls_drain_sink sink = { on_record, on_gap, NULL, NULL };

        (void)state;
        memset(&seen, 0, sizeof(seen));
        fake_memory(&memory, LS_MIN_RING);
        ring = ls_memory_ring(&memory, 0);
        return ls_drain_init(&drain, &memory, &sink);
}

static int teardown(void **state)
{
        (void)state;
        ls_drain_done(&drain);
        ls_memory_done(&memory);
        return 0;
}

static int put_number(uint64_t number, uint32_t fill)
{
        struct numbered n = { number, fill };
        uint8_t bytes[256];

        memset(bytes, (int)(uint8_t)number, sizeof(bytes));
        return fake_put(ring, LS_REC_TEXT, &n, sizeof(n), bytes, fill);
}

static void in_order_through_many_turns(void **state)
{
        uint64_t written = 0;

        (void)state;
        for (int round = 0; round < 300; round++) {
                for (uint32_t i = 0; i < 100; i++)
                        if (put_number(written, (uint32_t)(written * 7 % 200)) == 0)
                                written++;
                ls_drain_run(&drain, 0, 1);
        }
        assert_true(written > 20000);
        assert_int_equal(seen.records, written);
        assert_int_equal(seen.next, written);
        assert_int_equal(seen.wrong, 0);
        assert_int_equal(drain.bad_records + drain.abandoned, 0);
}

static void waits_for_an_open_record(void **state)
{
        struct numbered *body;

        (void)state;
        put_number(0, 8);
        body = fake_reserve(ring, LS_REC_TEXT, sizeof(*body));
        put_number(2, 8);
        ls_drain_run(&drain, 0, 1);
        assert_int_equal(seen.records, 1);
        body->number = 1;
        fake_commit(ring, body);
        ls_drain_run(&drain, 0, 2);
        assert_int_equal(seen.records, 3);
        assert_int_equal(seen.gaps, 0);
}

static void gives_up_when_nobody_writes(void **state)
{
        (void)state;
        fake_reserve(ring, LS_REC_SAMPLE, 64);
        put_number(2, 8);
        atomic_store(&ring->in_write, 0);
        ls_drain_run(&drain, 0, 1);
        assert_int_equal(seen.records, 1);
        assert_int_equal(seen.gaps, 1);
        assert_int_equal(drain.abandoned, 1);
}

static void gives_up_when_the_process_is_gone(void **state)
{
        (void)state;
        fake_reserve(ring, LS_REC_SAMPLE, 64);
        put_number(2, 8);
        ls_drain_run(&drain, 0, 1);
        assert_int_equal(seen.records, 0);
        ls_drain_run(&drain, 1, 2);
        assert_int_equal(seen.records, 1);
        assert_int_equal(drain.abandoned, 1);
        assert_true(atomic_load(&ring->tail) == atomic_load(&ring->head));
}

/* in_write stays above 0 for ever: a longjmp out of the write. A thread that takes ticks is not in
 * there any more; one that takes none may be stopped in the middle of it. */
static void gives_up_a_write_left_by_longjmp(void **state)
{
        (void)state;
        fake_reserve(ring, LS_REC_SAMPLE, 64);
        put_number(2, 8);
        ls_drain_run(&drain, 0, 1000000000);
        ls_drain_run(&drain, 0, 9000000000);
        assert_int_equal(seen.records, 0);
        atomic_store(&ring->signals, 5000);
        ls_drain_run(&drain, 0, 9500000000);
        assert_int_equal(seen.records, 1);
        assert_int_equal(drain.abandoned, 1);
}

static void bad_headers_are_skipped_over(void **state)
{
        static const uint32_t sizes[] = { 0, 4, 12, 1u << 20, 0xffffff };

        (void)state;
        for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
                struct ls_ring_rec *rec;

                put_number(2 * i, 16);
                rec = fake_at(ring, ring->head);
                put_number(2 * i + 1, 16);
                rec->size_kind = LS_RING_SIZE_KIND(sizes[i], LS_REC_TEXT);
                ls_drain_run(&drain, 0, 1);
        }
        assert_int_equal(drain.bad_records, 5);
        assert_int_equal(seen.gaps, 5);
        assert_int_equal(seen.records, 5);
        put_number(100, 16);
        ls_drain_run(&drain, 0, 1);
        assert_int_equal(seen.records, 6);
}

static void a_head_that_lies(void **state)
{
        static const uint64_t heads[] = { UINT64_MAX, 1ull << 40, LS_MIN_RING + 8, 13,
                                          UINT64_MAX / 2 + 4 };

        (void)state;
        for (unsigned i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
                atomic_store(&ring->head, heads[i]);
                ls_drain_run(&drain, 0, 1);
        }
        assert_true(drain.bad_records >= 4);
        ls_drain_run(&drain, 1, 2);
}

/* A chain of records as it should be, then damage in it. */
static void fill_with_chain(uint64_t *words, uint64_t start, uint64_t *seed)
{
        for (uint32_t at = 0; at < LS_MIN_RING / 8;) {
                uint32_t n = 1 + (uint32_t)(fake_random(seed) % 40);

                if (n > LS_MIN_RING / 8 - at)
                        n = LS_MIN_RING / 8 - at;
                words[at] = LS_RING_STATE(start + at * 8,
                                          fake_random(seed) % 16 ? LS_RING_DONE : LS_RING_OPEN) |
                            (uint64_t)LS_RING_SIZE_KIND(n * 8, fake_random(seed) % 32) << 32;
                for (uint32_t i = 1; i < n; i++)
                        words[at + i] = fake_random(seed);
                at += n;
        }
        for (uint64_t flips = fake_random(seed) % 64; flips; flips--)
                words[fake_random(seed) % (LS_MIN_RING / 8)] ^= 1ull << fake_random(seed) % 64;
}

/* It ends each time, and gives out nothing longer than the ring. */
static void garbage(void **state)
{
        uint64_t seed = 88172645463325252ull;

        (void)state;
        for (int round = 0; round < 400; round++) {
                drain.rings[0].tail &= ~(uint64_t)(LS_MIN_RING - 1);    /* where a record starts */
                fill_with_chain((uint64_t *)((char *)ring + LS_RING_DATA), drain.rings[0].tail,
                                &seed);
                atomic_store(&ring->head,
                             round % 5 ? drain.rings[0].tail + LS_MIN_RING : fake_random(&seed));
                atomic_store(&ring->in_write, (uint32_t)fake_random(&seed) % 2);
                ls_drain_run(&drain, round % 2, (uint64_t)round * 1000000000);
        }
        assert_true(seen.records > 1000);
        assert_true(drain.bad_records > 100);
        assert_true(drain.abandoned > 100);
        assert_true(seen.longest < LS_MIN_RING);
}

/* Another process writes as fast as it can and is killed in the middle; each record that it counted
 * has arrived. */
static void a_writer_that_is_killed(void **state)
{
        _Atomic uint64_t *counted =
                mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        uint64_t kill_at = 40000;
        int status;
        pid_t pid;

        (void)state;
        pid = fork();
        if (pid == 0)
                for (uint64_t n = 0;;)
                        if (put_number(n, (uint32_t)(n % 200)) == 0)
                                atomic_store(counted, ++n);
        assert_true(pid > 0);
        while (seen.records < kill_at)
                ls_drain_run(&drain, 0, 1);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        ls_drain_run(&drain, 1, 2);
        assert_int_equal(seen.wrong, 0);
        assert_true(seen.records == atomic_load(counted) ||
                    seen.records == atomic_load(counted) + 1);
        assert_true(drain.abandoned <= 1);
        munmap(counted, 4096);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(in_order_through_many_turns, setup, teardown),
                cmocka_unit_test_setup_teardown(waits_for_an_open_record, setup, teardown),
                cmocka_unit_test_setup_teardown(gives_up_when_nobody_writes, setup, teardown),
                cmocka_unit_test_setup_teardown(gives_up_when_the_process_is_gone, setup, teardown),
                cmocka_unit_test_setup_teardown(gives_up_a_write_left_by_longjmp, setup, teardown),
                cmocka_unit_test_setup_teardown(bad_headers_are_skipped_over, setup, teardown),
                cmocka_unit_test_setup_teardown(a_head_that_lies, setup, teardown),
                cmocka_unit_test_setup_teardown(garbage, setup, teardown),
                cmocka_unit_test_setup_teardown(a_writer_that_is_killed, setup, teardown),
        };

        return cmocka_run_group_tests_name("record_drain", tests, NULL, NULL);
}
