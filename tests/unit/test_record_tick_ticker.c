/* record/tick/ticker.c with many threads: a child process plays the agent on the shared memory, its
 * threads come and go, and each gets its ticks; also one that sleeps five times as often as it is
 * ticked, so that its event is off in a virtual machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/tick/perf.h"
#include "record/tick/signal.h"
#include "record/tick/ticker.h"
#include "tests/unit/record_fake.h"

#define INTERVAL_NS 1000000ull
#define LIFE_NS 50000000ull             /* CPU time of a thread */
#define THREADS 60u
#define AT_ONCE 6u
#define SLEEPER_NS 400000000ull

static struct ls_memory memory;
static __thread struct ls_ring *my_ring;

static uint64_t cpu_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void on_tick(int sig)
{
        (void)sig;
        if (!my_ring)
                abort();                /* a tick for a thread that wants none */
        atomic_fetch_add(&my_ring->ticks_handled, 1);
}

static void request(void)
{
        atomic_fetch_add(&memory.shm->request, 1);
        syscall(SYS_futex, &memory.shm->request, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void take_ring(void)
{
        uint32_t tid = (uint32_t)syscall(SYS_gettid);

        for (unsigned i = 0;; i = (i + 1) % memory.ring_count) {
                uint32_t none = 0;

                my_ring = ls_memory_ring(&memory, i);
                if (atomic_compare_exchange_strong(&my_ring->tid, &none, tid))
                        break;
        }
        atomic_fetch_add(&my_ring->claim, 1);
}

/* Works for its life's time, wants ticks meanwhile, and says how many came for how much. */
static void *work(void *arg)
{
        uint32_t *ret = arg, before;

        take_ring();
        before = atomic_load(&my_ring->ticks_handled);
        atomic_store(&my_ring->armed, 1);
        request();
        while (cpu_ns() < LIFE_NS)      /* a look at the clock is the kernel's time, which perf does
                                         * not tick */
                for (volatile unsigned i = 0; i < 20000; i++)
                        ;
        atomic_store(&my_ring->armed, 0);
        request();
        while (atomic_load(&my_ring->sending))
                ;
        usleep(1000);                   /* the last one may be on its way */
        *ret = atomic_load(&my_ring->ticks_handled) - before;
        atomic_store(&my_ring->tid, 0);
        return NULL;
}

/* The child: threads one group after the other. Exits with 0 when each had its ticks. */
static void play_agent(void)
{
        pthread_t threads[AT_ONCE];
        uint32_t ticks[AT_ONCE], poor = 0, sum = 0;

        signal(LS_TICK_SIGNAL, on_tick);
        for (unsigned done = 0; done < THREADS; done += AT_ONCE) {
                for (unsigned i = 0; i < AT_ONCE; i++)
                        pthread_create(&threads[i], NULL, work, &ticks[i]);
                for (unsigned i = 0; i < AT_ONCE; i++) {
                        pthread_join(threads[i], NULL);
                        poor += ticks[i] < LIFE_NS / INTERVAL_NS / 2;
                        sum += ticks[i];
                }
        }
        fprintf(stderr, "%u ticks in %u threads of %llu ms, %u threads with less than half\n", sum,
                THREADS, (unsigned long long)(LIFE_NS / 1000000), poor);
        _exit(poor > THREADS / 10 || sum < THREADS * (LIFE_NS / INTERVAL_NS) * 7 / 10 ? 1 : 0);
}

/* The child: a thread that works for 0.2 ms and sleeps, again and again. */
static void play_sleeper(void)
{
        uint32_t ticks, due = SLEEPER_NS / INTERVAL_NS;

        signal(LS_TICK_SIGNAL, on_tick);
        take_ring();
        atomic_store(&my_ring->armed, 1);
        request();
        while (cpu_ns() < SLEEPER_NS) {
                for (uint64_t until = cpu_ns() + 200000; cpu_ns() < until;)
                        ;
                usleep(50);
        }
        atomic_store(&my_ring->armed, 0);
        request();
        while (atomic_load(&my_ring->sending))
                ;
        usleep(1000);
        ticks = atomic_load(&my_ring->ticks_handled);
        fprintf(stderr, "%u ticks in %u ms of a thread that sleeps\n", ticks, due);
        /* On a busy machine the thread waits for a processor at many looks: a tick is sent then,
         * too. */
        _exit(ticks < due / 2 || ticks > due * 4 ? 1 : 0);
}

static unsigned count_files(void)
{
        DIR *d = opendir("/proc/self/fd");
        unsigned n = 0;

        while (d && readdir(d))
                n++;
        closedir(d);
        return n;
}

/* Returns how many ticks the recorder sent itself. */
static uint64_t run(enum ls_timer timer, void (*play)(void))
{
        struct ls_ticker *t = NULL;
        uint64_t sent;
        unsigned files;
        int status = -1, gate[2];
        pid_t pid;
        char c = 0;

        fake_memory(&memory, LS_MIN_RING);
        assert_int_equal(pipe(gate), 0);
        files = count_files();
        pid = fork();
        if (pid == 0) {
                close(gate[1]);
                if (read(gate[0], &c, 1) != 1)
                        _exit(2);
                play();
        }
        assert_int_equal(ls_ticker_start(&memory, pid, timer, INTERVAL_NS, -1, &t), 0);
        assert_int_equal(write(gate[1], &c, 1), 1);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        ls_ticker_stop(t);
        assert_int_equal(status, 0);
        assert_int_equal(ls_ticker_timer(t), timer);
        assert_int_equal(atomic_load(&ls_ticker_totals(t)->failed), 0);
        assert_int_equal(count_files(), files);
        sent = atomic_load(&ls_ticker_totals(t)->sent);
        ls_ticker_free(t);
        close(gate[0]);
        close(gate[1]);
        ls_memory_done(&memory);
        return sent;
}

static void need_perf(void)
{
        if (ls_ticker_perf_probe(getpid()) < 0) {
                print_message("perf events are not allowed here\n");
                skip();
        }
}

static void threads_with_perf(void **state)
{
        (void)state;
        need_perf();
        run(LS_TIMER_PERF, play_agent);
}

static void sleeper_with_perf(void **state)
{
        uint64_t sent;

        (void)state;
        need_perf();
        sent = run(LS_TIMER_PERF, play_sleeper);
        print_message("%llu of them sent by the recorder\n", (unsigned long long)sent);
        if (ls_ticker_is_virtual())
                assert_true(sent > SLEEPER_NS / INTERVAL_NS / 2);
}

static void threads_with_helper(void **state)
{
        (void)state;
        if (ls_ticker_helper_probe(getpid()) < 0) {
                print_message("/proc does not say what another process does here\n");
                skip();
        }
        run(LS_TIMER_HELPER, play_agent);
}

/* Both while it has a thread to look after, and while it has none. */
static void a_ring_that_fills_is_passed_on(void **state)
{
        struct ls_ticker *t = NULL;
        struct pollfd p = { .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .events = POLLIN };
        uint64_t n;

        (void)state;
        need_perf();
        signal(LS_TICK_SIGNAL, on_tick);
        fake_memory(&memory, LS_MIN_RING);
        take_ring();
        assert_int_equal(ls_ticker_start(&memory, getpid(), LS_TIMER_PERF, INTERVAL_NS, p.fd, &t),
                         0);
        for (unsigned armed = 0; armed < 2; armed++) {
                atomic_store(&my_ring->armed, armed);
                request();
                usleep(20000);
                assert_int_equal(poll(&p, 1, 0), 0);
                atomic_store(&memory.shm->filling, 1);
                request();
                assert_int_equal(poll(&p, 1, 20000), 1);
                atomic_store(&memory.shm->filling, 0);
                usleep(20000);
                while (read(p.fd, &n, sizeof(n)) == sizeof(n))
                        ;
        }
        atomic_store(&my_ring->armed, 0);
        ls_ticker_free(t);
        ls_memory_done(&memory);
        close(p.fd);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(threads_with_perf),
                                            cmocka_unit_test(sleeper_with_perf),
                                            cmocka_unit_test(threads_with_helper),
                                            cmocka_unit_test(a_ring_that_fills_is_passed_on) };

        return cmocka_run_group_tests_name("record_ticker", tests, NULL, NULL);
}
