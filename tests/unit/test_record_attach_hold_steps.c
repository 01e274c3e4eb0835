/* record/attach/hold.c: how threads are held, step by step as docs/handshakes.md has them. The
 * agent is played by this file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/attach/hold.h"

static _Atomic int spinning;

static void *spin(void *arg)
{
        (void)arg;
        while (atomic_load(&spinning))
                ;
        return NULL;
}

static struct ls_shm *shm;
static pid_t child;
static struct ls_subject subject;

static void begin_hold(void)
{
        shm = mmap(NULL, sizeof(*shm), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(shm, MAP_FAILED);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                pthread_t thread;

                prctl(PR_SET_PDEATHSIG, SIGKILL);
                atomic_store(&spinning, 1);
                pthread_create(&thread, NULL, spin, NULL);
                atomic_store(&shm->agent_tid,
                             (uint32_t)getpid()); /* the main thread is the agent's */
                for (;;)
                        pause();
        }
        while (!atomic_load(&shm->agent_tid))
                sched_yield();
        memset(&subject, 0, sizeof(subject));
        subject.pid = child;
        /* an entry that could not be closed, where nobody is: all that run have to stand still */
        shm->hold_ranges[0] = (struct ls_hold_range){ .at = 16, .size = 5 };
        shm->n_hold = 1;
}

static void end_hold(void)
{
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        munmap(shm, sizeof(*shm));
}

static void look(void)
{
        struct ls_memory m = { .fd = -1, .shm = shm };

        ls_attach_hold(&subject, &m);
}

/* Waits until the recorder has left a state, with a limit for hangs. Returns the next one. */
static uint32_t state_after(uint32_t state)
{
        for (int i = 0; i < 20000 && atomic_load(&shm->hold) == state; i++)
                usleep(1000);
        return atomic_load(&shm->hold);
}

/* Threads of the child that are stopped by a tracer. */
static unsigned count_stopped(void)
{
        char path[64], text[512], *p;
        unsigned n = 0;

        for (pid_t tid = child; tid < child + 64; tid++) {
                FILE *f;

                snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)child, (int)tid);
                f = fopen(path, "re");
                if (!f)
                        continue;
                if (fgets(text, sizeof(text), f) && (p = strrchr(text, ')')) && p[2] == 't')
                        n++;
                fclose(f);
        }
        return n;
}

static void an_agent_that_asks_for_nothing_is_left_alone(void **state)
{
        (void)state;
        begin_hold();
        look();
        assert_int_equal(shm->hold, LS_HOLD_NONE);
        end_hold();
}

static void an_agent_that_calls_and_does_not_ask_is_refused(void **state)
{
        (void)state;
        begin_hold();
        atomic_store(&shm->hold, LS_HOLD_WANTED);
        look();
        assert_int_equal(shm->hold, LS_HOLD_REFUSED);
        look();                         /* that stays until the agent has seen it */
        assert_int_equal(shm->hold, LS_HOLD_REFUSED);
        end_hold();
}

static void an_agent_that_is_gone_is_refused(void **state)
{
        (void)state;
        begin_hold();
        atomic_store(&shm->agent_tid, 0);
        atomic_store(&shm->hold, LS_HOLD_ASKED);
        look();
        assert_int_equal(shm->hold, LS_HOLD_REFUSED);
        end_hold();
}

static struct {
        int claims, lets_go;            /* what it does */
        uint32_t ready, answer, late;   /* what it found */
        int claimed;
        unsigned stopped, stopped_after;
} agent;

static void *play_agent(void *arg)
{
        uint32_t ready = LS_HOLD_READY, held = LS_HOLD_HELD;

        (void)arg;
        agent.ready = state_after(LS_HOLD_WANTED);
        atomic_compare_exchange_strong(&shm->hold, &ready, LS_HOLD_ASKED);
        agent.answer = state_after(LS_HOLD_ASKED);
        if (!agent.claims)
                agent.late = state_after(LS_HOLD_HELD);
        agent.claimed = atomic_compare_exchange_strong(&shm->hold, &held, LS_HOLD_CLAIMED);
        agent.stopped = count_stopped();
        if (agent.lets_go)
                atomic_store(&shm->hold, LS_HOLD_NONE);
        return NULL;
}

/* Returns 0 when threads of a child may not be stopped here. */
static int hold_with(int claims, int lets_go)
{
        pthread_t thread;

        memset(&agent, 0, sizeof(agent));
        agent.claims = claims;
        agent.lets_go = lets_go;
        begin_hold();
        atomic_store(&shm->hold, LS_HOLD_WANTED);
        assert_int_equal(pthread_create(&thread, NULL, play_agent, NULL), 0);
        look();
        pthread_join(thread, NULL);
        agent.stopped_after = count_stopped();
        assert_int_equal(agent.ready, LS_HOLD_READY);
        if (agent.answer == LS_HOLD_REFUSED) {
                print_message("skipped: threads of a child may not be stopped here\n");
                end_hold();
                return 0;
        }
        assert_int_equal(agent.answer, LS_HOLD_HELD);
        return 1;
}

static void threads_stand_from_the_answer_until_the_agent_lets_go(void **state)
{
        (void)state;
        if (!hold_with(1, 1))
                skip();
        assert_true(agent.claimed);
        assert_int_equal(agent.stopped, 1);
        assert_int_equal(agent.stopped_after, 0);
        assert_int_equal(shm->hold, LS_HOLD_NONE);
        end_hold();
}

static void an_answer_that_is_not_claimed_is_taken_back(void **state)
{
        (void)state;
        if (!hold_with(0, 0))
                skip();
        assert_int_equal(agent.late, LS_HOLD_REFUSED);
        assert_false(agent.claimed);
        assert_int_equal(agent.stopped_after, 0);
        assert_int_equal(shm->hold, LS_HOLD_REFUSED);
        end_hold();
}

static void threads_go_on_though_the_agent_does_not_let_go(void **state)
{
        (void)state;
        if (!hold_with(1, 0))
                skip();
        assert_true(agent.claimed);
        assert_int_equal(agent.stopped, 1);
        assert_int_equal(agent.stopped_after, 0);
        assert_int_equal(shm->hold, LS_HOLD_CLAIMED);
        end_hold();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_agent_that_asks_for_nothing_is_left_alone),
                cmocka_unit_test(an_agent_that_calls_and_does_not_ask_is_refused),
                cmocka_unit_test(an_agent_that_is_gone_is_refused),
                cmocka_unit_test(threads_stand_from_the_answer_until_the_agent_lets_go),
                cmocka_unit_test(an_answer_that_is_not_claimed_is_taken_back),
                cmocka_unit_test(threads_go_on_though_the_agent_does_not_let_go),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
