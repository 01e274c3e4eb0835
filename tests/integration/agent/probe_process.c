/* A host of LuaJIT that looks at itself as a program could to find out that it is recorded, and
 * starts others in every way: probe_process ACTION [ARG...]. What it prints must not depend on the
 * agent. */
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif

static char *self;
static lua_State *L;

static void burn(int ms)
{
        char text[128];

        if (!L) {
                L = luaL_newstate();
                luaL_openlibs(L);
        }
        snprintf(text, sizeof text, "local e = os.clock() + %d / 1000 local x = 0 "
                 "repeat for i = 1, 1000 do x = x + i %% 7 end until os.clock() > e", ms);
        if (luaL_dostring(L, text))
                printf("lua: %s\n", lua_tostring(L, -1));
}

static void wait_for(const char *what, pid_t pid)
{
        int status = -1;

        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        printf("%s: status %x\n", what, (unsigned)status);
}

/* The environment as getenv, environ, main's third argument, /proc and children see it. */
static int do_environment(char **argv, char **envp)
{
        Elf64_auxv_t *aux;
        char **end = envp, buf[65536];
        ssize_t n;
        int fd;

        (void)argv;
        printf("same array %d\n", envp == environ);
        for (; *end; end++)
                printf("%s\n", *end);
        printf("LD_PRELOAD %s\n", getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "(none)");
        for (aux = (Elf64_auxv_t *)(end + 1); aux->a_type != AT_NULL; aux++)
                if (aux->a_type == AT_PAGESZ)
                        printf("page size from the stack %d\n", (int)aux->a_un.a_val);
        fd = open("/proc/self/environ", O_RDONLY);
        n = read(fd, buf, sizeof buf);
        close(fd);
        while (n > 0 && buf[n - 1] == '\0')     /* what was ours is zeros at the end */
                n--;
        for (ssize_t i = 0; i < n; i++)
                putchar(buf[i] ? buf[i] : '\n');
        printf("\n");
        burn(60);
        fflush(stdout);
        if (system("cat /proc/self/environ | tr '\\0' '\\n'; /usr/bin/env"))
                printf("system failed\n");
        return 0;
}

/* Descriptors: none but the program's own, also after a VM runs. */
static int do_descriptors(char **argv, char **envp)
{
        (void)argv, (void)envp;
        for (int round = 0; round < 2; round++) {
                int fd = open("/dev/null", O_RDONLY);
                DIR *dir = opendir("/proc/self/fd");
                struct dirent *entry;
                int count = 0;

                while ((entry = readdir(dir)))
                        count += entry->d_name[0] != '.';
                closedir(dir);
                close(fd);
                printf("open gave %d of %d\n", fd, count);
                burn(50);
        }
        printf("close_range %ld\n", syscall(SYS_close_range, 3, ~0u, 0));
        burn(200);
        return 0;
}

/* Execs itself argv[0] times, with a VM that is being sampled each time. */
static int do_exec_chain(char **argv, char **envp)
{
        char left[16];
        int n = atoi(argv[0]);

        (void)envp;
        burn(2);
        if (n == 0) {
                printf("end of the chain, LD_PRELOAD %s\n", getenv("LD_PRELOAD") ? "set" : "unset");
                return 0;
        }
        snprintf(left, sizeof left, "%d", n - 1);
        execl(self, self, "exec_chain", left, (char *)NULL);
        printf("exec failed: %s\n", strerror(errno));
        return 1;
}

static void *exec_here(void *left)
{
        execl(self, self, "exec_thread", (char *)left, (char *)NULL);
        printf("exec failed: %s\n", strerror(errno));
        return NULL;
}

/* The same from another thread, while the one with the VM works: the new image has the first
 * thread's number. */
static int do_exec_thread(char **argv, char **envp)
{
        char left[16];
        int n = atoi(argv[0]);
        pthread_t thread;

        (void)envp;
        burn(2);
        if (n == 0) {
                printf("end of the chain\n");
                return 0;
        }
        snprintf(left, sizeof left, "%d", n - 1);
        if (pthread_create(&thread, NULL, exec_here, left) == 0)
                burn(1000);
        return 1;
}

static int says(const char *what, int result)
{
        printf("%s: %d %s\n", what, result, strerror(errno));
        return 0;
}

/* exec that fails, in every form; the program goes on as if nothing had happened. */
static int do_exec_fails(char **argv, char **envp)
{
        char *const args[] = { (char *)"x", NULL };

        (void)argv;
        burn(50);
        says("execve", execve("/nosuch/program", args, envp));
        says("execv", execv("/etc/passwd", args));
        says("execvp", execvp("nosuchprogram", args));
        says("execvpe", execvpe("", args, envp));
        says("execl", execl("/", "x", (char *)NULL));
        says("execlp", execlp("nosuchprogram", "x", "y", (char *)NULL));
        says("execle", execle("/nosuch", "x", (char *)NULL, envp));
        says("fexecve", fexecve(12345, args, envp));
        says("fexecve", fexecve(-1, args, envp));
        says("execveat", execveat(AT_FDCWD, "nosuch", args, envp, 0));
        says("execveat", execveat(12345, "", args, envp, AT_EMPTY_PATH));
        burn(300);
        return 0;
}

