/* A host of LuaJIT whose calls sleep, wait and handle signals: probe_signals ACTION. It counts what
 * a tick could spoil; what it prints must not depend on the agent. Each wait follows some work, so
 * that ticks come. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <lualib.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define TICK SIGSTKFLT
#define ROUNDS 100

static lua_State *L;
static int fds[2], epfd, msgq, sems;
static sem_t sem;
static struct timespec ms = { 0, 1000000 };

static void burn_us(int us)
{
        char text[160];

        snprintf(text, sizeof text, "local e = os.clock() + %d / 1e6 local x = 0 "
                 "repeat for i = 1, 100 do x = x + i %% 7 end until os.clock() > e", us);
        if (luaL_dostring(L, text))
                printf("lua: %s\n", lua_tostring(L, -1));
}

static int64_t now_ns(clockid_t id)
{
        struct timespec t;

        clock_gettime(id, &t);
        return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static struct timespec in_1ms(void)
{
        int64_t at = now_ns(CLOCK_REALTIME) + 1000000;

        return (struct timespec){ at / 1000000000, at % 1000000000 };
}

/* An alarm each 1.5 ms: one that comes before the wait has begun is followed by another. */
static void alarm_on(int on)
{
        struct itimerval t = { { 0, on ? 1500 : 0 }, { 0, on ? 1500 : 0 } };

        setitimer(ITIMER_REAL, &t, NULL);
}

/* Did a wait that only the alarm ends, begun at began, end before that? */
static int ended_early(int64_t began)
{
        int64_t passed = now_ns(CLOCK_MONOTONIC) - began;

        alarm_on(0);
        return passed < 1400000 ? EINTR : 0;
}

/* Ways to wait for a millisecond: 0 = as it should be, else what went wrong, EINTR above all. */
static int w_poll(void)
{
        struct pollfd p = { fds[0], POLLIN, 0 };
        return poll(&p, 1, 1) ? errno : 0;
}
static int w_ppoll(void)
{
        struct pollfd p = { fds[0], POLLIN, 0 };
        return ppoll(&p, 1, &ms, NULL) ? errno : 0;
}

static int w_ppoll_mask(void)
{
        struct pollfd p = { fds[0], POLLIN, 0 };
        sigset_t none;

        sigemptyset(&none);
        return ppoll(&p, 1, &ms, &none) ? errno : 0;
}

static int w_select(void)
{
        struct timeval t = { 0, 1000 };
        fd_set set;
        int r;

        FD_ZERO(&set);
        FD_SET(fds[0], &set);
        r = select(fds[0] + 1, &set, NULL, NULL, &t);
        return r ? errno : t.tv_sec || t.tv_usec ? -1 : 0;
}

static int w_pselect(void)
{
        fd_set set;

        FD_ZERO(&set);
        FD_SET(fds[0], &set);
        return pselect(fds[0] + 1, &set, NULL, NULL, &ms, NULL) ? errno : 0;
}

static int w_epoll(void) { struct epoll_event e; return epoll_wait(epfd, &e, 1, 1) ? errno : 0; }
static int w_epoll_p(void)
{
        struct epoll_event e;
        return epoll_pwait(epfd, &e, 1, 1, NULL) ? errno : 0;
}
static int w_epoll_p2(void)
{
        struct epoll_event e;
        return epoll_pwait2(epfd, &e, 1, &ms, NULL) ? errno : 0;
}
static int w_nanosleep(void) { struct timespec left; return nanosleep(&ms, &left) ? errno : 0; }
static int w_clock(void)
{
        struct timespec left;
        return clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, &left);
}
static int w_usleep(void) { return usleep(1000) ? errno : 0; }
static int w_thrd(void) { return thrd_sleep(&ms, NULL) ? EINTR : 0; }

static int w_sem(void)
{
        struct timespec t = in_1ms();

        return sem_timedwait(&sem, &t) == 0 || errno != ETIMEDOUT ? errno : 0;
}

static int w_msg(void)                  /* nobody sends: only the alarm below ends it */
{
        struct { long type; char text[8]; } msg;
        int64_t began = now_ns(CLOCK_MONOTONIC);

        alarm_on(1);
        if (msgrcv(msgq, &msg, sizeof msg.text, 0, 0) >= 0 || errno != EINTR)
                return errno;
        return ended_early(began);
}

static int w_semop(void)
{
        struct sembuf op = { 0, -1, 0 };

        return semtimedop(sems, &op, 1, &ms) == 0 || errno != EAGAIN ? errno : 0;
}

