/* A program that notices what is done to it: steady one|two. It has a VM, handlers of nearly all
 * signals and some blocked, and computes the same again and again, in between it sleeps; what comes
 * out otherwise, or a sleep that ends early without a signal, ends it with 3. SIGUSR1 is counted
 * and said. SIGTERM ends it with 0, SIGHUP has it run a shell in its own place: with "two" a second
 * thread does that at once, else the first when it comes to it. */
#include "tests/hosts/host.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t caught, told, wanted;

static void handler(int sig)
{
        caught++;
        told += sig == SIGUSR1;
        if (sig == SIGTERM || sig == SIGHUP)
                wanted = sig;
}

static void act(int sig)
{
        if (sig == SIGHUP)
                execl("/bin/sh", "sh", "-c", "echo new image; sleep 0.4; :", (char *)NULL);
        if (sig == SIGTERM) {
                printf("ended\n");
                fflush(stdout);
                _exit(0);
        }
}

static void *commands(void *arg)
{
        int sig = 0;

        if (sigwait(arg, &sig) == 0)
                act(sig);
        _exit(4);
}

static void broken(const char *what)
{
        printf("broken: %s (errno %d, %d signals)\n", what, errno, caught);
        fflush(stdout);
        _exit(3);
}

/* Half a millisecond or so of integers and floating point, the same each time. */
static double compute(void)
{
        uint64_t x = 88172645463325252u;
        double sum = 0, scale = 1;

        for (int i = 0; i < 100000; i++) {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                scale = scale * 1.0000001 + 1e-9;
                sum += scale * (double)(x >> 40);
        }
        return sum;
}

static void sleep_a_moment(int how)
{
        const struct timespec t = { 0, 1000000 };
        uint64_t start = host_ns(CLOCK_MONOTONIC);
        int before = caught, r;

        if (how % 2)
                r = nanosleep(&t, NULL);
        else
                r = ppoll(NULL, 0, &t, NULL);
        if (r < 0 && (errno != EINTR || caught == before))
                broken(how % 2 ? "nanosleep" : "ppoll");
        if (r == 0 && host_ns(CLOCK_MONOTONIC) - start < 1000000)
                broken("a sleep is too short");
}

static void set_signals(int two, sigset_t *commanded)
{
        struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
        sigset_t blocked;

        for (int sig = 1; sig <= SIGRTMAX; sig++)
                if (sig != SIGSTKFLT && sig != SIGSEGV &&
                    sig != SIGILL) /* the tick's; and ours, if we are broken */
                        sigaction(sig, &sa, NULL);
        sigemptyset(commanded);
        sigaddset(commanded, SIGTERM);
        sigaddset(commanded, SIGHUP);
        sigemptyset(&blocked);
        sigaddset(&blocked, SIGUSR2);
        sigaddset(&blocked, SIGRTMIN + 3);
        sigprocmask(SIG_BLOCK, &blocked, NULL);
        if (two)
                sigprocmask(SIG_BLOCK, commanded, NULL);
}

int main(int argc, char **argv)
{
        int two = argc > 1 && !strcmp(argv[1], "two"), said = 0;
        double first = compute();
        sigset_t commanded;
        pthread_t thread;
        lua_State *L = host_new();

        set_signals(two, &commanded);
        if (two && pthread_create(&thread, NULL, commands, &commanded))
                return 1;
        host_run(L, "require('jit').off()", "=steady");         /* it would map code of its own, now
                                                                 * or later */
        host_run(L, HOST_BURN, "=steady");
        printf("begin\n");
        fflush(stdout);
        for (int i = 0;; i++) {
                double again = compute();

                if (memcmp(&again, &first, sizeof(first)))
                        broken("a sum");
                host_run(L, "burn(0.2)", "=steady");
                sleep_a_moment(i);
                act(wanted);
                if (said != told) {
                        said = told;
                        printf("told %d\n", said);
                        fflush(stdout);
                }
        }
}
