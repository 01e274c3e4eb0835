/* libsample/recording/threads.c: rings, ticks and exec, step by step as docs/handshakes.md has
 * them. The recorder is played by this file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libsample/agent.h"
#include "libsample/libc/real.h"
#include "libsample/recording/share.h"
#include "libsample/recording/threads.h"
#include "libsample/recording/notice.h"
#include "libsample/recording/tick_action.h"
#include "libsample/handler/vms.h"

#define RINGS 4u
#define SIZE  65536u
#define OTHER 4711                      /* a thread that is none of ours */

struct ls_agent ls_agent;
struct ls_lua_api ls_lua;
static uint64_t generation = 7;
static int has_handler = 1;

/* What threads.c calls of the rest of the agent. */
int ls_tick_action_is_installed(void)
{
        return has_handler;
}

int ls_tick_action_install(void)
{
        has_handler = 1;
        return 0;
}

void ls_agent_notice(const char *fmt, ...)
{
        (void)fmt;
}

int ls_share_grow(struct ls_shm *shm, size_t *mapped, uint32_t i)
{
        return ls_share_has(shm, *mapped, i) ? 0 : -1;
}

static struct ls_ring *ring_at(unsigned i)
{
        return (struct ls_ring *)((char *)ls_agent.shm +
                                  ls_ring_offset(SIZE, LS_RING_DATA + SIZE, i));
}

static int begin(void **state)
{
        struct ls_shm *shm = aligned_alloc(4096, LS_SHM_RINGS + RINGS * (LS_RING_DATA + SIZE));

        (void)state;
        if (!shm)
                return -1;
        memset(shm, 0, LS_SHM_RINGS + RINGS * (LS_RING_DATA + SIZE));
        shm->generation = generation;
        shm->ring_size = shm->small_size = SIZE;
        shm->ring_stride = LS_RING_DATA + SIZE;
        shm->ring_count = RINGS;
        shm->rings_used = 1;
        shm->interval_ns = 1000000;
        shm->timer = LS_TIMER_HELPER;
        shm->recording = 1;
        ls_agent = (struct ls_agent){ .shm = shm, .generation = &generation, .pid = getpid(),
                                       .mapped = ls_ring_offset(SIZE, LS_RING_DATA + SIZE, RINGS) };
        ring_at(0)->size = SIZE;
        ls_threads_restart();
        return 0;
}

static int end(void **state)
{
        (void)state;
        free(ls_agent.shm);
        return 0;
}

static struct ls_thread *make(int tid)
{
        struct ls_thread *t = ls_thread_make(tid);

        assert_non_null(t);
        return t;
}

static void unmake(struct ls_thread *t)
{
        ls_thread_unmake(t);
        ls_thread_free(t);
}

static void a_free_ring_becomes_a_threads(void **state)
{
        struct ls_thread *first = make(getpid()), *other = make(OTHER);

        (void)state;
        assert_ptr_equal(first->ring, ring_at(0));      /* the large one is the first thread's */
        assert_ptr_equal(other->ring, ring_at(1));
        assert_int_equal(ring_at(1)->tid, OTHER);
        assert_int_equal(ring_at(1)->claim, 1);
        assert_int_equal(ring_at(1)->thread, (uintptr_t)other);
        assert_int_equal(ls_agent.shm->rings_used, 2);
        unmake(other);
        unmake(first);
}

/* Though its thread has ended: the recorder has not taken all of it yet. */
static void a_ring_that_is_not_free_is_left_alone(void **state)
{
        struct ls_thread *t = make(OTHER), *next;

        (void)state;
        unmake(t);
        assert_int_equal(ring_at(1)->closing, 1);
        assert_int_equal(ring_at(1)->tid, OTHER);
        next = make(OTHER + 1);
        assert_ptr_equal(next->ring, ring_at(2));
        assert_int_equal(ring_at(1)->claim, 1);
        unmake(next);
        atomic_store(&ring_at(1)->closing, 0);          /* as the recorder gives it back */
        atomic_store(&ring_at(1)->tid, 0);
        next = make(OTHER + 2);
        assert_ptr_equal(next->ring, ring_at(1));
        assert_int_equal(ring_at(1)->claim, 2);
        unmake(next);
}

static void a_thread_that_ends_gives_its_ring_back(void **state)
{
        struct ls_thread *t = make((int)syscall(SYS_gettid));
        uint32_t request;

        (void)state;
        ls_thread_arm(t);
        request = ls_agent.shm->request;
        ls_thread_unmake(t);
        assert_int_equal(ring_at(0)->armed, 0);
        assert_int_equal(ring_at(0)->closing, 1);
        assert_int_equal(ring_at(0)->thread, 0);
        assert_int_equal(ls_agent.shm->request, request + 2);   /* for its ticks, and for its
                                                                 * ring */
        ls_thread_free(t);
}

