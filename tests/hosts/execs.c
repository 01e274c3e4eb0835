/* Two threads try at a time to run what is not there, then the first works in Lua: execs TRIES MS.
 * Prints the CPU time of the work in ns. */
#include "tests/hosts/host.h"

#include <pthread.h>
#include <unistd.h>

static int tries;

static void *try_often(void *arg)
{
        char *const none[] = { NULL };

        for (int i = 0; i < tries; i++)
                if (execve("/no/such/program", none, none) == 0)
                        break;
        return arg;
}

int main(int argc, char **argv)
{
        uint64_t start;
        pthread_t other;
        char text[64];
        lua_State *L;

        if (argc != 3)
                return 129;
        tries = atoi(argv[1]);
        L = host_new();
        host_run(L, HOST_BURN, "=burn");
        if (pthread_create(&other, NULL, try_often, NULL))
                return 1;
        try_often(NULL);
        pthread_join(other, NULL);
        snprintf(text, sizeof(text), "burn(%d)", atoi(argv[2]));
        start = host_ns(CLOCK_THREAD_CPUTIME_ID);
        host_run(L, text, "=work");
        printf("%llu\n", (unsigned long long)(host_ns(CLOCK_THREAD_CPUTIME_ID) - start));
        lua_close(L);
        return 0;
}
