/* Works in Lua until SIGUSR1; then its only thread ends, and with it the process: lastone
 * pthread|raw. pthread: its handlers of exit run; raw: a bare system call, with status 7. */
#include "tests/hosts/host.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int told;

static void on_signal(int sig)
{
        told = sig;
}

static void at_exit(void)
{
        printf("at exit\n");
}

int main(int argc, char **argv)
{
        lua_State *L = host_new();

        signal(SIGUSR1, on_signal);
        atexit(at_exit);
        printf("begin\n");
        fflush(stdout);
        while (!told)
                host_run(L, HOST_BURN "for i = 1, 20 do burn(1) end", "=lastone");
        if (argc > 1 && !strcmp(argv[1], "raw"))
                syscall(SYS_exit, 7);
        pthread_exit(NULL);
}
