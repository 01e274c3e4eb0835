/* A program in which all is set to something unusual that a program can set, and that tells what it
 * finds: unusual FIFO [THREADS] [sandbox] [lock] [closed] [rwx] [trap]. Threads (default 2, and the
 * first) burn in Lua. sandbox: with a seccomp filter; lock: all memory is locked; closed: thread 1
 * has a filter that kills for getpid; rwx: memory is mapped executable, too (READ_IMPLIES_EXEC);
 * trap: SIGTRAP has a handler, and is blocked. For each line that is written to FIFO it prints what
 * the process and each thread have: dispositions of all signals, masks, pending signals, alternate
 * stacks, robust lists, rseq, limits, timers, umask, securebits, seccomp, prctl's, scheduling,
 * floating-point modes, the environment; then "told". tests/integration/attach compares it before,
 * during and after attachments. */
#include "tests/hosts/host.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define THREADS_MOST 16
#define LINE 4096
#define STACK (64u << 10)
#define NSIG_ALL 64

extern char **environ;

static atomic_uint asked, told[THREADS_MOST + 1];       /* rounds */
static char lines[THREADS_MOST + 1][LINE];
static unsigned threads = 2;
static int trap, closed;
static atomic_ulong handled;

static void on_signal(int signal, siginfo_t *info, void *context)
{
        (void)signal, (void)info, (void)context;
        atomic_fetch_add(&handled, 1);
}

static void check(const char *what, long result)
{
        if (result >= 0)
                return;
        fprintf(stderr, "unusual: %s: %s\n", what, strerror(errno));
        exit(1);
}

/* A handler for each signal that can have one, each with another mask and other flags. */
static void set_handlers(void)
{
        for (int s = 1; s <= NSIG_ALL; s++) {
                struct sigaction a = { .sa_sigaction = on_signal };

                if (s == SIGKILL || s == SIGSTOP || (s == SIGTRAP && !trap) ||
                    (s > 31 && s < SIGRTMIN))
                        continue;
                a.sa_flags = SA_SIGINFO | (s % 2 ? SA_RESTART : 0) | (s % 3 ? SA_ONSTACK : 0) |
                             (s % 5 ? 0 : SA_NODEFER);
                sigemptyset(&a.sa_mask);
                sigaddset(&a.sa_mask, 1 + (s * 7) % 31);
                check("sigaction", sigaction(s, &a, NULL));
        }
}

static const struct { __rlimit_resource_t resource; rlim_t soft; } limits[] = {
        { RLIMIT_CORE, 12345 }, { RLIMIT_NOFILE, 321 }, { RLIMIT_STACK, 5 << 20 },
        { RLIMIT_FSIZE, (rlim_t)7 << 30 }, { RLIMIT_SIGPENDING, 77 }, { RLIMIT_MSGQUEUE, 4321 },
        { RLIMIT_NICE, 11 }, { RLIMIT_RTPRIO, 3 },
};

