/* A program whose first thread has ended, by pthread_exit: leader THREADS. The others burn in Lua,
 * each in a VM of its own. */
#include "tests/hosts/host.h"

#include <pthread.h>

static void *run(void *arg)
{
        lua_State *L = host_new();

        host_run(L, HOST_BURN "while true do burn(5) end", "=leader");
        return arg;
}

int main(int argc, char **argv)
{
        unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
        pthread_t t;

        while (n--)
                if (pthread_create(&t, NULL, run, NULL))
                        return 1;
        printf("begin\n");
        fflush(stdout);
        pthread_exit(NULL);
}
