/* libsample/attach/recorder.c: whether the recorder of an attached process has ended, which may be
 * before its agent looks for the first time. Recorders are children of this program's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsample/agent.h"
#include "libsample/attach/recorder.h"

struct ls_agent ls_agent;
static struct ls_shm shm;

static pid_t begin(void)
{
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0)
                for (;;)
                        pause();
        ls_agent.shm = &shm;
        shm.recorder_pid = (uint32_t)pid;
        return pid;
}

static void kill_it(pid_t pid, int reaped)
{
        siginfo_t info;

        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | (reaped ? 0 : WNOWAIT)), 0);
}

static void ends_later(void **state)
{
        (void)state;
        for (int reaped = 0; reaped < 2; reaped++) {
                pid_t pid = begin();

                ls_recorder_remember();
                assert_int_equal(ls_recorder_state(), LS_RECORDER_THERE);
                kill_it(pid, reaped);
                assert_int_equal(ls_recorder_state(), LS_RECORDER_GONE);
                if (!reaped)
                        kill_it(pid, 1);
        }
}

static void ended_before(void **state)
{
        (void)state;
        for (int reaped = 0; reaped < 2; reaped++) {
                pid_t pid = begin();

                kill_it(pid, reaped);
                ls_recorder_remember();
                assert_int_equal(ls_recorder_state(), LS_RECORDER_GONE);
                if (!reaped)
                        kill_it(pid, 1);
        }
}

/* One of another pid namespace has no number here: it may live for ever. */
static void unseen(void **state)
{
        (void)state;
        ls_agent.shm = &shm;
        shm.recorder_pid = 0;
        ls_recorder_remember();
        assert_int_equal(ls_recorder_state(), LS_RECORDER_THERE);
}

/* Its number belongs to another process now. */
static void number_used_again(void **state)
{
        pid_t pid = begin();

        (void)state;
        ls_recorder_remember();
        shm.recorder_pid = 1;
        assert_int_equal(ls_recorder_state(), LS_RECORDER_GONE);
        kill_it(pid, 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ends_later),
                cmocka_unit_test(ended_before),
                cmocka_unit_test(unseen),
                cmocka_unit_test(number_used_again),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
