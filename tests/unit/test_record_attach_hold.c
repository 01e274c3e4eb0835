/* record/attach/hold.c and libsample/inject/patch.c together: a child patches functions that its
 * threads run all the time, mostly in the bytes that are replaced, while this process holds them as
 * the recorder does. Without that the child dies at once. */
#include "record/attach/hold.h"

#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "libsample/inject/patch.h"

#define NTHREADS 4
#define ROUNDS   40
#define REFUSED  77
#define ROOM     (1u << 20)

/* Each returns 7. A thread that loses its processor stands most often behind one of the pauses, of
 * which the first is within the five bytes that are replaced. */
static const struct { const char *name, *code; size_t size;
} functions[] = {
        { "closed",
          "\xf3\x90\x90\x90\x90"
          "\xf3\x90\xf3\x90\xf3\x90\xf3\x90"
          "\xb8\x07\x00\x00\x00\xc3",
          19 },
        { "first instruction of one byte",
          "\x90\xf3\x90\x90\x90"
          "\xf3\x90\xf3\x90\xf3\x90\xf3\x90"
          "\xb8\x07\x00\x00\x00\xc3",
          19 },
};

static struct ls_shm *shm;              /* shared with the child */
static struct ls_patch patch;
static volatile int stop;

static int replacement(void)
{
        return ((int (*)(void))patch.original)();
}

static void *call_often(void *arg)
{
        int (*volatile fn)(void) = (int (*)(void))patch.target;

        while (!stop)
                if (fn() != 7)
                        _exit(1);
        return arg;
}

static uint32_t wait_while(uint32_t state)
{
        while (atomic_load(&shm->hold) == state)
                syscall(SYS_futex, &shm->hold, FUTEX_WAIT, state, NULL, NULL, 0);
        return atomic_load(&shm->hold);
}

/* The entry is as it was until somebody is there who holds. */
static const char *call_holder(void)
{
        if (patch.closed)
                _exit(4);
        atomic_store(&shm->hold, LS_HOLD_WANTED);
        return wait_while(LS_HOLD_WANTED) == LS_HOLD_READY ? NULL : "not ready";
}

static const char *hold(const struct ls_patch *patches, size_t n)
{
        uint32_t state = LS_HOLD_READY;

        assert_int_equal(n, 1);
        shm->hold_ranges[0] = (struct ls_hold_range){ (uintptr_t)patches->target,
                                                      (uint32_t)patches->moved,
                                                      patches->closed != 0,
                                                      { patches->saved[0], patches->saved[1] },
                                                      0 };
        shm->n_hold = 1;
        if (!atomic_compare_exchange_strong(&shm->hold, &state, LS_HOLD_ASKED))
                return "given up";
        wait_while(LS_HOLD_ASKED);
        state = LS_HOLD_HELD;
        return atomic_compare_exchange_strong(&shm->hold, &state, LS_HOLD_CLAIMED) ? NULL
                                                                                   : "refused";
}

static void let_go(void)
{
        atomic_store(&shm->hold, LS_HOLD_NONE);
        syscall(SYS_futex, &shm->hold, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* The child's main thread is the agent's. */
static void patch_often(const char *code, size_t size, int held)
{
        const struct timespec ms = { 0, 1000000 };
        static const int faults[] = { SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP };
        int prot = PROT_READ | PROT_EXEC;
        char *room = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *page;
        pthread_t thread[NTHREADS];

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (unsigned i = 0; i < sizeof(faults) / sizeof(*faults); i++)
                signal(faults[i], SIG_DFL);     /* cmocka's handlers go on */
        munmap(room, ROOM);             /* free below: so how far the jump goes is known */
        page = mmap(room + ROOM / 2, 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        memcpy(page, code, size);
        mprotect(page, 4096, prot);
        patch = (struct ls_patch){
                .name = "f", .target = page, .size = size, .replacement = (void *)replacement
        };
        ls_patch_call = held ? call_holder : NULL;
        ls_patch_hold = held ? hold : NULL;
        ls_patch_let_go = let_go;
        for (int i = 0; i < NTHREADS; i++)
                if (pthread_create(&thread[i], NULL, call_often, NULL))
                        _exit(2);
        for (int i = 0; i < ROUNDS; i++) {
                nanosleep(&ms, NULL);
                if (ls_patch_install(&patch, 1, prot, 0) != 1)
                        _exit(patch.why && !strcmp(patch.why, "refused") ? REFUSED : 3);
                nanosleep(&ms, NULL);
                ls_patch_remove(&patch, 1, prot);
        }
        stop = 1;
        for (int i = 0; i < NTHREADS; i++)
                pthread_join(thread[i], NULL);
        _exit(0);
}

/* Returns the status of the child. */
static int run(unsigned function, int held)
{
        const struct timespec moment = { 0, 100000 };
        struct ls_memory memory = { .fd = -1, .shm = shm };
        struct ls_subject subject = { 0 };
        int status;
        pid_t pid;

        memset(shm, 0, sizeof(*shm));
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                alarm(100);
                patch_often(functions[function].code, functions[function].size, held);
        }
        subject.pid = pid;
        atomic_store(&shm->agent_tid, (uint32_t)pid);
        while (waitpid(pid, &status, WNOHANG) == 0) {
                ls_attach_hold(&subject, &memory);
                nanosleep(&moment, NULL);
        }
        return status;
}

static void test_held(void **state)
{
        (void)state;
        for (unsigned i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
                int status = run(i, 1);

                if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED) {
                        print_message("skipped: threads of a child may not be stopped here\n");
                        skip();
                }
                if (!WIFEXITED(status) || WEXITSTATUS(status))
                        print_error("%s: status %x\n", functions[i].name, status);
                assert_int_equal(status, 0);
        }
}

/* That the threads are where it matters: behind the first pause is the middle of the jump's
 * distance then, no instruction. */
static void test_not_held(void **state)
{
        (void)state;
        assert_true(WIFSIGNALED(run(0, 0)));
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_held),
                                            cmocka_unit_test(test_not_held) };

        shm = mmap(NULL, sizeof(*shm), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shm == MAP_FAILED)
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
