/* Works in Lua beside a thread that waits for all signals, and works a little between, until
 * SIGUSR1, which that thread hears: sigwaits timed|fd. Prints how many other signals it was told
 * of. */
#include "tests/hosts/host.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

static volatile int told, by_fd;
static unsigned others;

static int next(const sigset_t *all, int fd)
{
        const struct timespec ms = { 0, 1000000 };
        struct pollfd p = { .fd = fd, .events = POLLIN };
        struct signalfd_siginfo si;

        if (!by_fd)
                return sigtimedwait(all, NULL, &ms);
        poll(&p, 1, 1);
        return read(fd, &si, sizeof(si)) == sizeof(si) ? (int)si.ssi_signo : 0;
}

static void *wait_for_all(void *arg)
{
        const sigset_t *all = arg;
        int fd = signalfd(-1, all, SFD_NONBLOCK), sig;
        volatile unsigned x = 0;

        while (!told) {
                for (unsigned i = 0; i < 20000; i++)
                        x = x + i;
                sig = next(all, fd);
                others += sig > 0 && sig != SIGUSR1;
                if (sig == SIGUSR1)
                        told = 1;
        }
        close(fd);
        return NULL;
}

int main(int argc, char **argv)
{
        sigset_t all, none;
        pthread_t t;
        lua_State *L;

        by_fd = argc > 1 && !strcmp(argv[1], "fd");
        sigfillset(&all);
        sigemptyset(&none);
        pthread_sigmask(SIG_BLOCK, &all, NULL);
        pthread_create(&t, NULL, wait_for_all, &all);
        L = host_new();
        /* the thread alone hears signals, as in servers; ticks are for this one */
        pthread_sigmask(SIG_SETMASK, &none, NULL);
        sigaddset(&none, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &none, NULL);
        printf("begin\n");
        fflush(stdout);
        while (!told)
                host_run(L, HOST_BURN "for i = 1, 20 do burn(1) end", "=sigwaits");
        pthread_join(t, NULL);
        printf("told of %u others\n", others);
        lua_close(L);
        return 0;
}
