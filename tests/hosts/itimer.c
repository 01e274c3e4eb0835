/* Has its own ITIMER_PROF and SIGPROF handler, as any C program may: itimer. Prints: ticks N cpu_ms N. */
#include "tests/hosts/host.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks;

static void on_prof(int sig)
{
        (void)sig;
        ticks++;
}

int main(void)
{
        struct itimerval tv = { { 0, 10000 }, { 0, 10000 } }, now;
        struct sigaction sa, back;
        lua_State *L;
        uint64_t start;

        memset(&sa, 0, sizeof(sa));
        sa.sa_handler = on_prof;
        sa.sa_flags = SA_RESTART;
        sigaction(SIGPROF, &sa, NULL);
        L = host_new();
        host_run(L, HOST_BURN, "=burn");
        start = host_ns(CLOCK_PROCESS_CPUTIME_ID);
        setitimer(ITIMER_PROF, &tv, NULL);
        host_run(L, "burn(2000)", "=work");
        getitimer(ITIMER_PROF, &now);
        sigaction(SIGPROF, NULL, &back);
        printf("ticks %d cpu_ms %d handler %s interval %ld\n", (int)ticks,
               (int)((host_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / 1000000),
               back.sa_handler == on_prof ? "mine" : "not-mine", now.it_interval.tv_usec);
        memset(&tv, 0, sizeof(tv));
        setitimer(ITIMER_PROF, &tv, NULL);
        lua_close(L);
        return 0;
}
