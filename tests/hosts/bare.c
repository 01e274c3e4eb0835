/* A thread by a bare clone, with no thread data or with the first thread's, beside one that runs
 * Lua: bare none|shared. SIGUSR1 ends it. */
#include "tests/hosts/host.h"

#include <asm/prctl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK (1u << 20)
#define THREAD \
        (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

static volatile int no_data, ended;
static volatile long count;

static inline long call(long nr, long a, long b)
{
        long r;

        __asm__ volatile("syscall" : "=a"(r) : "0"(nr), "D"(a), "S"(b) : "rcx", "r11", "memory");
        return r;
}

/* Calls nothing of the C library. */
__attribute__((noinline, optimize("no-stack-protector"))) static int run(void *arg)
{
        (void)arg;
        if (no_data)
                call(SYS_arch_prctl, ARCH_SET_FS, 0);
        while (!ended)
                count++;
        return (int)call(SYS_exit, 0, 0);
}

static void on_signal(int sig)
{
        ended = sig;
}

int main(int argc, char **argv)
{
        lua_State *L = host_new();
        char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        no_data = argc > 1 && !strcmp(argv[1], "none");
        if (stack == MAP_FAILED || clone(run, stack + STACK - 64, THREAD, NULL) < 0)
                return 1;
        signal(SIGUSR1, on_signal);
        printf("begin\n");
        fflush(stdout);
        while (!ended)
                host_run(L, HOST_BURN "for i = 1, 20 do burn(1) end", "=bare");
        printf("%s\n", count ? "ran" : "did not run");
        return 0;
}
