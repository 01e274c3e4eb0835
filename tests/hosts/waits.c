/* Threads that wait in different ways, each in a function of a VM of its own: waits MS. Prints for
 * each thread: name, number, and the ns between the start of its VM and its end. For
 * tests/integration/wall. */
#include "tests/hosts/host.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned ms;
static sem_t never;

static int in_poll(lua_State *L)
{
        lua_pushboolean(L, poll(NULL, 0, (int)ms) == 0);
        return 1;
}

static int in_read(lua_State *L)
{
        int fds[2];
        char c;

        if (pipe(fds))
                return luaL_error(L, "no pipe");
        /* The other end is closed by the first thread, which sleeps for as long. */
        lua_getglobal(L, "share");
        *(int *)lua_touserdata(L, -1) = fds[1];
        lua_pushboolean(L, read(fds[0], &c, 1) == 0);
        close(fds[0]);
        return 1;
}

static int in_semaphore(lua_State *L)
{
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += ms / 1000;
        until.tv_nsec += (long)(ms % 1000) * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        lua_pushboolean(L, sem_timedwait(&never, &until) < 0 && errno == ETIMEDOUT);
        return 1;
}

static int in_spin(lua_State *L)
{
        host_spin_ms(ms);
        lua_pushboolean(L, 1);
        return 1;
}

static const struct { const char *name, *text; lua_CFunction wait;
} waits[] = {
        { "poller", "function wait_poll() return (wait()) end assert(wait_poll())", in_poll },
        { "reader", "function wait_read() return (wait()) end assert(wait_read())", in_read },
        { "sleeper", "function wait_semaphore() return (wait()) end assert(wait_semaphore())",
          in_semaphore },
        { "spinner", "function spin() return (wait()) end assert(spin())", in_spin },
};
#define WAITS (sizeof(waits) / sizeof(*waits))

static volatile int write_end = -1;

static void *run(void *arg)
{
        unsigned i = (unsigned)(uintptr_t)arg;
        char chunk[32];
        uint64_t start;
        lua_State *L;

        pthread_setname_np(pthread_self(), waits[i].name);
        L = host_new();
        start = host_ns(CLOCK_MONOTONIC);
        lua_pushlightuserdata(L, (void *)(uintptr_t)&write_end);
        lua_setglobal(L, "share");
        lua_register(L, "wait", waits[i].wait);
        snprintf(chunk, sizeof(chunk), "=%s", waits[i].name);   /* equal functions of one chunk
                                                                 * would be one function */
        host_run(L, waits[i].text, chunk);
        printf("%s %ld %llu\n", waits[i].name, syscall(SYS_gettid),
               (unsigned long long)(host_ns(CLOCK_MONOTONIC) - start));
        lua_close(L);
        return NULL;
}

int main(int argc, char **argv)
{
        pthread_t thread[WAITS];

        ms = argc == 2 ? (unsigned)atoi(argv[1]) : 0;
        if (!ms) {
                fprintf(stderr, "usage: waits MS\n");
                return 129;
        }
        sem_init(&never, 0, 0);
        for (unsigned i = 0; i < WAITS; i++)
                if (pthread_create(&thread[i], NULL, run, (void *)(uintptr_t)i))
                        return 1;
        poll(NULL, 0, (int)ms);
        close(write_end);
        for (unsigned i = 0; i < WAITS; i++)
                pthread_join(thread[i], NULL);
        return 0;
}
