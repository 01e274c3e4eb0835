/* Threads with a VM each: workers THREADS ROUNDS LOOPS. ROUNDS times THREADS threads start together and end; each makes a
 * VM, runs LOOPS pieces of work in it, some in a coroutine, and closes it. Prints for each thread: name, number, CPU time
 * in ns. */
#include "tests/hosts/host.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const work =
        "local loops = ...\n"
        "local function numbers(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end\n"
        "local function tables(n) local t = {} for i = 1, n do t[i] = { i } end return #t end\n"
        "local function body() while true do numbers(20000) coroutine.yield() end end\n"
        "local step = coroutine.wrap(body)\n"
        "for i = 1, loops do numbers(30000) tables(200) step() end\n";

static unsigned loops;

static void *run(void *arg)
{
        unsigned number = (unsigned)(uintptr_t)arg;
        lua_State *L;
        char name[16];

        snprintf(name, sizeof(name), "worker%u", number % 1000);
        pthread_setname_np(pthread_self(), name);
        L = host_new();
        host_check(L, luaL_loadbuffer(L, work, __builtin_strlen(work), "=workers"));
        lua_pushinteger(L, (lua_Integer)loops);
        host_check(L, lua_pcall(L, 1, 0, 0));
        lua_close(L);
        printf("%s %ld %llu\n", name, syscall(SYS_gettid), (unsigned long long)host_ns(CLOCK_THREAD_CPUTIME_ID));
        return NULL;
}

int main(int argc, char **argv)
{
        unsigned threads = argc == 4 ? (unsigned)atoi(argv[1]) : 0, rounds = argc == 4 ? (unsigned)atoi(argv[2]) : 0;
        pthread_t thread[512];

        if (threads < 1 || threads > 512 || rounds < 1) {
                fprintf(stderr, "usage: workers THREADS ROUNDS LOOPS\n");
                return 129;
        }
        loops = (unsigned)atoi(argv[3]);
        for (unsigned r = 0; r < rounds; r++) {
                for (unsigned i = 0; i < threads; i++)
                        if (pthread_create(&thread[i], NULL, run, (void *)(uintptr_t)i))
                                return 1;
                for (unsigned i = 0; i < threads; i++)
                        pthread_join(thread[i], NULL);
        }
        return 0;
}
