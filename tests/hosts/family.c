/* A host that makes processes in the ways that programs do: family ACTION [ARG...]. Each process
 * that runs Lua burns a known time in a function of its own name, so that a trace tells which were
 * recorded. Used by tests/integration/processes. */
#include "tests/hosts/host.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The thread's own CPU time in s: os.clock counts that of the others too. */
static int thread_clock(lua_State *L)
{
        lua_pushnumber(L, (double)host_ns(CLOCK_THREAD_CPUTIME_ID) / 1e9);
        return 1;
}

/* NAME(ms) burns in a Lua function of that name, which a VM makes once. */
static void burn(lua_State *L, const char *name, int ms)
{
        char text[512], chunk[32];

        lua_getglobal(L, name);
        snprintf(chunk, sizeof(chunk), "=%s", name);    /* functions are told apart by where they
                                                         * are defined */
        snprintf(text, sizeof(text),
                 "local function loop(n) local x = 0 for i = 1, n do x = x + i %% 7 end return x "
                 "end\n"
                 "function %s(ms) local e = thread_clock() + ms / 1000 repeat loop(20000) until "
                 "thread_clock() >= e end\n",
                 name);
        lua_register(L, "thread_clock", thread_clock);
        if (lua_isnil(L, -1))
                host_run(L, text, chunk);
        lua_pop(L, 1);
        snprintf(text, sizeof(text), "%s(%d)", name, ms);
        host_run(L, text, "=call");
}

static void reap(int n)
{
        int status;

        for (int i = 0; i < n; i++) {
                pid_t pid = wait(&status);

                printf("child %s %x\n", pid > 0 ? "ended" : "lost", (unsigned)status);
        }
}

/* The children go on with the parent's VM and its compiled code. */
static void do_fork_before(char **argv)
{
        lua_State *L = host_new();

        (void)argv;
        burn(L, "parent", 150);
        fflush(stdout);
        for (int i = 0; i < 2; i++)
                if (fork() == 0) {
                        burn(L, i ? "second" : "first", 200);
                        burn(L, "parent", 50);
                        lua_close(L);
                        exit(i + 1);
                }
        burn(L, "after", 150);
        reap(2);
        lua_close(L);
}

/* No VM in the parent: each child makes its own. */
static void do_fork_after(char **argv)
{
        (void)argv;
        fflush(stdout);
        for (int i = 0; i < 2; i++)
                if (fork() == 0) {
                        lua_State *L = host_new();

                        burn(L, i ? "second" : "first", 200);
                        lua_close(L);
                        exit(i + 1);
                }
        reap(2);
}

static void *fork_in_thread(void *arg)
{
        lua_State *L = host_new();

        (void)arg;
        burn(L, "thread_parent", 100);
        if (fork() == 0) {
                burn(L, "thread_child", 200);
                _exit(3);
        }
        return NULL;
}

/* One thread forks while another makes and closes VMs: the child has only the thread that
 * forked. */
static void *make_vms(void *stop)
{
        while (!*(volatile int *)stop)
                lua_close(host_new());
        return NULL;
}

static void do_threads(char **argv)
{
        pthread_t a, b;
        int stop = 0;

        (void)argv;
        fflush(stdout);
        pthread_create(&b, NULL, make_vms, &stop);
        pthread_create(&a, NULL, fork_in_thread, NULL);
        pthread_join(a, NULL);
        reap(1);
        stop = 1;
        pthread_join(b, NULL);
}

static void do_spawn(char **argv)       /* spawn CMD ARG... */
{
        pid_t pid;

        printf("spawn %d\n", posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ));
        fflush(stdout);
        reap(1);
}

static void do_vfork(char **argv)
{
        fflush(stdout);
        for (int i = 0; i < 3; i++) {
                if (vfork() == 0) {
                        execvp(argv[0], argv);
                        _exit(127);
                }
                reap(1);
        }
}

static void *call_system(void *command)
{
        return (void *)(intptr_t)system(command);
}

static void do_systems(char **argv)
{
        pthread_t t[4];
        struct sigaction before, after;
        void *status;

        fflush(stdout);
        sigaction(SIGINT, NULL, &before);
        for (int i = 0; i < 4; i++)
                pthread_create(&t[i], NULL, call_system, argv[0]);
        for (int i = 0; i < 4; i++) {
                pthread_join(t[i], &status);
                printf("system %x\n", (unsigned)(intptr_t)status);
        }
        sigaction(SIGINT, NULL, &after);
        printf("null %d, failing %x, SIGINT %s\n", system(NULL) != 0, (unsigned)system("exit 3"),
               before.sa_handler == after.sa_handler ? "as before" : "changed");
}

/* Forks twice, leaves the session and lets go of stdout; its parent ends at once. */
static void do_daemon(char **argv)
{
        lua_State *L = host_new();

        burn(L, "parent", 100);
        fflush(stdout);
        if (daemon(1, 0))
                exit(1);
        if (fork())
                _exit(0);
        burn(L, "resident", atoi(argv[0]));
        lua_close(L);
        exit(0);
}

