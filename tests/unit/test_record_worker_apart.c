/* What a process that reads hostile records may still do: write to what is open, and read files
 * that anybody may. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/worker/apart.h"

static struct shared { int out, fd; pid_t other; char done[32]; } *shared;

static int writes(void *ctx)
{
        (void)ctx;
        return write(shared->out, "trace", 5) == 5 ? 0 : -EIO;
}

/* Each as one who has taken the process over would try it; noted when it works. */
static int tries(void *ctx)
{
        char *const argv[] = { (char *)(uintptr_t)"true", NULL };
        char *done = shared->done;

        (void)ctx;
        done[0] = open("/tmp/luasample-apart", O_WRONLY | O_CREAT, 0600) >= 0;
        done[1] = open("/dev/null", O_RDWR) >= 0;
        done[2] = geteuid() != 0 && setresuid(0, 0, 0) == 0 && shared->fd;
        done[3] = kill(shared->other, SIGKILL) == 0;
        done[4] = ptrace(PTRACE_ATTACH, shared->other, NULL, NULL) == 0;
        done[5] = socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
        done[6] = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
                  MAP_FAILED;
        done[7] = fork() >= 0;
        done[8] = unlink("/tmp/luasample-apart-not") == 0 || errno == ENOENT;
        done[9] = chmod("/tmp", 0777) == 0;
        done[10] = isatty(0) || isatty(1) || isatty(2);
        done[11] = shared->fd && open("/etc/shadow", O_RDONLY) >= 0;
        execv("/bin/true", argv);
        done[12] = 2;                   /* we are still here */
        return -ENOTRECOVERABLE;
}

static int dies(void *ctx)
{
        (void)ctx;
        raise(SIGABRT);
        _exit(0);
}

static int hangs(void *ctx)
{
        volatile int ever = 1;

        (void)ctx;
        while (ever)
                ;
        return 0;
}

static void what_it_is_for(void **state)
{
        char text[8] = "";

        (void)state;
        assert_int_equal(ls_apart(writes, NULL, 10000), 0);
        assert_int_equal(pread(shared->out, text, 5, 0), 5);
        assert_string_equal(text, "trace");
}

static void nothing_else(void **state)
{
        pid_t pid = fork();

        (void)state;
        if (pid == 0)
                for (;;)
                        pause();
        assert_true(pid > 0);
        shared->other = pid;
        shared->fd = geteuid() == 0;    /* there is something to lose */
        assert_int_equal(ls_apart(tries, NULL, 10000), -ENOTRECOVERABLE);
        for (unsigned i = 0; i < 12; i++)
                if (shared->done[i])
                        fail_msg("try %u worked", i);
        assert_int_equal(shared->done[12], 2);
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
}

static void how_it_ends(void **state)
{
        (void)state;
        assert_int_equal(ls_apart(dies, NULL, 10000), -EPIPE);
        assert_int_equal(ls_apart(hangs, NULL, 50), -ETIME);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_it_is_for),
                cmocka_unit_test(nothing_else),
                cmocka_unit_test(how_it_ends),
        };

        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                      0);
        if (shared == MAP_FAILED || (shared->out = memfd_create("out", 0)) < 0)
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
