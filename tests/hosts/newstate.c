/* Calls the functions that an attached agent patches, without a pause: newstate THREADS. Half of
 * the threads make and close VMs, the others ask for one with an allocator that has no memory,
 * which is over in no time: so some thread is always in the first instructions. A VM that runs Lua
 * code is there too. At SIGTERM prints how many VMs were made and closed, and how many were asked
 * for. */
#include "tests/hosts/host.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

static atomic_int stop;
static atomic_ulong made, closed, tried;
static atomic_uint begun;

static void on_term(int sig)
{
        (void)sig;
        stop = 1;
}

static void *no_memory(void *data, void *p, size_t old, size_t new)
{
        (void)data, (void)p, (void)old, (void)new;
        return NULL;
}

static void *run(void *arg)
{
        int whole = (uintptr_t)arg % 2 == 0;

        begun++;
        while (!stop) {
                lua_State *L = whole ? luaL_newstate() : lua_newstate(no_memory, NULL);

                tried++;
                if (!L)
                        continue;
                made++;
                lua_close(L);
                closed++;
        }
        return NULL;
}

int main(int argc, char **argv)
{
        unsigned threads = argc == 2 ? (unsigned)atoi(argv[1]) : 0;
        pthread_t thread[64];
        lua_State *L;

        if (threads < 1 || threads > 64) {
                fprintf(stderr, "usage: newstate THREADS\n");
                return 129;
        }
        signal(SIGTERM, on_term);
        L = host_new();
        host_run(L, HOST_BURN, "=newstate");
        for (unsigned i = 0; i < threads; i++)
                if (pthread_create(&thread[i], NULL, run, (void *)(uintptr_t)i))
                        return 1;
        while (begun < threads)
                host_run(L, "burn(1)", "=newstate");
        printf("begin\n");
        fflush(stdout);
        while (!stop)
                host_run(L, "burn(10)", "=newstate");
        for (unsigned i = 0; i < threads; i++)
                pthread_join(thread[i], NULL);
        lua_close(L);
        printf("%lu %lu %lu\n", made, closed, tried);
        return 0;
}
