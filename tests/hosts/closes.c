/* A thread that runs Lua, and one on the same processor and ahead of it that makes and closes VMs:
 * closes SECONDS. Prints how many were closed. */
#include "tests/hosts/host.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static atomic_int over;
static unsigned long closed;

static int on_one_processor(void)
{
        cpu_set_t set;
        int cpu = 0;

        if (sched_getaffinity(0, sizeof(set), &set))
                return -1;
        while (!CPU_ISSET(cpu, &set))
                cpu++;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        return sched_setaffinity(0, sizeof(set), &set);
}

static void *make_and_close(void *arg)
{
        int err = pthread_setschedparam(pthread_self(), SCHED_FIFO, &(struct sched_param){ 1 });

        if (err) {
                fprintf(stderr, "closes: %s\n", strerror(err));
                exit(77);
        }
        prctl(PR_SET_TIMERSLACK, 1);
        for (; !atomic_load(&over); closed++) {
                lua_State *L = luaL_newstate();

                usleep(60);             /* and wakes in the middle of the other's tick now and
                                         * then */
                lua_close(L);
        }
        return arg;
}

int main(int argc, char **argv)
{
        double seconds = argc > 1 ? atof(argv[1]) : 0;
        uint64_t end = host_ns(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);
        pthread_t thread;
        lua_State *L;

        if (seconds <= 0) {
                fprintf(stderr, "usage: closes SECONDS\n");
                return 129;
        }
        L = host_new();
        host_run(L, HOST_BURN, "=closes");
        if (on_one_processor() || pthread_create(&thread, NULL, make_and_close, NULL))
                return 1;
        while (host_ns(CLOCK_MONOTONIC) < end)
                host_run(L, "burn(10)", "=burn");
        atomic_store(&over, 1);
        pthread_join(thread, NULL);
        lua_close(L);
        printf("%s closed\n", closed > 1000 ? "many" : "few");
        return 0;
}
