/* Does something at one step of another process that attaches: stepper N ACTION PID COMMAND... runs
 * the command traced, and stops it before the Nth of its system calls from its first PTRACE_SEIZE
 * on, until it says "attached to". There it does the action to process PID: stop (for 0.2 s), exec,
 * exit, signal, debugger (traces and stops its threads for 0.1 s) or kill (the command). Then the
 * command goes on alone. Waits that repeat are no steps, and the same call several times in a row
 * is one, unless it is ptrace. Prints "step N SYSCALL" for this step, or with N = -1 for each, and
 * "steps COUNT" at the end; the status is the command's. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SAID "attached to"
#define THREADS_MOST 64

static void pause_ms(long ms)
{
        const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

        nanosleep(&t, NULL);
}

static int is_wait(long nr)
{
        static const long waits[] = { SYS_nanosleep, SYS_clock_nanosleep, SYS_rt_sigtimedwait,
                                      SYS_clock_gettime, SYS_futex };

        for (unsigned i = 0; i < sizeof(waits) / sizeof(*waits); i++)
                if (nr == waits[i])
                        return 1;
        return 0;
}

/* 1 when the call is about to say that the process is attached to. */
static int says_it(pid_t pid, const struct user_regs_struct *r)
{
        char text[256] = "";
        struct iovec own = { text, sizeof(text) - 1 },
                     its = { (void *)r->rsi, r->rdx < sizeof(text) ? r->rdx : sizeof(text) - 1 };

        if (r->orig_rax != SYS_write || r->rdi != 2)
                return 0;
        return process_vm_readv(pid, &own, 1, &its, 1, 0) > 0 && strstr(text, SAID);
}

/* Until it has ended or runs another program. */
static void wait_for_end(pid_t pid)
{
        char path[64], before[256] = "", now[256];
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
        n = readlink(path, before, sizeof(before) - 1);
        for (int i = 0; n > 0 && i < 100; i++) {
                memset(now, 0, sizeof(now));
                n = readlink(path, now, sizeof(now) - 1);
                if (strcmp(before, now))
                        break;
                pause_ms(1);
        }
}

static unsigned trace_threads(pid_t pid, pid_t threads[THREADS_MOST])
{
        struct dirent *e;
        char path[64];
        unsigned n = 0;
        DIR *d;

        snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
        d = opendir(path);
        while (d && n < THREADS_MOST && (e = readdir(d))) {
                pid_t tid = (pid_t)atoi(e->d_name);

                if (isdigit((unsigned char)*e->d_name) &&
                    ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0 &&
                    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0)
                        threads[n++] = tid;
        }
        if (d)
                closedir(d);
        return n;
}

static void let_go(pid_t tid)
{
        int status;

        if (waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status))
                ptrace(PTRACE_DETACH, tid, NULL,
                       (void *)(long)(status >> 16 ? 0 : WSTOPSIG(status)));
}

static void act(const char *action, pid_t pid, pid_t command)
{
        pid_t threads[THREADS_MOST];
        unsigned n = 0;

        if (!strcmp(action, "stop"))
                kill(pid, SIGSTOP);
        else if (!strcmp(action, "exec"))
                kill(pid, SIGHUP);
        else if (!strcmp(action, "exit"))
                kill(pid, SIGTERM);
        else if (!strcmp(action, "signal"))
                kill(pid, SIGUSR1);
        else if (!strcmp(action, "debugger"))
                n = trace_threads(pid, threads);
        else if (!strcmp(action, "kill"))
                kill(command, SIGKILL);
        if (!strcmp(action, "exec") || !strcmp(action, "exit"))
                wait_for_end(pid);
        if (strcmp(action, "kill"))
                ptrace(PTRACE_DETACH, command, NULL, NULL);
        if (!strcmp(action, "stop")) {
                pause_ms(200);
                kill(pid, SIGCONT);
        }
        if (n)
                pause_ms(100);
        while (n)
                let_go(threads[--n]);
}

static int finish(pid_t command)
{
        int status;

        while (waitpid(command, &status, __WALL) == command && WIFSTOPPED(status))
                ptrace(PTRACE_CONT, command, NULL,
                       (void *)(long)(WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status)));
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Returns the exit status. */
static int steps(long wanted, const char *action, pid_t pid, pid_t command)
{
        struct user_regs_struct r;
        long step = 0, last = -1;
        int status, inside = 0, begun = 0, signal = 0;

        for (;;) {
                if (ptrace(PTRACE_SYSCALL, command, NULL, (void *)(long)signal) < 0 ||
                    waitpid(command, &status, __WALL) != command)
                        return 2;
                if (!WIFSTOPPED(status)) {
                        printf("steps %ld\n", step);
                        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
                }
                signal = 0;
                if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
                        signal = status >> 16 ? 0 : WSTOPSIG(status);
                        continue;
                }
                inside = !inside;
                if (!inside || ptrace(PTRACE_GETREGS, command, NULL, &r) < 0)
                        continue;
                begun |= r.orig_rax == SYS_ptrace && r.rdi == PTRACE_SEIZE;
                if (!begun || is_wait((long)r.orig_rax))
                        continue;
                if (says_it(command, &r)) {
                        printf("steps %ld\n", step);
                        ptrace(PTRACE_DETACH, command, NULL, NULL);
                        return finish(command);
                }
                if (r.orig_rax != SYS_ptrace && (long)r.orig_rax == last)
                        continue;
                last = (long)r.orig_rax;
                if (step == wanted || wanted < 0)
                        printf("step %ld %ld\n", step, last);
                fflush(stdout);
                if (step++ != wanted)
                        continue;
                act(action, pid, command);
                return finish(command);
        }
}

int main(int argc, char **argv)
{
        pid_t command;
        int status;

        if (argc < 5)
                return 2;
        command = fork();
        if (command == 0) {
                ptrace(PTRACE_TRACEME, 0, NULL, NULL);
                execv(argv[4], argv + 4);
                _exit(127);
        }
        if (command < 0 || waitpid(command, &status, 0) != command || !WIFSTOPPED(status) ||
            ptrace(PTRACE_SETOPTIONS, command, NULL,
                   (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) < 0)
                return 2;
        return steps(atol(argv[1]), argv[2], (pid_t)atoi(argv[3]), command);
}
