/* Has its own ITIMER_PROF and SIGPROF handler, as any C program may: itimer. Prints, eight times:
 * window TICKS CPU_MS, and what its handler and timer are at the end. */
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
        uint64_t start, now_ns;
        int before = 0;

        memset(&sa, 0, sizeof(sa));
        sa.sa_handler = on_prof;
        sa.sa_flags = SA_RESTART;
        sigaction(SIGPROF, &sa, NULL);
        L = host_new();
        host_run(L, HOST_BURN, "=burn");
        start = host_ns(CLOCK_PROCESS_CPUTIME_ID);
        setitimer(ITIMER_PROF, &tv, NULL);
        for (int i = 0; i < 8; i++) {
                host_run(L, "burn(250)", "=work");
                now_ns = host_ns(CLOCK_PROCESS_CPUTIME_ID);
                printf("window %d %.3f\n", (int)ticks - before, (double)(now_ns - start) / 1e6);
                before = (int)ticks;
                start = now_ns;
        }
        getitimer(ITIMER_PROF, &now);
        sigaction(SIGPROF, NULL, &back);
        printf("handler %s interval %ld\n", back.sa_handler == on_prof ? "mine" : "not-mine",
               now.it_interval.tv_usec);
        memset(&tv, 0, sizeof(tv));
        setitimer(ITIMER_PROF, &tv, NULL);
        lua_close(L);
        return 0;
}
