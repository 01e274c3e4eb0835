/* record/translate/drain.c: a ring and its thread, step by step as docs/handshakes.md has them.
 * The agent is played by this file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "record/translate/drain.h"
#include "tests/unit/record_fake.h"

#define TID 4711u                       /* of no thread: nothing is sent to it */

static struct ls_memory memory;
static struct ls_ring *ring;

static void begin(void)
{
        fake_memory(&memory, LS_MIN_RING);
        ring = ls_memory_ring(&memory, 0);
}

static void end(void)
{
        ls_memory_done(&memory);
}

/* The agent takes the ring for a thread. */
static void claim(struct ls_ring *r, uint32_t tid)
{
        atomic_store(&r->tid, tid);
        atomic_fetch_add(&r->claim, 1);
}

static unsigned records, closed;

static void on_record(void *ctx, unsigned i, unsigned kind, const void *body, uint32_t len)
{
        (void)ctx, (void)i, (void)kind, (void)body, (void)len;
        assert_int_equal(closed, 0);
        records++;
}

static void on_gap(void *ctx, unsigned i)
{
        (void)ctx, (void)i;
}

/* The ring is still the old thread's while it is told that it will be another's. */
static void on_closed(void *ctx, unsigned i)
{
        (void)ctx, (void)i;
        assert_int_equal(ring->tid, TID);
        assert_int_equal(ring->closing, 1);
        closed++;
}

static void drain(struct ls_drain *d)
{
        records = closed = 0;
        ls_drain_run(d, 0, 1);
}

static void begin_drain(struct ls_drain *d)
{
        const struct ls_drain_sink sink = { .record = on_record,
                                            .gap = on_gap,
                                            .closed = on_closed };

        begin();
        assert_int_equal(ls_drain_init(d, &memory, &sink), 0);
        claim(ring, TID);
        assert_int_equal(fake_source(ring, 1, "@a", 0), 0);
}

static void end_drain(struct ls_drain *d)
{
        ls_drain_done(d);
        end();
}

static void a_ring_stays_its_threads_while_that_lives(void **state)
{
        struct ls_drain d;

        (void)state;
        begin_drain(&d);
        drain(&d);
        assert_int_equal(records, 1);
        assert_int_equal(closed, 0);
        assert_int_equal(ring->tid, TID);
        end_drain(&d);
}

static void a_closing_ring_is_free_when_it_is_empty(void **state)
{
        struct ls_drain d;

        (void)state;
        begin_drain(&d);
        atomic_store(&ring->closing, 1);
        drain(&d);
        assert_int_equal(records, 1);
        assert_int_equal(closed, 1);
        assert_int_equal(ring->closing, 0);
        assert_int_equal(ring->tid, 0);
        drain(&d);                      /* and once only */
        assert_int_equal(closed, 0);
        end_drain(&d);
}

static void a_closing_ring_does_not_wait_for_an_open_record(void **state)
{
        struct ls_drain d;

        (void)state;
        begin_drain(&d);
        assert_non_null(fake_reserve(ring, LS_REC_SAMPLE, 8));
        drain(&d);
        assert_int_equal(d.abandoned, 0);
        atomic_store(&ring->closing, 1);
        drain(&d);
        assert_int_equal(d.abandoned, 1);
        assert_int_equal(ring->in_write, 0);
        assert_int_equal(ring->tid, 0);
        end_drain(&d);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_ring_stays_its_threads_while_that_lives),
                cmocka_unit_test(a_closing_ring_is_free_when_it_is_empty),
                cmocka_unit_test(a_closing_ring_does_not_wait_for_an_open_record),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
