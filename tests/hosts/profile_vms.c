/* VMs that use LuaJIT's profiler beside the sampled one: profile_vms. A second VM in the same
 * thread is closed with its profiler running; then VMs of another thread start and stop it, while
 * the first VM compiles all the time. */
#include "tests/hosts/host.h"

#include <luajit.h>
#include <pthread.h>
#include <signal.h>

static void on_sample(void *data, lua_State *L, int samples, int vmstate)
{
        (void)L, (void)vmstate;
        *(int *)data += samples;
}

/* LuaJIT's profiler is not made for threads: its signal kills in another one at the moment at which
 * it is stopped. So only the thread that uses it gets it, and what is pending then is ignored. */
static void profile_signal(int how)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGPROF);
        pthread_sigmask(how, &set, NULL);
}

static void *other(void *data)
{
        profile_signal(SIG_UNBLOCK);
        for (int i = 0; i < 200; i++) {
                lua_State *L = host_new();

                luaJIT_profile_start(L, "li1", on_sample, data);
                host_run(L, "local s = 0 for i = 1, 1e5 do s = s + i % 7 end", "=thread");
                luaJIT_profile_stop(L);
                lua_close(L);
        }
        return NULL;
}

int main(void)
{
        lua_State *a = host_new(), *b = host_new();
        int in_b = 0, in_thread = 0;
        pthread_t thread;

        signal(SIGPROF, SIG_IGN);
        luaJIT_profile_start(b, "li1", on_sample, &in_b);
        host_run(b, HOST_BURN "burn(200)", "=second");
        lua_close(b);
        host_run(a, HOST_BURN "function after_close() burn(300) end after_close()", "=first");
        profile_signal(SIG_BLOCK);
        if (pthread_create(&thread, NULL, other, &in_thread))
                return 1;
        host_run(a,
                 "for i = 1, 1000 do load('local s = 0 for i = 1, 2e5 do s = s + i % 3 end')() end",
                 "=first");
        pthread_join(thread, NULL);
        lua_close(a);
        printf("profile_vms done %d\n", in_b > 10);
        return 0;
}
