/* A worker that blocks all signals: blocks MS [COUNT]. COUNT times (default 1) the first thread
 * runs MS ms of CPU time in Lua, and a second one, called "deaf", the same in a VM of its own with
 * all signals blocked. */
#include "tests/hosts/host.h"

#include <pthread.h>
#include <signal.h>

static void burn(lua_State *L, const char *ms)
{
        lua_getglobal(L, "burn");
        lua_pushstring(L, ms);
        host_check(L, lua_pcall(L, 1, 0, 0));
}

/* os.clock is of the process: the thread's own clock counts here */
static void burn_own(lua_State *L, unsigned ms)
{
        uint64_t end = host_ns(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000ull;

        while (host_ns(CLOCK_THREAD_CPUTIME_ID) < end)
                burn(L, "1");
}

static void *deaf(void *arg)
{
        lua_State *L;
        sigset_t all;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, NULL);
        pthread_setname_np(pthread_self(), "deaf");
        L = host_new();
        host_run(L, HOST_BURN, "=blocks");
        burn_own(L, *(const unsigned *)arg);
        lua_close(L);
        return NULL;
}

int main(int argc, char **argv)
{
        unsigned ms = argc > 1 ? (unsigned)atoi(argv[1]) : 0,
                 count = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
        lua_State *L = host_new();
        pthread_t thread;

        host_run(L, HOST_BURN, "=blocks");
        printf("begin\n");
        fflush(stdout);
        while (count--) {
                if (pthread_create(&thread, NULL, deaf, &ms))
                        return 1;
                burn_own(L, ms);
                pthread_join(thread, NULL);
        }
        lua_close(L);
        return 0;
}
