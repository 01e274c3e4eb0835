/* Counts the calls that a signal interrupts: eintr ROUNDS [THREADS]. Bursts of Lua work between
 * poll, epoll_wait, nanosleep and a slow read from a pipe that another process feeds. With THREADS
 * so many threads, four at a time, do ROUNDS bursts each in place of it, and only poll: each has a
 * first tick. Prints: calls N eintr N (all kinds), then a line for each kind. */
#include "tests/hosts/host.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POLL, EPOLL, SLEEP, READ, NKINDS };
static const char *const kind_names[NKINDS] = { "poll", "epoll_wait", "nanosleep", "read" };
static unsigned long calls[NKINDS], interrupted[NKINDS];

static void count(int kind, int ret)
{
        calls[kind]++;
        if (ret < 0 && errno == EINTR)
                interrupted[kind]++;
}

/* A child that writes one byte a millisecond, so that each read waits. */
static pid_t feeder(int fd)
{
        pid_t pid = fork();
        char c = 'x';

        if (pid)
                return pid;
        signal(SIGPIPE, SIG_DFL);
        for (;;) {
                usleep(1000);
                if (write(fd, &c, 1) != 1)
                        _exit(0);
        }
}

struct poller {
        pthread_t thread;
        int rounds;
        unsigned long calls, interrupted;
        double sum;                     /* of its work */
};

static void *poll_often(void *arg)
{
        struct poller *p = arg;
        double x = 0;

        for (int i = 0; i < p->rounds; i++) {
                for (int k = 0; k < 100000; k++)
                        x += k % 7 + x / 1e9;
                p->sum = x;
                p->calls++;
                p->interrupted += poll(NULL, 0, 1) < 0 && errno == EINTR;
        }
        return NULL;
}

static void poll_in_threads(int rounds, int threads)
{
        struct poller at_once[4];

        for (int done = 0; done < threads; done += 4) {
                for (int i = 0; i < 4; i++) {
                        at_once[i] = (struct poller){ .rounds = rounds };
                        if (pthread_create(&at_once[i].thread, NULL, poll_often, &at_once[i]))
                                exit(1);
                }
                for (int i = 0; i < 4; i++) {
                        pthread_join(at_once[i].thread, NULL);
                        calls[POLL] += at_once[i].calls;
                        interrupted[POLL] += at_once[i].interrupted;
                }
        }
}

int main(int argc, char **argv)
{
        int rounds = argc > 1 ? atoi(argv[1]) : 1000, idle[2], slow[2], ep;
        unsigned long all_calls = 0, all_eintr = 0;
        struct epoll_event ev = { .events = EPOLLIN };
        struct pollfd pfd;
        lua_State *L;
        pid_t pid;
        char buf[1];

        if (pipe(idle) || pipe(slow))
                return 1;
        pid = feeder(slow[1]);
        close(slow[1]);
        ep = epoll_create1(0);
        epoll_ctl(ep, EPOLL_CTL_ADD, idle[0], &ev);
        pfd = (struct pollfd){ .fd = idle[0], .events = POLLIN };
        L = host_new();
        host_run(L,
                 "function work() local x = 0 for i = 1, 60000 do x = x + i % 7 end return x end",
                 "=eintr");
        if (argc > 2) {
                printf("begin\n");
                fflush(stdout);
                poll_in_threads(rounds, atoi(argv[2]));
                rounds = 0;
        }
        for (int i = 0; i < rounds; i++) {
                struct timespec ms = { 0, 1000000 };

                lua_getglobal(L, "work");
                host_check(L, lua_pcall(L, 0, 0, 0));
                errno = 0;
                switch (i % NKINDS) {
                case POLL:  count(POLL, poll(&pfd, 1, 1)); break;
                case EPOLL: count(EPOLL, epoll_wait(ep, &ev, 1, 1)); break;
                case SLEEP: count(SLEEP, nanosleep(&ms, NULL)); break;
                case READ:  count(READ, (int)read(slow[0], buf, 1)); break;
                }
        }
        close(slow[0]);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        for (int k = 0; k < NKINDS; k++) {
                all_calls += calls[k];
                all_eintr += interrupted[k];
        }
        printf("calls %lu eintr %lu\n", all_calls, all_eintr);
        for (int k = 0; k < NKINDS; k++)
                printf("%s calls %lu eintr %lu\n", kind_names[k], calls[k], interrupted[k]);
        lua_close(L);
        return 0;
}
