/* Which worker answers for which process, over a recording that does not end: places and files are
 * given back. This program is also what its workers run. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/worker/wire.h"
#include "record/worker/worker.h"

#define USERS 40                        /* more than there are workers at a time */
#define FIRST 2000u

static pid_t start_of_user(uid_t uid)
{
        int up[2];
        char word;
        pid_t pid;

        assert_int_equal(pipe(up), 0);
        pid = fork();
        if (pid == 0) {
                close(STDOUT_FILENO);   /* nobody waits for the end of it when a test fails */
                close(STDERR_FILENO);
                if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ||
                    prctl(PR_SET_PDEATHSIG, SIGKILL) || write(up[1], "", 1) != 1)
                        _exit(1);
                for (;;)
                        pause();
        }
        close(up[1]);
        assert_int_equal(read(up[0], &word, 1), 1);
        close(up[0]);
        return pid;
}

static void end(pid_t pid)
{
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
}

/* Users that come and go: each has its worker, whose rights are its own. */
static void users_that_come_and_go(void **state)
{
        struct ls_workers *ws = ls_workers_new(NULL, NULL);
        struct ls_worker *held;
        uint64_t size, hash;
        char path[4096];
        pid_t pid;

        (void)state;
        if (geteuid()) {
                ls_workers_free(ws);
                skip();
        }
        pid = start_of_user(FIRST);
        held = ls_workers_of(ws, pid, NULL);
        ls_workers_hold(held, NULL);
        end(pid);
        for (unsigned i = 1; i < USERS; i++) {
                struct ls_worker *w;

                pid = start_of_user(FIRST + i);
                w = ls_workers_of(ws, pid, NULL);
                assert_int_equal(ls_worker_uid(w), FIRST + i);
                assert_ptr_not_equal(w, held);
                assert_int_equal(ls_worker_source(w, "/", "proc/self/status", path, &size, &hash),
                                 0);
                end(pid);
        }
        assert_int_equal(ls_worker_uid(held), FIRST);
        assert_int_equal(ls_worker_source(held, "/", "proc/self/status", path, &size, &hash), 0);
        ls_workers_free(ws);
}

/* All places are held: those that come get the least rights, never another's. */
static void users_that_stay(void **state)
{
        struct ls_workers *ws = ls_workers_new(NULL, NULL);
        pid_t pids[USERS];

        (void)state;
        if (geteuid()) {
                ls_workers_free(ws);
                skip();
        }
        for (unsigned i = 0; i < USERS; i++) {
                struct ls_worker *w;

                pids[i] = start_of_user(FIRST + i);
                w = ls_workers_of(ws, pids[i], NULL);
                assert_true(ls_worker_uid(w) == FIRST + i || ls_worker_uid(w) == 65534);
                ls_workers_hold(w, NULL);
        }
        for (unsigned i = 0; i < USERS; i++)
                end(pids[i]);
        ls_workers_free(ws);
}

/* More files than a worker knows: the first is known again afterwards. */
static void more_files_than_it_knows(void **state)
{
        struct ls_workers *ws = ls_workers_new(NULL, NULL);
        struct ls_worker *w = ls_workers_of(ws, getpid(), NULL);
        static struct ls_worker_file files[2 * LS_WORKER_FILES + 100];
        static char names[2 * LS_WORKER_FILES + 100][32];
        struct ls_cfi_row row;
        uint64_t function;

        (void)state;
        for (unsigned i = 0; i < sizeof(files) / sizeof(*files); i++) {
                snprintf(names[i], sizeof(names[i]),
                         i % 1000 ? "/no/%u" : "/lib64/ld-linux-x86-64.so.2", i);
                files[i].path = names[i];
                /* of no such file there is a row; -ENFILE and the like would be an answer about all
                 * further ones */
                assert_int_equal(ls_worker_row(w, &files[i], 0x2000, &row, &function) ==
                                         -2 /* ENOENT */,
                                 i % 1000 != 0);
        }
        ls_worker_row(w, &files[0], 0x2000, &row, &function);
        assert_false(files[0].bad);
        ls_workers_free(ws);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(users_that_come_and_go), cmocka_unit_test(users_that_stay),
                cmocka_unit_test(more_files_than_it_knows),
        };

        if (!strcmp(argv[0], LS_WORKER_ARGV0))
                return ls_worker_main(argc, (const char **)(uintptr_t)argv);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
