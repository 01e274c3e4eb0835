/* A pool of threads that shrinks from its end, with a thread of Lua behind it in the list of the
 * process's threads: pool SECONDS. In each round POOL threads begin and one that runs Lua, which
 * uses some CPU time; then the pool ends, its last thread first, and then the one with Lua. An
 * attachment's agent is woken before each of these ends, so that it is likely to look at the
 * threads just then. Prints "begin", then how many threads have ended. */
#include "tests/hosts/host.h"

#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "formats/wire/shm.h"

#define POOL 12
#define DELAY_NS 100000                 /* at most, from the agent's waking to a thread's end */

static const char work[] = "local over = ... while not over() do local x = 0 for i = 1, 5e4 do x = "
                           "x + i % 7 end end\n";

static sem_t used, go_on;               /* by the thread with Lua, when it has used its CPU time; it
                                         * waits for the other then */
static atomic_uint ended;

static void wait_for(sem_t *sem)
{
        while (sem_wait(sem))
                ;
}

static void *wait_in_pool(void *end)
{
        wait_for(end);
        atomic_fetch_add(&ended, 1);
        return NULL;
}

static int is_over(lua_State *L)
{
        lua_pushboolean(L, host_ns(CLOCK_THREAD_CPUTIME_ID) >
                                   (uint64_t)lua_tonumber(L, lua_upvalueindex(1)));
        return 1;
}

static void burn(lua_State *L, unsigned ms)
{
        host_check(L, luaL_loadbuffer(L, work, sizeof(work) - 1, "=pool"));
        lua_pushnumber(L, (lua_Number)host_ns(CLOCK_THREAD_CPUTIME_ID) + ms * 1e6);
        lua_pushcclosure(L, is_over, 1);
        host_check(L, lua_pcall(L, 1, 0, 0));
}

static void *run_lua(void *arg)
{
        lua_State *L = host_new();

        burn(L, 2);
        sem_post(&used);
        wait_for(&go_on);
        burn(L, 1);
        lua_close(L);
        atomic_fetch_add(&ended, 1);
        return arg;
}

/* Looks for the memory that the agent shares with its recorder, and lets the agent have a look. */
static void wake_agent(void)
{
        static struct ls_shm *shm;
        unsigned long start;
        char line[512];
        FILE *maps;

        if (!shm && (maps = fopen("/proc/self/maps", "r"))) {
                while (!shm && fgets(line, sizeof(line), maps))
                        if (strstr(line, " rw-s ") && strstr(line, "luasample") &&
                            sscanf(line, "%lx", &start) == 1)
                                shm = (struct ls_shm *)start;
                fclose(maps);
        }
        if (shm)
                syscall(SYS_futex, &shm->detach, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static pthread_t begin(void *(*fn)(void *), void *arg)
{
        pthread_t thread;

        if (pthread_create(&thread, NULL, fn, arg)) {
                fprintf(stderr, "pool: no thread\n");
                exit(1);
        }
        return thread;
}

static void one_round(void)
{
        pthread_t pool[POOL], lua;
        sem_t end[POOL];

        for (int i = 0; i < POOL; i++) {
                sem_init(&end[i], 0, 0);
                pool[i] = begin(wait_in_pool, &end[i]);
        }
        lua = begin(run_lua, NULL);
        wake_agent();
        wait_for(&used);
        for (int i = POOL; i--;) {
                uint64_t until = host_ns(CLOCK_MONOTONIC) + (uint64_t)rand() % DELAY_NS;

                wake_agent();
                while (host_ns(CLOCK_MONOTONIC) < until)
                        ;
                sem_post(&end[i]);
                pthread_join(pool[i], NULL);
        }
        sem_post(&go_on);
        pthread_join(lua, NULL);
}

int main(int argc, char **argv)
{
        double seconds = argc > 1 ? atof(argv[1]) : 0;
        uint64_t end = host_ns(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);

        if (seconds <= 0) {
                fprintf(stderr, "usage: pool SECONDS\n");
                return 129;
        }
        sem_init(&used, 0, 0);
        sem_init(&go_on, 0, 0);
        puts("begin");
        fflush(stdout);
        while (host_ns(CLOCK_MONOTONIC) < end)
                one_round();
        printf("%u threads have ended\n", atomic_load(&ended));
        return 0;
}
