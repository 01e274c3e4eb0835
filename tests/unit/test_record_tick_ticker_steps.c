/* record/tick/: the ticks of a thread, step by step as docs/handshakes.md has them. The agent is
 * played by this file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/tick/request.h"
#include "record/tick/signal.h"
#include "record/tick/ticker.h"
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

static struct { unsigned arms, disarms; int fails; uint32_t sending, ticked; } seen;

static int fake_arm(struct ls_ticker *t, struct ls_tick_thread *h)
{
        (void)t;
        seen.arms++;
        seen.sending = h->ring->sending;
        seen.ticked = h->ring->ticked;
        return seen.fails;
}

static void fake_disarm(struct ls_tick_thread *h)
{
        seen.disarms++;
        seen.ticked = h->ring->ticked;
}

static const struct ls_tick_source fake_source_of_ticks = {
        .name = "fake", .arm = fake_arm, .disarm = fake_disarm
};

static struct ls_ticker *begin_ticks(void)
{
        struct ls_ticker *t = calloc(1, sizeof(*t) + sizeof(t->threads[0]));

        begin();
        assert_non_null(t);
        t->shm = memory.shm;
        t->source = &fake_source_of_ticks;
        t->pid = getpid();
        t->interval_ns = 1000000;
        t->n = 1;
        t->threads[0] = (struct ls_tick_thread){ .ticker = t, .ring = ring, .event_fd = -1,
                                                 .cpu_fd = -1, .look_fd = -1 };
        memset(&seen, 0, sizeof(seen));
        claim(ring, TID);
        return t;
}

static void end_ticks(struct ls_ticker *t)
{
        free(t);
        end();
}

static void nothing_is_opened_unasked(void **state)
{
        struct ls_ticker *t = begin_ticks();

        (void)state;
        assert_int_equal(ls_ticker_follow(t), 0);
        assert_int_equal(seen.arms, 0);
        assert_int_equal(ring->sending, 0);
        assert_int_equal(ring->ticked, 0);
        end_ticks(t);
}

/* While it is opened both words stand: who gives ticks up waits for one of them. */
static void what_is_wanted_is_opened(void **state)
{
        struct ls_ticker *t = begin_ticks();

        (void)state;
        atomic_store(&ring->armed, 1);
        assert_int_equal(ls_ticker_follow(t), 0);
        assert_int_equal(seen.arms, 1);
        assert_int_equal(seen.sending, 1);
        assert_int_equal(seen.ticked, 1);
        assert_int_equal(ring->sending, 0);
        assert_int_equal(ring->ticked, 1);
        assert_int_equal(ls_ticker_follow(t), 0);       /* once */
        assert_int_equal(seen.arms, 1);
        end_ticks(t);
}

static void what_cannot_be_opened_is_not_ticked(void **state)
{
        struct ls_ticker *t = begin_ticks();

        (void)state;
        seen.fails = -ESRCH;
        atomic_store(&ring->armed, 1);
        assert_int_equal(ls_ticker_follow(t), 1);
        assert_int_equal(ring->sending, 0);
        assert_int_equal(ring->ticked, 0);
        assert_int_equal(t->n_armed, 0);
        seen.fails = 0;
        assert_int_equal(ls_ticker_follow(t), 0);
        assert_int_equal(ring->ticked, 1);
        end_ticks(t);
}

/* ticked stands until no tick can come any more. */
static void what_is_given_up_is_closed(void **state)
{
        struct ls_ticker *t = begin_ticks();

        (void)state;
        atomic_store(&ring->armed, 1);
        ls_ticker_follow(t);
        atomic_store(&ring->armed, 0);
        ls_ticker_follow(t);
        assert_int_equal(seen.disarms, 1);
        assert_int_equal(seen.ticked, 1);
        assert_int_equal(ring->ticked, 0);
        assert_int_equal(t->n_armed, 0);
        end_ticks(t);
}

static void a_closing_ring_is_not_ticked(void **state)
{
        struct ls_ticker *t = begin_ticks();

        (void)state;
        atomic_store(&ring->armed, 1);
        ls_ticker_follow(t);
        atomic_store(&ring->closing, 1);
        ls_ticker_follow(t);
        assert_int_equal(seen.disarms, 1);
        assert_int_equal(ring->ticked, 0);
        end_ticks(t);
}

/* The next thread may even have the number of the last one. */
static void another_thread_in_the_ring_is_opened_anew(void **state)
{
        struct ls_ticker *t = begin_ticks();

        (void)state;
        atomic_store(&ring->armed, 1);
        ls_ticker_follow(t);
        claim(ring, TID);
        ls_ticker_follow(t);
        assert_int_equal(seen.disarms, 1);
        assert_int_equal(seen.arms, 2);
        claim(ring, TID + 1);
        ls_ticker_follow(t);
        assert_int_equal(seen.disarms, 2);
        assert_int_equal(seen.arms, 3);
        assert_int_equal(t->threads[0].tid, TID + 1);
        end_ticks(t);
}

/* The agent gives the ticks up when the recorder, which has seen that they are wanted, is about
 * to store into the ring for the first time, and finds that none is being sent: from then on its
 * thread may be in exec. */
static int given_up;

static void give_up_now(int sig)
{
        (void)sig;
        mprotect(ring, LS_RING_DATA, PROT_READ | PROT_WRITE);
        atomic_store(&ring->armed, 0);
        given_up += !atomic_load(&ring->sending) && !atomic_load(&ring->ticked);
}