static void do_killed(char **argv)
{
        lua_State *L = host_new();
        pid_t pid;

        (void)argv;
        burn(L, "parent", 100);
        fflush(stdout);
        pid = fork();
        if (pid == 0) {
                burn(L, "victim", 300);
                kill(getpid(), SIGKILL);
        }
        burn(L, "after", 100);
        reap(1);
        lua_close(L);
}

/* N children that live for a moment, up to 16 at a time. */
static void do_storm(char **argv)
{
        lua_State *L = host_new();
        int n = atoi(argv[0]), running = 0;

        burn(L, "parent", 50);
        for (int i = 0; i < n; i++) {
                if (fork() == 0) {
                        burn(L, "brief", 1);
                        exit(0);
                }
                if (++running == 16) {
                        wait(NULL);
                        running--;
                }
        }
        while (running--)
                wait(NULL);
        printf("storm over\n");
        lua_close(L);
}

/* Writes nonsense over all that the recorder shares with this process, for a second, while a
 * sibling burns. */
static void scribble(unsigned seed)
{
        uint64_t end = host_ns(CLOCK_MONOTONIC) + 1000000000u, x = seed * 2654435761u + 1;
        struct { volatile uint64_t *at; size_t words; } maps[16];
        char line[512];
        FILE *f = fopen("/proc/self/maps", "r");
        unsigned n = 0;

        while (f && n < 16 && fgets(line, sizeof(line), f)) {
                unsigned long low, high;

                if (!strstr(line, "memfd:luasample") || sscanf(line, "%lx-%lx", &low, &high) != 2)
                        continue;
                maps[n].at = (volatile uint64_t *)low;
                maps[n++].words = (high - low > 4u << 20 ? 4u << 20 : high - low) / 8;
        }
        if (f)
                fclose(f);
        printf("scribbles over %u\n", n);
        fflush(stdout);
        while (n && host_ns(CLOCK_MONOTONIC) < end)
                for (int i = 0; i < 1000; i++) {
                        unsigned m;
                        size_t word;

                        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
                        m = (unsigned)(x >> 40) % n;
                        /* mostly the heads, where counts and indexes are */
                        word = x >> 32 & 3 ? (size_t)(x >> 8) % 1024
                                           : (size_t)(x >> 8) % maps[m].words;
                        maps[m].at[word % maps[m].words] = x & 0x300 ? x : x >> 33;
                }
}

static void do_hostile(char **argv)
{
        lua_State *L = host_new();
        unsigned n = (unsigned)atoi(argv[0]);

        burn(L, "parent", 100);
        fflush(stdout);
        sleep(1);       /* what the recorder has not read yet may be scribbled over */
        for (unsigned i = 0; i < n; i++)
                if (fork() == 0) {
                        struct sigaction ignore = { .sa_handler = SIG_IGN };

                        sigaction(SIGSEGV, &ignore, NULL);
                        scribble(i + 1);
                        _exit(0);
                }
        burn(L, "after", 300);
        for (unsigned i = 0; i < n; i++)
                wait(NULL);
        printf("hostile over\n");
        lua_close(L);
}

/* What a program sees of its descriptors and environment, before and after a fork. */
static void look(const char *who)
{
        char path[64], target[256];

        for (char **e = environ; *e; e++)
                printf("%s env %s\n", who, *e);
        for (int fd = 0; fd < 64; fd++) {
                ssize_t n;

                snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
                n = readlink(path, target, sizeof(target) - 1);
                if (n > 0)
                        printf("%s fd %d\n", who, fd);
        }
        fflush(stdout);
}

static void do_look(char **argv)
{
        lua_State *L = host_new();

        (void)argv;
        burn(L, "parent", 50);
        look("parent");
        if (fork() == 0) {
                burn(L, "child", 50);
                look("child");
                system("env; ls /proc/self/fd | wc -l");
                execlp("env", "env", (char *)NULL);
                _exit(1);
        }
        reap(1);
        fflush(stdout);
        FILE *f = popen("env", "r");
        char line[512];

        while (f && fgets(line, sizeof(line), f))
                printf("popen %s", line);
        printf("pclose %x\n", f ? (unsigned)pclose(f) : 0u);
        look("after");
        lua_close(L);
}

static const struct { const char *name; void (*run)(char **argv);
} actions[] = {
        { "fork_before", do_fork_before },
        { "fork_after", do_fork_after },
        { "threads", do_threads },
        { "spawn", do_spawn },
        { "vfork", do_vfork },
        { "systems", do_systems },
        { "daemon", do_daemon },
        { "killed", do_killed },
        { "storm", do_storm },
        { "hostile", do_hostile },
        { "look", do_look },
};

int main(int argc, char **argv)
{
        for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++)
                if (argc > 1 && !strcmp(argv[1], actions[i].name)) {
                        actions[i].run(argv + 2);
                        return 0;
                }
        fprintf(stderr, "family: no such action\n");
        return 2;
}