static int w_pause(void)
{
        int64_t began = now_ns(CLOCK_MONOTONIC);

        alarm_on(1);
        pause();
        return ended_early(began);
}

static int w_suspend(void)
{
        int64_t began = now_ns(CLOCK_MONOTONIC);
        sigset_t none;

        sigemptyset(&none);
        alarm_on(1);
        sigsuspend(&none);
        return ended_early(began);
}

static int w_sigtimedwait(void)
{
        sigset_t all;

        sigfillset(&all);
        return sigtimedwait(&all, NULL, &ms) >= 0 || errno != EAGAIN ? errno : 0;
}

static int w_recv(void)
{
        char c;
        return recv(fds[0], &c, 1, 0) >= 0 || errno != EAGAIN ? errno : 0;
}
static int w_read(void) { char c; return read(fds[0], &c, 1) >= 0 || errno != EAGAIN ? errno : 0; }

static void on_alarm(int sig)
{
        (void)sig;
}

static const struct {
        const char *name;
        int (*wait)(void);
} waits[] = {
        { "poll", w_poll },
        { "ppoll", w_ppoll },
        { "ppoll with a mask", w_ppoll_mask },
        { "select", w_select },
        { "pselect", w_pselect },
        { "epoll_wait", w_epoll },
        { "epoll_pwait", w_epoll_p },
        { "epoll_pwait2", w_epoll_p2 },
        { "nanosleep", w_nanosleep },
        { "clock_nanosleep", w_clock },
        { "usleep", w_usleep },
        { "thrd_sleep", w_thrd },
        { "sem_timedwait", w_sem },
        { "msgrcv", w_msg },
        { "semtimedop", w_semop },
        { "pause", w_pause },
        { "sigsuspend", w_suspend },
        { "sigtimedwait", w_sigtimedwait },
        { "recv with a timeout", w_recv },
        { "read with a timeout", w_read },
};

static void prepare_waits(void)
{
        struct sigaction alarm = { .sa_handler = on_alarm };
        struct timeval timeout = { 0, 1000 };
        struct epoll_event event = { .events = EPOLLIN };

        sigaction(SIGALRM, &alarm, NULL);
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
                exit(1);
        setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
        epfd = epoll_create1(0);
        epoll_ctl(epfd, EPOLL_CTL_ADD, fds[0], &event);
        sem_init(&sem, 0, 0);
        msgq = msgget(IPC_PRIVATE, 0600);
        sems = semget(IPC_PRIVATE, 1, 0600);
}

static int do_waits(void)
{
        prepare_waits();
        for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
                int bad = 0;

                for (int k = 0; k < ROUNDS; k++) {
                        burn_us(300);
                        bad += waits[i].wait() != 0;
                }
                printf("%s: %d bad\n", waits[i].name, bad);
        }
        msgctl(msgq, IPC_RMID, NULL);
        semctl(sems, 0, IPC_RMID);
        return 0;
}

/* A sleep that the program's own signal ends early tells the time that is left. */
static int do_left(void)
{
        struct sigaction alarm = { .sa_handler = on_alarm };
        struct itimerval t = { { 0, 0 }, { 0, 20000 } };
        struct timespec long_time = { 1, 0 }, left = { 0, 0 };
        int r;

        sigaction(SIGALRM, &alarm, NULL);
        burn_us(100000);
        setitimer(ITIMER_REAL, &t, NULL);
        r = nanosleep(&long_time, &left);
        printf("nanosleep %d %s, left right %d\n", r, strerror(errno),
               left.tv_sec == 0 && left.tv_nsec > 900000000 && left.tv_nsec <= 985000000);
        return 0;
}

static int64_t cpu_of_burning(int us)
{
        int64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);

        burn_us(us);
        return now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
}

static int do_defaults(void)
{
        int refused = 0;

        burn_us(100000);
        for (int sig = 1; sig < NSIG; sig++)
                refused += signal(sig, SIG_DFL) == SIG_ERR;
        printf("refused %d\n", refused);
        for (int sig = 1; sig < NSIG; sig++) {
                struct sigaction act;

                if (sigaction(sig, NULL, &act) == 0 && act.sa_handler != SIG_DFL)
                        printf("signal %d is not default\n", sig);
        }
        printf("burnt %d\n", cpu_of_burning(300000) >= 290000000);
        return 0;
}

