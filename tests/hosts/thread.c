/* A VM made in one thread and run in another: thread. It gets no ticks yet, and record says how
 * much time that was. */
#include "tests/hosts/host.h"

#include <pthread.h>

static void *run(void *L)
{
        host_run(L, HOST_BURN "function in_thread() burn(500) end in_thread()", "=thread");
        return NULL;
}

int main(void)
{
        lua_State *L = host_new();
        pthread_t thread;

        pthread_create(&thread, NULL, run, L);
        pthread_join(thread, NULL);
        lua_close(L);
        return 0;
}
