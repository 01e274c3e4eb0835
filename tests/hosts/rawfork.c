/* A program whose thread makes a child by a bare system call each moment, which runs another
 * program: rawfork. The first thread runs Lua. It goes on until SIGTERM, and ends with 3 when a
 * child has not ended within 10 s. Says how many there were. */
#include "tests/hosts/host.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
        stop = sig;
}

static void *fork_often(void *arg)
{
        static char *const argv[] = { "true", NULL }, *const envp[] = { NULL };
        unsigned *count = arg;

        while (!stop) {
                long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
                uint64_t start = host_ns(CLOCK_MONOTONIC);
                const struct timespec moment = { 0, 100000 };

                if (pid == 0) {
                        execve("/bin/true", argv, envp);
                        _exit(1);
                }
                while (pid > 0 && waitpid((pid_t)pid, NULL, WNOHANG) == 0) {
                        nanosleep(&moment, NULL);
                        if (host_ns(CLOCK_MONOTONIC) - start < 10000000000u)
                                continue;
                        kill((pid_t)pid, SIGKILL);
                        printf("child %u does not end\n", *count);
                        fflush(stdout);
                        _exit(3);
                }
                ++*count;
        }
        return NULL;
}

int main(void)
{
        lua_State *L = host_new();
        unsigned count = 0;
        pthread_t thread;

        signal(SIGTERM, on_term);
        host_run(L, HOST_BURN, "=rawfork");
        if (pthread_create(&thread, NULL, fork_often, &count))
                return 1;
        printf("begin\n");
        fflush(stdout);
        while (!stop)
                host_run(L, "burn(5)", "=rawfork");
        pthread_join(thread, NULL);
        printf("%u children\n", count);
        return 0;
}
