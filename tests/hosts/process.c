/* Does to itself what programs do to processes and signals, with Lua work before and after: process
 * ACTION. Prints "before", what the action says, "after"; ends with status 7. Actions are the rows
 * of the table at the end. */
#include "tests/hosts/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static lua_State *L;

static void work(const char *function, int ms)
{
        char text[64];

        snprintf(text, sizeof(text), "%s(%d)", function, ms);
        host_run(L, text, "=work");
}

static void reap(const char *what, pid_t pid)
{
        int status = -1;

        if (pid < 0 || waitpid(pid, &status, 0) != pid)
                printf("%s failed: %s\n", what, strerror(errno));
        else
                printf("%s child status %x\n", what, (unsigned)status);
}

/* The child runs Lua too: it is not recorded and must not disturb the parent's recording. */
static void do_fork(void)
{
        pid_t pid;

        fflush(stdout);
        pid = fork();
        if (pid == 0) {
                work("burn2", 200);
                _exit(3);
        }
        work("burn", 200);
        reap("fork", pid);
}

static void do_fork_exit(void)          /* the child ends through exit(): destructors run in it */
{
        pid_t pid;

        fflush(stdout);
        pid = fork();
        if (pid == 0) {
                work("burn2", 100);
                lua_close(L);
                exit(4);
        }
        reap("fork", pid);
}

static void do_vfork(void)
{
        fflush(stdout);
        for (int i = 0; i < 20; i++) {
                pid_t pid = vfork();

                if (pid == 0) {
                        execl("/bin/true", "true", (char *)NULL);
                        _exit(127);
                }
                if (i == 0 || i == 19)
                        reap("vfork", pid);
                else
                        waitpid(pid, NULL, 0);
        }
}

static void do_clone(void)
{
        pid_t pid;

        fflush(stdout);
        pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (pid == 0) {
                work("burn2", 200);
                syscall(SYS_exit_group, 5);
        }
        work("burn", 200);
        reap("clone", pid);
}

static void do_daemon(void)
{
        int back[2];
        char c;

        fflush(stdout);
        if (pipe(back))
                return;
        if (fork() == 0) {              /* so that the caller of this host can wait for it */
                if (daemon(1, 1))
                        _exit(1);
                work("burn2", 200);
                c = 'd';
                if (write(back[1], &c, 1) != 1)
                        _exit(1);
                _exit(0);
        }
        close(back[1]);
        printf("daemon said %d\n", (int)read(back[0], &c, 1));
        while (wait(NULL) > 0)
                ;
}

static void do_close_range(void)
{
        printf("close_range %ld\n", syscall(SYS_close_range, 3u, ~0u, 0u));
        printf("next fd %d\n", open("/dev/null", O_RDONLY));
}

static void do_sigdfl(void)
{
        for (int sig = 1; sig < 65; sig++)
                signal(sig, SIG_DFL);
        puts("all signals default");
}

static void do_block(void)
{
        sigset_t all, old;

        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, &old);
        work("burn2", 1000);
        sigprocmask(SIG_SETMASK, &old, NULL);
        puts("blocked all for 1 s");
}

/* What the program can see of itself: must be the same recorded or not. */
static void do_look(void)
{
        struct sigaction sa;
        sigset_t mask;
        DIR *dir = opendir("/proc/self/fd");
        struct dirent *e;

        while (dir && (e = readdir(dir)))
                if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(dir))
                        printf("fd %s\n", e->d_name);
        if (dir)
                closedir(dir);
        for (int sig = 1; sig < 65; sig++)
                if (!sigaction(sig, NULL, &sa) && sa.sa_handler != SIG_DFL)
                        printf("signal %d %s\n", sig,
                               sa.sa_handler == SIG_IGN ? "ignored" : "handled");
        sigprocmask(SIG_SETMASK, NULL, &mask);
        for (int sig = 1; sig < 65; sig++)
                if (sigismember(&mask, sig) == 1)
                        printf("blocked %d\n", sig);
        for (char **env = environ; *env; env++)
                if (strncmp(*env, "_=", 2) != 0)
                        printf("env %s\n", *env);
        printf("next fd %d\n", open("/dev/null", O_RDONLY));
        errno = 77;
        work("burn2", 50);
        fflush(stdout);
}

static void do_errno(void)              /* errno must hold through Lua work that is sampled */
{
        unsigned long bad = 0;

        for (int i = 0; i < 200; i++) {
                static volatile double x;

                errno = 77;
                for (int k = 0; k < 2000000; k++)
                        x = x + k;
                bad += errno != 77;
        }
        printf("errno changed %lu\n", bad);
}

static void do_exec_chain(void)
{
        setenv("LS_CHAIN", "1", 1);
        fflush(stdout);
        execl("/proc/self/exe", "process", "none", (char *)NULL);
}

static void do_failed_exec(void)
{
        int ret = execl("/does/not/exist", "x", (char *)NULL);

        printf("exec %d %s\n", ret, strerror(errno));
}

static void do_abort(void)
{
        fflush(stdout);
        abort();
}

static void do_segv(void)
{
        static int *volatile nowhere;

        fflush(stdout);
        *nowhere = 1;
}

static void do_none(void)
{
}

static const struct {
        const char *name;
        void (*run)(void);
} actions[] = {
        { "none", do_none },
        { "fork", do_fork },
        { "fork-exit", do_fork_exit },
        { "vfork", do_vfork },
        { "clone", do_clone },
        { "daemon", do_daemon },
        { "close_range", do_close_range },
        { "sigdfl", do_sigdfl },
        { "block", do_block },
        { "look", do_look },
        { "errno", do_errno },
        { "exec", do_exec_chain },
        { "failed-exec", do_failed_exec },
        { "abort", do_abort },
        { "segv", do_segv },
};

int main(int argc, char **argv)
{
        for (size_t i = 0; argc > 1 && i < sizeof(actions) / sizeof(actions[0]); i++) {
                if (strcmp(argv[1], actions[i].name) != 0)
                        continue;
                L = host_new();
                host_run(L, HOST_BURN, "=burn");
                puts("before");
                work("burn", 300);
                actions[i].run();
                work("burn", 300);
                puts("after");
                lua_close(L);
                return 7;
        }
        return 2;
}