/* exec that works, in the form that argv[0] names; the new image is this program again. */
static int do_exec_form(char **argv, char **envp)
{
        char *const args[] = { self, (char *)"say", (char *)"one", (char *)"two", NULL };
        const char *form = argv[0];
        char *clean[] = { (char *)"ONLY=this", NULL };
        int fd = open(self, O_RDONLY | O_CLOEXEC);

        burn(20);
        fflush(stdout);
        if (!strcmp(form, "execve"))
                execve(self, args, clean);
        else if (!strcmp(form, "execve-null"))
                execve(self, args, NULL);
        else if (!strcmp(form, "execv"))
                execv(self, args);
        else if (!strcmp(form, "execvp"))
                execvp(self, args);
        else if (!strcmp(form, "execvpe"))
                execvpe(self, args, clean);
        else if (!strcmp(form, "execl"))
                execl(self, self, "say", "one", "two", (char *)NULL);
        else if (!strcmp(form, "execlp"))
                execlp(self, self, "say", "one", "two", (char *)NULL);
        else if (!strcmp(form, "execle"))
                execle(self, self, "say", "one", "two", (char *)NULL, clean);
        else if (!strcmp(form, "fexecve"))
                fexecve(fd, args, clean);
        else if (!strcmp(form, "execveat"))
                execveat(fd, "", args, envp, AT_EMPTY_PATH);
        printf("%s failed: %s\n", form, strerror(errno));
        return 1;
}

static int do_say(char **argv, char **envp)
{
        for (; *argv; argv++)
                printf("%s\n", *argv);
        for (; *envp; envp++)
                printf("%s\n", *envp);
        burn(50);
        return 0;
}

/* Children: each does a little Lua and ends; the parent's recording goes on. */
static int do_children(char **argv, char **envp)
{
        char *const args[] = { self, (char *)"say", (char *)"spawned", NULL };
        char *const luajit[] = { (char *)"luajit", (char *)"-e",
                                 (char *)"print(os.getenv('LD_PRELOAD'))", NULL };
        char *const clean[] = { (char *)"ONLY=this", NULL };
        char line[64];
        pid_t pid;
        FILE *f;
        int r;

        (void)argv;
        burn(100);
        fflush(stdout);
        pid = fork();
        if (pid == 0) {
                burn(100);
                _exit(3);
        }
        wait_for("fork", pid);
        fflush(stdout);
        pid = fork();
        if (pid == 0) {
                lua_close(L);
                L = NULL;
                burn(20);
                exit(4);
        }
        wait_for("fork and exit", pid);
        pid = vfork();
        if (pid == 0) {
                execvp("luajit", luajit);
                _exit(127);
        }
        wait_for("vfork", pid);
        fflush(stdout);
        pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (pid == 0) {
                burn(100);
                syscall(SYS_exit_group, 5);
        }
        wait_for("clone", pid);
        r = posix_spawn(&pid, self, NULL, NULL, args, clean);
        printf("posix_spawn %d\n", r);
        fflush(stdout);
        wait_for("posix_spawn", pid);
        fflush(stdout);
        r = posix_spawnp(&pid, "luajit", NULL, NULL, luajit, envp);
        wait_for("posix_spawnp", pid);
        printf("posix_spawnp %d %d\n", r,
               posix_spawnp(&pid, "nosuchprogram", NULL, NULL, luajit, envp));
        fflush(stdout);
        printf("system %d\n", system("A=1 exec luajit -e 'print(1)'"));
        f = popen("luajit -e 'print(2)'", "r");
        while (f && fgets(line, sizeof line, f))
                printf("popen %s", line);
        printf("pclose %d\n", f ? pclose(f) : -1);
        burn(200);
        return 0;
}

static int do_daemon(char **argv, char **envp)
{
        int fds[2];
        char c = 0;

        (void)argv, (void)envp;
        burn(50);
        fflush(stdout);
        if (pipe(fds) < 0)
                return 1;
        if (fork() == 0) {
                if (daemon(1, 1) == 0) {
                        burn(100);
                        c = 'd';
                }
                _exit(write(fds[1], &c, 1) != 1);
        }
        if (read(fds[0], &c, 1) != 1)
                return 1;
        printf("daemon %c\n", c);
        burn(100);
        return 0;
}

static void *make_vms(void *arg)
{
        int n = *(int *)arg, good = 0;

        for (int i = 0; i < n; i++) {
                lua_State *vm = luaL_newstate();

                luaL_openlibs(vm);
                good += luaL_dostring(vm, "return 6 * 7") == 0 && lua_tonumber(vm, -1) == 42;
                lua_close(vm);
        }
        return (void *)(long)good;
}

/* Four threads make and close VMs through the patched entries. */
static int do_threads(char **argv, char **envp)
{
        pthread_t threads[4];
        int n = atoi(argv[0]);

        (void)envp;
        for (int i = 0; i < 4; i++)
                pthread_create(&threads[i], NULL, make_vms, &n);
        for (int i = 0; i < 4; i++) {
                void *good;

                pthread_join(threads[i], &good);
                printf("thread made %ld good VMs\n", (long)good);
        }
        return 0;
}

static const struct {
        const char *name;
        int (*run)(char **argv, char **envp);
} actions[] = {
        { "environment", do_environment },
        { "descriptors", do_descriptors },
        { "exec_chain", do_exec_chain },
        { "exec_thread", do_exec_thread },
        { "exec_fails", do_exec_fails },
        { "exec_form", do_exec_form },
        { "say", do_say },
        { "children", do_children },
        { "daemon", do_daemon },
        { "threads", do_threads },
};

int main(int argc, char **argv, char **envp)
{
        self = realpath("/proc/self/exe", NULL);
        for (size_t i = 0; argc > 1 && i < sizeof actions / sizeof *actions; i++) {
                if (strcmp(actions[i].name, argv[1]) == 0) {
                        int status = actions[i].run(argv + 2, envp);

                        if (L)
                                lua_close(L);
                        return status;
                }
        }
        fprintf(stderr, "no such action\n");
        return 2;
}
