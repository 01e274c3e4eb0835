/* The ring: a writer that a timer signal interrupts in the middle of its own writes, against a
 * reader thread that checks every record; exact losses; records that nobody finishes. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "libsample/agent.h"
#include "libsample/thread.h"
#include "libsample/handler/ring_writer.h"

struct ls_agent ls_agent;
static uint64_t generation = 7;
static struct ls_ring *ring;

/* For the reader thread: cmocka's asserts jump back into the main thread's stack. */
#define check(condition)                                                                           \
        do {                                                                                       \
                if (!(condition)) {                                                                \
                        print_error("%s:%d: %s\n", __FILE__, __LINE__, #condition);                \
                        abort();                                                                   \
                }                                                                                  \
        } while (0)

struct body { uint64_t seq; uint32_t source, words; };  /* source 0: thread, 1: handler; words of
                                                         * fill follow */

static void new_ring(uint32_t size)
{
        size_t total = LS_SHM_RINGS + LS_RING_DATA + size;

        free(ls_agent.shm);
        ls_agent.shm = aligned_alloc(4096, (total + 4095) & ~(size_t)4095);
        memset(ls_agent.shm, 0, total);
        ls_agent.shm->generation = generation;
        ls_agent.generation = &generation;
        ring = (struct ls_ring *)((char *)ls_agent.shm + LS_SHM_RINGS);
        ring->size = size;
}

static int put(uint64_t seq, uint32_t source, uint32_t words, unsigned flags)
{
        struct body *b = ls_ring_reserve(ring, LS_REC_SAMPLE, sizeof *b + words * 8, flags);

        if (!b)
                return -1;
        b->seq = seq;
        b->source = source;
        b->words = words;
        for (uint32_t i = 0; i < words; i++)
                ((uint64_t *)(b + 1))[i] = seq ^ i;
        ls_ring_commit(ring, b);
        return 0;
}

/* Takes the next record as the recorder does. Returns its body, NULL when there is none or it is
 * not finished. */
static const struct body *next(uint64_t *tail)
{
        for (;;) {
                if (*tail == atomic_load_explicit(&ring->head, memory_order_acquire))
                        return NULL;
                struct ls_ring_rec *rec = (struct ls_ring_rec *)((char *)ring + LS_RING_DATA +
                                                                 (*tail & (ring->size - 1)));
                uint32_t state = atomic_load_explicit(&rec->state, memory_order_acquire);

                check(state == LS_RING_STATE(*tail, LS_RING_DONE) ||
                      state == LS_RING_STATE(*tail, LS_RING_OPEN));
                if (state != LS_RING_STATE(*tail, LS_RING_DONE))
                        return NULL;
                uint32_t size = LS_RING_SIZE(rec->size_kind);

                check(size >= 8 && size % 8 == 0 &&
                      (*tail & (ring->size - 1)) + size <= ring->size);
                *tail += size;
                if (LS_RING_KIND(rec->size_kind) == LS_REC_SAMPLE)
                        return (const struct body *)(rec + 1);
                check(LS_RING_KIND(rec->size_kind) == LS_REC_PAD);
        }
}

static atomic_ulong handler_sent, handler_lost;
static atomic_int stop;

static void on_tick(int sig)
{
        static uint64_t seq;

        (void)sig;
        if (put(seq, 1, (uint32_t)(seq % 40), 0))
                handler_lost++;
        else
                handler_sent++;
        seq++;
}

struct seen { uint64_t n[2], last[2]; };

static void *reader(void *arg)
{
        struct seen *seen = arg;
        uint64_t tail = 0;
        const struct body *b;

        for (;;) {
                int done = stop;

                while ((b = next(&tail))) {
                        check(b->source < 2);
                        for (uint32_t i = 0; i < b->words; i++)
                                check(((const uint64_t *)(b + 1))[i] == (b->seq ^ i));
                        check(!seen->n[b->source] || b->seq > seen->last[b->source]);
                        seen->last[b->source] = b->seq;
                        seen->n[b->source]++;
                        atomic_store_explicit(&ring->tail, tail, memory_order_release);
                }
                atomic_store_explicit(&ring->tail, tail, memory_order_release);
                if (done)
                        return NULL;
        }
}

static void interrupted_writer(void **state)
{
        struct sigaction sa = { .sa_handler = on_tick };
        struct itimerval fast = { { 0, 100 }, { 0, 100 } }, off = { { 0, 0 }, { 0, 0 } };
        struct seen seen = { { 0 }, { 0 } };
        uint64_t sent = 0, lost = 0;
        pthread_t thread;
        sigset_t set;

        (void)state;
        new_ring(1 << 16);
        sigemptyset(&set);
        sigaddset(&set, SIGALRM);
        pthread_sigmask(SIG_BLOCK, &set, NULL);         /* the reader inherits it: ticks come to the
                                                         * writer */
        pthread_create(&thread, NULL, reader, &seen);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
        sigaction(SIGALRM, &sa, NULL);
        setitimer(ITIMER_REAL, &fast, NULL);
        for (uint64_t i = 0; i < 1000000 || handler_sent < 500; i++) {
                if (put(i, 0, (uint32_t)(i % 100), 0))
                        lost++;
                else
                        sent++;
        }
        setitimer(ITIMER_REAL, &off, NULL);
        stop = 1;
        pthread_join(thread, NULL);
        assert_int_equal(seen.n[0], sent);
        assert_int_equal(seen.n[1], handler_sent);
        assert_true(sent > 0 && handler_sent >= 500);
        assert_int_equal(ring->in_write, 0);
        (void)lost;
}

static void full_ring_keeps_a_quarter_for_definitions(void **state)
{
        unsigned samples = 0, definitions = 0;
        uint64_t tail = 0;

        (void)state;
        new_ring(1 << 16);
        while (!put(samples, 0, 13, 0))
                samples++;
        while (!put(samples + definitions, 0, 13, LS_RESERVE_DEFINITION))
                definitions++;
        assert_int_equal(samples, (1 << 16) * 3 / 4 / 128);
        assert_int_equal(definitions, (1 << 16) / 4 / 128);
        for (unsigned i = 0; i < samples + definitions; i++)
                assert_non_null(next(&tail));
        assert_null(next(&tail));
        ring->tail = tail;
        assert_int_equal(put(0, 0, 13, 0), 0);
        assert_int_equal(put(1, 0, 13, 0), 0);
}

static void too_large_is_refused(void **state)
{
        (void)state;
        new_ring(1 << 16);
        assert_null(ls_ring_reserve(ring, LS_REC_SAMPLE, ls_ring_largest(ring) + 1,
                                    LS_RESERVE_DEFINITION));
        assert_null(ls_ring_reserve(ring, LS_REC_SAMPLE, SIZE_MAX - 64, LS_RESERVE_DEFINITION));
        assert_int_equal(ring->in_write, 0);
        void *body = ls_ring_reserve(ring, LS_REC_SAMPLE, ls_ring_largest(ring), 0);

        assert_non_null(body);
        assert_int_equal(ring->in_write, 1);
        ls_ring_commit(ring, body);
        assert_int_equal(ring->in_write, 0);
}

static void an_open_record_stops_the_reader_but_not_the_writer(void **state)
{
        uint64_t tail = 0;
        void *open;

        (void)state;
        new_ring(1 << 16);
        put(1, 0, 2, 0);
        open = ls_ring_reserve(ring, LS_REC_SAMPLE, sizeof(struct body), 0);
        put(2, 0, 2, 0);
        assert_non_null(next(&tail));
        assert_null(next(&tail));
        assert_int_equal(ring->in_write, 1);
        memset(open, 0, sizeof(struct body));
        ls_ring_commit(ring, open);
        assert_non_null(next(&tail));
        assert_int_equal(next(&tail)->seq, 2);
}

static void a_ring_that_fills_calls_once(void **state)
{
        uint64_t tail = 0;
        unsigned n = 0;

        (void)state;
        new_ring(1 << 16);
        errno = 77;
        while (ring->head + 128 <= (1 << 16) / 8 * 3) {
                assert_int_equal(put(n++, 0, 13, 0), 0);
                assert_int_equal(ls_agent.shm->filling, 0);
        }
        assert_int_equal(ls_agent.shm->request, 0);
        for (unsigned i = 0; i < 3; i++)
                put(n++, 0, 13, 0);
        assert_int_equal(ls_agent.shm->filling, 1);
        assert_int_equal(ls_agent.shm->request, 1);
        /* The reader looks, and cannot keep up. */
        ls_agent.shm->filling = 0;
        next(&tail);
        ring->tail = tail;
        put(n++, 0, 13, 0);
        assert_int_equal(ls_agent.shm->request, 2);
        ls_agent.shm->filling = 0;
        while (next(&tail))
                ;
        ring->tail = tail;
        put(n++, 0, 13, 0);
        assert_int_equal(ls_agent.shm->filling, 0);
        assert_int_equal(errno, 77);
}

static void a_forked_child_has_no_ring(void **state)
{
        struct ls_thread thread = { 0 };

        (void)state;
        new_ring(1 << 16);
        ls_thread_own = &thread;
        ls_thread_own_generation = generation;
        assert_ptr_equal(ls_thread_self(), &thread);
        generation = 0;                 /* as the kernel does to a MADV_WIPEONFORK page */
        assert_null(ls_thread_self());
        generation = 7;
        ls_thread_own = NULL;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(interrupted_writer),
                cmocka_unit_test(full_ring_keeps_a_quarter_for_definitions),
                cmocka_unit_test(too_large_is_refused),
                cmocka_unit_test(an_open_record_stops_the_reader_but_not_the_writer),
                cmocka_unit_test(a_ring_that_fills_calls_once),
                cmocka_unit_test(a_forked_child_has_no_ring),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