static void at_the_first_store(struct sigaction *before)
{
        const struct sigaction sa = { .sa_handler = give_up_now };

        given_up = 0;
        sigaction(SIGSEGV, &sa, before);
        mprotect(ring, LS_RING_DATA, PROT_READ);
}

static void nothing_is_opened_once_it_is_given_up(void **state)
{
        struct ls_ticker *t = begin_ticks();
        struct sigaction before;

        (void)state;
        atomic_store(&ring->armed, 1);
        at_the_first_store(&before);
        assert_int_equal(ls_ticker_follow(t), 0);
        sigaction(SIGSEGV, &before, NULL);
        assert_int_equal(given_up, 1);
        assert_int_equal(seen.arms, 0);
        assert_int_equal(ring->sending, 0);
        assert_int_equal(ring->ticked, 0);
        end_ticks(t);
}

/* --- a tick that the recorder sends itself --- */

static _Atomic int spinning;
static _Atomic pid_t spinner;

static void *spin(void *arg)
{
        (void)arg;
        atomic_store(&spinner, (pid_t)syscall(SYS_gettid));
        while (atomic_load(&spinning))
                ;
        return NULL;
}

static struct ls_ticker *begin_sending(pthread_t *thread)
{
        struct ls_ticker *t = begin_ticks();
        struct ls_tick_thread *h = &t->threads[0];
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, LS_TICK_SIGNAL);
        /* The thread has it blocked from its start: when it is handled we say. */
        pthread_sigmask(SIG_BLOCK, &set, NULL);
        atomic_store(&spinning, 1);
        atomic_store(&spinner, 0);
        assert_int_equal(pthread_create(thread, NULL, spin, NULL), 0);
        while (!atomic_load(&spinner))
                sched_yield();
        claim(ring, (uint32_t)spinner);
        h->tid = h->inner_tid = spinner;
        h->claim = ring->claim;
        assert_int_equal(ls_tick_look_open(h), 0);
        return t;
}

static void end_sending(struct ls_ticker *t, pthread_t thread)
{
        atomic_store(&spinning, 0);
        pthread_join(thread, NULL);
        ls_tick_look_close(&t->threads[0]);
        end_ticks(t);
}

/* On a busy machine it may wait for its turn, and is seen to run all the same, or is seen a
 * moment later. */
static int try_at(struct ls_tick_thread *h, uint64_t now)
{
        int sent = 0;

        for (int i = 0; i < 1000 && !sent; i++) {
                sent = ls_tick_try(h, now);
                if (!sent && h->outstanding)
                        break;
        }
        return sent;
}

static void one_tick_is_on_its_way_at_a_time(void **state)
{
        pthread_t thread;
        struct ls_ticker *t = begin_sending(&thread);
        struct ls_tick_thread *h = &t->threads[0];
        const uint64_t now = 1000000000;

        (void)state;
        atomic_store(&ring->armed, 1);
        assert_int_equal(try_at(h, now), 1);
        assert_int_equal(h->sent, 1);
        assert_int_equal(ring->sending, 0);
        assert_int_equal(try_at(h, now + 1000000), 0);          /* until it is handled */
        assert_int_equal(h->sent, 1);
        atomic_fetch_add(&ring->ticks_handled, 1);
        assert_int_equal(try_at(h, now + 2000000), 1);
        assert_int_equal(h->sent, 2);
        assert_int_equal(try_at(h, now + 3000000), 0);
        assert_int_equal(try_at(h, now + 203000000), 1);        /* or it is given up */
        assert_int_equal(h->sent, 3);
        end_sending(t, thread);
}

static void no_tick_is_sent_that_is_not_wanted(void **state)
{
        pthread_t thread;
        struct ls_ticker *t = begin_sending(&thread);
        struct ls_tick_thread *h = &t->threads[0];

        (void)state;
        try_at(h, 1000000000);
        assert_int_equal(h->sent, 0);
        atomic_store(&ring->armed, 1);
        claim(ring, (uint32_t)spinner);         /* another thread of that number */
        try_at(h, 2000000000);
        assert_int_equal(h->sent, 0);
        assert_int_equal(ring->sending, 0);
        end_sending(t, thread);
}

static void no_tick_is_sent_once_it_is_given_up(void **state)
{
        pthread_t thread;
        struct ls_ticker *t = begin_sending(&thread);
        struct ls_tick_thread *h = &t->threads[0];
        struct sigaction before;

        (void)state;
        atomic_store(&ring->armed, 1);
        at_the_first_store(&before);
        assert_int_equal(try_at(h, 1000000000), 1);
        sigaction(SIGSEGV, &before, NULL);
        assert_int_equal(given_up, 1);
        assert_int_equal(h->sent, 0);
        assert_int_equal(ring->sending, 0);
        end_sending(t, thread);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_is_opened_unasked),
                cmocka_unit_test(what_is_wanted_is_opened),
                cmocka_unit_test(what_cannot_be_opened_is_not_ticked),
                cmocka_unit_test(what_is_given_up_is_closed),
                cmocka_unit_test(a_closing_ring_is_not_ticked),
                cmocka_unit_test(another_thread_in_the_ring_is_opened_anew),
                cmocka_unit_test(nothing_is_opened_once_it_is_given_up),
                cmocka_unit_test(one_tick_is_on_its_way_at_a_time),
                cmocka_unit_test(no_tick_is_sent_that_is_not_wanted),
                cmocka_unit_test(no_tick_is_sent_once_it_is_given_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