static int do_blocked(void)
{
        sigset_t all, pending;

        burn_us(100000);
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        burn_us(1000000);
        sigpending(&pending);
        for (int sig = 1; sig < NSIG; sig++)
                if (sigismember(&pending, sig) == 1)
                        printf("signal %d is pending\n", sig);
        sigprocmask(SIG_UNBLOCK, &all, NULL);
        burn_us(100000);
        return 0;
}

static volatile sig_atomic_t got;

static void on_tick(int sig)
{
        got = sig;
}

static void show_tick(const char *when)
{
        struct sigaction act;

        sigaction(TICK, NULL, &act);
        printf("%s: %s, flags %x, kill in mask %d, usr1 in mask %d\n", when,
               act.sa_handler == SIG_DFL ? "default" : act.sa_handler == SIG_IGN ? "ignored" :
               act.sa_handler == on_tick ? "ours" : "unknown", (unsigned)act.sa_flags,
               sigismember(&act.sa_mask, SIGKILL), sigismember(&act.sa_mask, SIGUSR1));
}

/* The tick's signal as a program that uses it itself sees it. */
static int do_disposition(void)
{
        struct sigaction act = { .sa_handler = on_tick, .sa_flags = SA_RESTART | SA_NODEFER },
                         old, *volatile same;

        show_tick("at start");
        burn_us(50000);
        show_tick("with a VM");
        printf("signal %d\n", signal(TICK, on_tick) == SIG_DFL);
        show_tick("after signal");
        printf("sysv_signal %d\n", sysv_signal(TICK, SIG_IGN) == on_tick);
        show_tick("after sysv_signal");
        sigfillset(&act.sa_mask);
        old = act;
        same = &old;                    /* one struct for both, as the kernel allows */
        printf("sigaction %d\n", sigaction(TICK, &old, same));
        printf("old %d\n", old.sa_handler == SIG_IGN);
        act.sa_handler = on_tick;
        act.sa_flags = SA_RESTART;
        sigaction(TICK, &act, NULL);
        printf("siginterrupt %d\n", siginterrupt(TICK, 1));
        show_tick("after siginterrupt");
        printf("sigset %d\n", sigset(TICK, SIG_HOLD) == on_tick);
        printf("sigset %d\n", sigset(TICK, on_tick) == SIG_HOLD);
        show_tick("after sigset");
        printf("sigignore %d\n", sigignore(TICK));
        show_tick("after sigignore");
        burn_us(50000);
        printf("bad %d %s\n", sigaction(SIGKILL, &act, NULL), strerror(errno));
        return 0;
}

/* The program uses the signal itself, before and after there is a VM. */
static int do_own_signal(void)
{
        struct sigaction act = { .sa_handler = on_tick, .sa_flags = SA_RESTART };

        sigaction(TICK, &act, NULL);
        raise(TICK);
        printf("got %d\n", got);
        burn_us(100000);
        got = 0;
        kill(getpid(), TICK);
        printf("got %d\n", got);
        got = 0;
        burn_us(100000);
        printf("got %d\n", got);
        return 0;
}

/* All signals by descriptor and by sigwait: only the program's own comes. */
static int do_signalfd(void)
{
        struct signalfd_siginfo info;
        sigset_t all;
        int fd, sig = 0;

        burn_us(50000);
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
        burn_us(50000);
        printf("signalfd %d %s\n", (int)read(fd, &info, sizeof info), strerror(errno));
        kill(getpid(), SIGUSR1);
        printf("sigwait %d %d\n", sigwait(&all, &sig), sig);
        burn_us(50000);
        kill(getpid(), SIGUSR2);
        printf("sigwaitinfo %d\n", sigwaitinfo(&all, NULL));
        return 0;
}

static const struct {
        const char *name;
        int (*run)(void);
} actions[] = {
        { "waits", do_waits },
        { "left", do_left },
        { "defaults", do_defaults },
        { "blocked", do_blocked },
        { "disposition", do_disposition },
        { "own_signal", do_own_signal },
        { "signalfd", do_signalfd },
};

int main(int argc, char **argv)
{
        for (size_t i = 0; argc > 1 && i < sizeof actions / sizeof *actions; i++) {
                if (strcmp(actions[i].name, argv[1]) == 0) {
                        int status;

                        L = luaL_newstate();
                        luaL_openlibs(L);
                        status = actions[i].run();
                        lua_close(L);
                        return status;
                }
        }
        fprintf(stderr, "no such action\n");
        return 2;
}