static void set_process(int rwx)
{
        struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 };
        struct itimerspec hour = { { 3600, 0 }, { 3600, 0 } };
        struct itimerval day = { { 86400, 0 }, { 86400, 0 } };
        struct rlimit r;
        timer_t timer;

        for (unsigned i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
                check("getrlimit", getrlimit(limits[i].resource, &r));
                r.rlim_cur = limits[i].soft < r.rlim_max ? limits[i].soft : r.rlim_max;
                check("setrlimit", setrlimit(limits[i].resource, &r));
        }
        for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++)
                check("setitimer", setitimer((__itimer_which_t)which, &day, NULL));
        check("timer_create", timer_create(CLOCK_MONOTONIC, &event, &timer));
        check("timer_settime", timer_settime(timer, 0, &hour, NULL));
        umask(0137);
        check("personality", personality(rwx ? READ_IMPLIES_EXEC : UNAME26 | WHOLE_SECONDS));
        check("subreaper", prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
        check("keepcaps", prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
        if (!geteuid())                                         /* a bit, and locks of others */
                check("securebits", prctl(PR_SET_SECUREBITS, 0xb2, 0, 0, 0));
        check("setenv", setenv("UNUSUAL", "1", 1));
        check("dup2", dup2(1, 300));
        check("fcntl", fcntl(300, F_SETFL, O_APPEND));
}

/* What is a thread's own, another for each. */
static void set_thread(unsigned n)
{
        stack_t stack = { .ss_size = STACK };
        unsigned short control;
        unsigned mxcsr;
        sigset_t mask;
        char name[16];

        stack.ss_sp = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        check("sigaltstack", sigaltstack(&stack, NULL));
        sigemptyset(&mask);
        sigaddset(&mask, SIGUSR1);
        if (trap)
                sigaddset(&mask, SIGTRAP);
        sigaddset(&mask, SIGRTMIN + 1 + (int)n);
        check("mask", -pthread_sigmask(SIG_BLOCK, &mask, NULL));
        raise(SIGUSR1);                                         /* stays pending */
        snprintf(name, sizeof(name), "odd \x1b[%u", n);
        prctl(PR_SET_NAME, name, 0, 0, 0);
        prctl(PR_SET_TIMERSLACK, 12345 + n, 0, 0, 0);
        check("nice", setpriority(PRIO_PROCESS, 0, (int)(n % 3)));
        __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
        mxcsr |= 0x8040;                                        /* small numbers are zero */
        __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
        __asm__ volatile("fnstcw %0" : "=m"(control));
        control = (unsigned short)((control & ~0x300) | 0x200); /* 53 bits */
        __asm__ volatile("fldcw %0" : : "m"(control));
}

/* All system calls are allowed but one, by all threads or by the calling one. */
static void set_sandbox(int nr, unsigned flags)
{
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

        check("no_new_privs", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
        check("seccomp", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
}

struct kernel_action {
        uintptr_t handler;
        unsigned long flags;
        uintptr_t restorer;
        uint64_t mask;
};

static void tell_process(void)
{
        struct itimerval timer;
        struct rlimit r;
        mode_t mask = umask(0);

        umask(mask);
        for (int s = 1; s <= NSIG_ALL; s++) {
                struct kernel_action a = { 0 };

                syscall(SYS_rt_sigaction, s, NULL, &a, 8);
                if (s != 33)            /* the C library's, since it has a second thread */
                        printf("signal %d: %lx %lx %lx\n", s, (unsigned long)a.handler, a.flags,
                               (unsigned long)a.mask);
        }
        for (int i = 0; i < RLIM_NLIMITS; i++) {
                getrlimit((__rlimit_resource_t)i, &r);
                printf("limit %d: %lx %lx\n", i, (unsigned long)r.rlim_cur,
                       (unsigned long)r.rlim_max);
        }
        for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++) {
                getitimer((__itimer_which_t)which, &timer);
                printf("itimer %d: %ld\n", which, timer.it_interval.tv_sec);
        }
        printf("umask %o, personality %x, handled %lu\n", mask, (unsigned)personality(0xffffffff),
               atomic_load(&handled));
        for (char **e = environ; *e; e++)
                printf("environment %p: %s\n", (void *)*e, *e);
        printf("environ %p, flags of 300: %x\n", (void *)environ, fcntl(300, F_GETFL));
}

static void tell_thread(unsigned n)
{
        static const int options[] = { PR_GET_PDEATHSIG, PR_GET_CHILD_SUBREAPER, PR_GET_TSC };
        static const int values[] = {
                PR_GET_DUMPABLE, PR_GET_KEEPCAPS, PR_GET_SECUREBITS, PR_GET_TIMERSLACK,
                PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP, PR_GET_THP_DISABLE, PR_MCE_KILL_GET,
        };
        const ptrdiff_t *rseq_at = dlsym(RTLD_DEFAULT, "__rseq_offset");
        const char *rseq = rseq_at ? (const char *)__builtin_thread_pointer() + *rseq_at : NULL;
        uint64_t mask = 0, pending = 0, robust = 0;
        char *p = lines[n], name[16] = "";
        unsigned short control;
        size_t robust_size = 0;
        unsigned mxcsr;
        stack_t stack;

        syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8);
        syscall(SYS_rt_sigpending, &pending, 8);
        syscall(SYS_get_robust_list, 0, &robust, &robust_size);
        sigaltstack(NULL, &stack);
        prctl(PR_GET_NAME, name, 0, 0, 0);
        __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
        __asm__ volatile("fnstcw %0" : "=m"(control));
        p += sprintf(p, "thread %u: mask %lx, pending %lx, robust %lx %zx, stack %p %x %zx, "
                     "name %s, mxcsr %x, x87 %x", n, (unsigned long)mask, (unsigned long)pending,
                     (unsigned long)robust, robust_size, stack.ss_sp, stack.ss_flags, stack.ss_size,
                     name, mxcsr & ~0x3fu, control);
        if (rseq)                       /* its signature, size and place; not the processor */
                p += sprintf(p, ", rseq %p flags %x section %lx", (const void *)rseq,
                             *(const unsigned *)(rseq + 16), *(const unsigned long *)(rseq + 8));
        for (unsigned i = 0; i < sizeof(options) / sizeof(*options); i++) {
                int value = -1;

                prctl(options[i], &value, 0, 0, 0);
                p += sprintf(p, ", %d=%d", options[i], value);
        }
        for (unsigned i = 0; i < sizeof(values) / sizeof(*values); i++)
                p += sprintf(p, ", %d=%d", values[i], prctl(values[i], 0, 0, 0, 0));
        sprintf(p, ", nice %d, policy %d\n", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0));
}

