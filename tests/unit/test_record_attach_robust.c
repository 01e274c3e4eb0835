/* record/attach/robust.c: the memory that agents share with a recorder says when that has ended,
 * however it did, and what one of them writes into its memory hides it from no other. The recorder
 * is a child of this program's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/wire/shm.h"
#include "record/attach/robust.h"

#define N 3
#define PAGE 4096

static struct ls_shm *shm[N];
static int fds[N];

static int make(void **state)
{
        (void)state;
        for (int i = 0; i < N; i++) {
                fds[i] = memfd_create("shm", MFD_CLOEXEC);
                if (fds[i] < 0 || ftruncate(fds[i], 2 * PAGE))
                        return -1;
                shm[i] = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fds[i], 0);
                if (shm[i] == MAP_FAILED)
                        return -1;
        }
        return 0;
}

static int drop(void **state)
{
        (void)state;
        for (int i = 0; i < N; i++) {
                munmap(shm[i], 2 * PAGE);
                close(fds[i]);
        }
        return 0;
}

/* A recorder of all, which has let go of number left (-1 = none), and waits for its end. */
static pid_t begin(int left)
{
        unsigned entries[N] = { 0 };
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid) {
                while (!atomic_load(&shm[N - 1]->counters))
                        usleep(1000);
                return pid;
        }
        for (int i = 0; i < N; i++)
                entries[i] = ls_robust_begin(fds[i]);
        if (left >= 0)
                ls_robust_end(entries[left]);
        atomic_store(&shm[N - 1]->counters, 1);
        for (;;)
                pause();
}

static void kill_it(pid_t pid)
{
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void killed(void **state)
{
        pid_t pid = begin(-1);

        (void)state;
        for (int i = 0; i < N; i++) {
                assert_int_equal(atomic_load(&shm[i]->recorder_thread), pid);
                assert_false(ls_shm_recorder_has_ended(shm[i]));
        }
        kill_it(pid);
        for (int i = 0; i < N; i++)
                assert_true(ls_shm_recorder_has_ended(shm[i]));
}

static void stopped_is_not_ended(void **state)
{
        pid_t pid = begin(-1);
        int status;

        (void)state;
        assert_int_equal(kill(pid, SIGSTOP), 0);
        assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
        for (int i = 0; i < N; i++)
                assert_false(ls_shm_recorder_has_ended(shm[i]));
        kill_it(pid);
        assert_true(ls_shm_recorder_has_ended(shm[0]));
}

static void those_that_were_left(void **state)
{
        (void)state;
        for (int left = 0; left < N; left++) {
                pid_t pid;

                atomic_store(&shm[N - 1]->counters, 0);
                pid = begin(left);
                kill_it(pid);
                for (int i = 0; i < N; i++)
                        assert_int_equal(ls_shm_recorder_has_ended(shm[i]), i != left);
        }
}

/* The kernel reads no word of them but one: not even what would be an entry's pointer. */
static void hostile_memory(void **state)
{
        pid_t pid = begin(-1);

        (void)state;
        memset(shm[1], 0xff, PAGE);
        kill_it(pid);
        assert_true(ls_shm_recorder_has_ended(shm[0]));
        assert_true(ls_shm_recorder_has_ended(shm[2]));
}

static void *in_thread(void *ctx)
{
        *(unsigned *)ctx = ls_robust_begin(fds[0]);
        return NULL;
}

/* It may end before the process does. */
static void other_threads_do_not(void **state)
{
        unsigned entry = 1;
        pthread_t thread;

        (void)state;
        assert_int_equal(pthread_create(&thread, NULL, in_thread, &entry), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(entry, 0);
        assert_int_equal(atomic_load(&shm[0]->recorder_thread), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(killed, make, drop),
                cmocka_unit_test_setup_teardown(stopped_is_not_ended, make, drop),
                cmocka_unit_test_setup_teardown(those_that_were_left, make, drop),
                cmocka_unit_test_setup_teardown(hostile_memory, make, drop),
                cmocka_unit_test_setup_teardown(other_threads_do_not, make, drop),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
