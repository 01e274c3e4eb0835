/* Two VMs in one process, in one thread and then in two: twovm. Each VM has its share of the
 * samples. */
#include "tests/hosts/host.h"

#include <pthread.h>

static void *other(void *arg)
{
        lua_State *L = host_new();

        (void)arg;
        host_run(L, HOST_BURN "function in_thread() burn(300) end in_thread()", "=thread");
        lua_close(L);
        return NULL;
}

int main(void)
{
        lua_State *a = host_new(), *b = host_new();
        pthread_t thread;

        host_run(a, HOST_BURN "function in_first() burn(50) end", "=first");
        host_run(b, HOST_BURN "function in_second() burn(50) end", "=second");
        for (int i = 0; i < 8; i++) {
                host_run(a, "in_first()", "=first");
                host_run(b, "in_second()", "=second");
        }
        if (pthread_create(&thread, NULL, other, NULL))
                return 1;
        host_run(a, "for i = 1, 6 do in_first() end", "=first");
        pthread_join(thread, NULL);
        lua_close(b);
        lua_close(a);
        puts("twovm done");
        return 0;
}