static int l_round(lua_State *L)
{
        unsigned n = (unsigned)lua_tointeger(L, 1), round = atomic_load(&asked);

        if (atomic_load(&told[n]) != round) {
                tell_thread(n);
                atomic_store(&told[n], round);
        }
        return 0;
}

static void burn(unsigned n)
{
        lua_State *L = host_new();

        lua_pushcfunction(L, l_round);
        lua_setglobal(L, "round");
        lua_pushinteger(L, (lua_Integer)n);
        lua_setglobal(L, "n");
        host_run(L, HOST_BURN "while true do burn(5) round(n) end", "=unusual");
}

static void *run(void *arg)
{
        set_thread((unsigned)(uintptr_t)arg);
        if (closed && (uintptr_t)arg == 1)
                set_sandbox(SYS_getpid, 0);
        burn((unsigned)(uintptr_t)arg);
        return NULL;
}

/* Reads the FIFO, and tells. */
static void answer(const char *path)
{
        char c;

        for (;;) {
                int fd = open(path, O_RDONLY | O_CLOEXEC);

                check(path, fd);
                while (read(fd, &c, 1) == 1) {
                        unsigned round = atomic_fetch_add(&asked, 1) + 1;

                        tell_thread(0);
                        atomic_store(&told[0], round);
                        tell_process();
                        for (unsigned i = 0; i <= threads; i++) {
                                while (atomic_load(&told[i]) != round)
                                        usleep(1000);
                                fputs(lines[i], stdout);
                        }
                        printf("told\n");
                        fflush(stdout);
                }
                close(fd);
        }
}

int main(int argc, char **argv)
{
        int sandbox = 0, lock = 0, rwx = 0;
        pthread_t t;

        for (int i = 2; i < argc; i++) {
                sandbox |= !strcmp(argv[i], "sandbox");
                lock |= !strcmp(argv[i], "lock");
                closed |= !strcmp(argv[i], "closed");
                rwx |= !strcmp(argv[i], "rwx");
                trap |= !strcmp(argv[i], "trap");
                if (argv[i][0] >= '1' && argv[i][0] <= '9')
                        threads = (unsigned)atoi(argv[i]);
        }
        if (argc < 2 || threads > THREADS_MOST) {
                fprintf(stderr, "usage: unusual FIFO [THREADS] [sandbox] [lock] [closed] [rwx] "
                        "[trap]\n");
                return 129;
        }
        set_handlers();
        set_process(rwx);
        set_thread(0);
        if (lock)
                check("mlockall", mlockall(MCL_CURRENT | MCL_FUTURE));
        if (sandbox)
                set_sandbox(SYS_acct, SECCOMP_FILTER_FLAG_TSYNC);
        for (unsigned i = 1; i <= threads; i++)
                check("thread", -pthread_create(&t, NULL, run, (void *)(uintptr_t)i));
        printf("begin\n");
        fflush(stdout);
        answer(argv[1]);
        return 0;
}