static void ticks_are_asked_for_once(void **state)
{
        struct ls_thread *t = make((int)syscall(SYS_gettid));
        uint32_t request = ls_agent.shm->request;

        (void)state;
        ls_thread_arm(t);
        assert_int_equal(ring_at(0)->armed, 1);
        assert_int_equal(ls_agent.shm->request, request + 1);
        ls_thread_arm(t);
        assert_int_equal(ls_agent.shm->request, request + 1);
        unmake(t);
}

static void a_thread_of_the_agents_own_asks_for_none(void **state)
{
        struct ls_thread *t = make((int)syscall(SYS_gettid));

        (void)state;
        t->quiet = 1;
        ls_thread_arm(t);
        assert_int_equal(ring_at(0)->armed, 0);
        unmake(t);
}

/* A recorder that has lost its processor between its last look and the signal does not stop a
 * thread for ever. */
static void ticks_are_given_up_though_the_recorder_sends(void **state)
{
        struct ls_thread *t = make((int)syscall(SYS_gettid));
        uint32_t request;

        (void)state;
        ls_thread_arm(t);
        request = ls_agent.shm->request;
        atomic_store(&ring_at(0)->sending, 1);
        ls_thread_disarm(t);
        assert_int_equal(ring_at(0)->armed, 0);
        assert_int_equal(ls_agent.shm->request, request + 1);
        assert_true(ring_at(0)->disarmed_ns != 0);
        ls_thread_disarm(t);
        assert_int_equal(ls_agent.shm->request, request + 1);
        unmake(t);
}

static void nothing_is_armed_between_stop_and_go_on(void **state)
{
        struct ls_thread *t = make((int)syscall(SYS_gettid));

        (void)state;
        ls_threads_arm_all();
        assert_int_equal(ring_at(0)->armed, 1);
        ls_threads_stop();
        ls_threads_stop();              /* a second thread is about to exec */
        assert_int_equal(ring_at(0)->armed, 0);
        ls_threads_go_on();
        assert_int_equal(ring_at(0)->armed, 0);
        ls_threads_arm_all();           /* a VM is made meanwhile */
        assert_int_equal(ring_at(0)->armed, 0);
        ls_threads_go_on();
        assert_int_equal(ring_at(0)->armed, 1);
        unmake(t);
}

static _Atomic(_Atomic uint32_t *) word;
static _Atomic int answered;

static void *answer_later(void *arg)
{
        (void)arg;
        nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
        atomic_store(&answered, 1);
        atomic_store(atomic_load(&word), 0);
        return NULL;
}

/* Exec waits for the recorder: the word stands for 20 ms. */
static void wait_for(_Atomic uint32_t *stands)
{
        pthread_t recorder;

        atomic_store(stands, 1);
        atomic_store(&word, stands);
        atomic_store(&answered, 0);
        assert_int_equal(pthread_create(&recorder, NULL, answer_later, NULL), 0);
        assert_int_equal(ls_threads_wait_for_recorder(ls_agent.attached), 0);
        assert_int_equal(answered, 1);
        pthread_join(recorder, NULL);
}

static void an_exec_waits_while_the_recorder_sends(void **state)
{
        (void)state;
        wait_for(&ring_at(0)->sending);
}

static void an_exec_of_an_attached_process_waits_while_it_is_ticked(void **state)
{
        (void)state;
        atomic_store(&ring_at(0)->ticked, 1);
        /* The kernel removes the events of one that was started. */
        assert_int_equal(ls_threads_wait_for_recorder(ls_agent.attached), 0);
        ls_agent.attached = 1;
        wait_for(&ring_at(0)->ticked);
}

static void an_exec_does_not_wait_for_ever(void **state)
{
        (void)state;
        atomic_store(&ring_at(0)->sending, 1);
        assert_int_equal(ls_threads_wait_for_recorder(ls_agent.attached), -1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        const struct CMUnitTest tests[] = {
                TEST(a_free_ring_becomes_a_threads),
                TEST(a_ring_that_is_not_free_is_left_alone),
                TEST(a_thread_that_ends_gives_its_ring_back),
                TEST(ticks_are_asked_for_once),
                TEST(a_thread_of_the_agents_own_asks_for_none),
                TEST(ticks_are_given_up_though_the_recorder_sends),
                TEST(nothing_is_armed_between_stop_and_go_on),
                TEST(an_exec_waits_while_the_recorder_sends),
                TEST(an_exec_of_an_attached_process_waits_while_it_is_ticked),
                TEST(an_exec_does_not_wait_for_ever),
        };

        ls_libc_resolve();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
