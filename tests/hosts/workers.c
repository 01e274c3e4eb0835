/* Threads with a VM each: workers THREADS ROUNDS LOOPS [IDLE]. Beside IDLE threads that sleep all
 * the time, ROUNDS times THREADS threads start together and end; each makes a VM, runs LOOPS pieces
 * of work in it, some in a coroutine, and closes it. Prints for each thread: name, number, CPU time
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
        printf("%s %ld %llu\n", name, syscall(SYS_gettid),
               (unsigned long long)host_ns(CLOCK_THREAD_CPUTIME_ID));
        return NULL;
}

static void *sleep_on(void *arg)
{
        for (;;)
                pause();
        return arg;
}

int main(int argc, char **argv)
{
        unsigned n[4] = { 0 };          /* threads, rounds, loops, idle */
        pthread_t thread[512], idle;

        for (int i = 1; i < argc && i <= 4; i++)
                n[i - 1] = (unsigned)atoi(argv[i]);
        if (argc < 4 || n[0] < 1 || n[0] > 512 || n[1] < 1) {
                fprintf(stderr, "usage: workers THREADS ROUNDS LOOPS [IDLE]\n");
                return 129;
        }
        loops = n[2];
        for (unsigned i = 0; i < n[3]; i++)
                if (pthread_create(&idle, NULL, sleep_on, NULL))
                        return 1;
        for (unsigned r = 0; r < n[1]; r++) {
                for (unsigned i = 0; i < n[0]; i++)
                        if (pthread_create(&thread[i], NULL, run, (void *)(uintptr_t)i))
                                return 1;
                for (unsigned i = 0; i < n[0]; i++)
                        pthread_join(thread[i], NULL);
        }
        return 0;
}
