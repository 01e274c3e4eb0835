/* popen and system, and who looks at the environment meanwhile. shells all: each way to use them,
 * with what it returns; shells readers SECONDS: two threads start shells all the time, and two call
 * getenv; prints what these have seen. */
#include "tests/hosts/host.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int (*volatile close_file)(FILE *) = fclose;    /* compilers warn of it for streams of
                                                        * popen's */

static void say_status(const char *what, int status)
{
        printf("%s: %d, errno %s\n", what, status, status == -1 ? strerror(errno) : "-");
        fflush(stdout);
}

static void read_all(FILE *f)
{
        char line[256];

        while (fgets(line, sizeof(line), f))
                printf("  %s", line);
}

static int descriptors(const char *which)
{
        char command[128];
        FILE *f;
        int n = -1;

        snprintf(command, sizeof(command), "ls /proc/self/fd | wc -%s", which);
        f = popen(command, "r");
        if (f && fscanf(f, "%d", &n) != 1)
                n = -1;
        return f && pclose(f) == 0 ? n : -1;
}

/* And leaves it to be waited for. */
static void until_child_ends(void)
{
        siginfo_t info;

        while (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) && errno == EINTR)
                ;
}

static void modes(void)
{
        static const char *const types[] = { "r", "w",  "re", "we", "er", "rr",
                                             "",  "rw", "x",  "r+", "rb" };

        for (size_t i = 0; i < sizeof(types) / sizeof *types; i++) {
                FILE *f = popen("exit 3", types[i]);

                printf("type %s: %s, cloexec %d\n", types[i], f ? "a stream" : strerror(errno),
                       f ? fcntl(fileno(f), F_GETFD) : -1);
                if (f)
                        say_status(" closed", pclose(f));
        }
}

static void streams(void)
{
        int null = open("/dev/null", O_WRONLY), before = descriptors("l"), fd;
        FILE *in, *out, *other;

        in = popen("echo one; echo $0 $#; cat >&2 </dev/null; exit 7", "r");
        read_all(in);
        say_status("pclose of a reader", pclose(in));
        out = popen("cat; echo ends", "w");
        in = popen("echo behind", "r");
        printf("descriptors more while two are open: %d\n", descriptors("l") - before);
        fprintf(out, "  written\n");
        other = popen("sleep 0.2; cat", "w");    /* does not hold the pipe of the first open */
        say_status("pclose of a writer", pclose(out));
        fprintf(other, "  other\n");
        say_status("fclose of a writer", close_file(other));
        read_all(in);
        say_status("fclose of a reader", close_file(in));
        signal(SIGPIPE, SIG_IGN);
        out = popen("exec true <&-", "w");
        until_child_ends();
        fprintf(out, "nobody reads\n");
        say_status("pclose of a writer without a reader", pclose(out));
        out = popen("exec false <&-", "w");
        until_child_ends();
        fprintf(out, "nobody reads\n");
        say_status("the same, and it fails", pclose(out));
        in = popen("kill -9 $$", "r");
        say_status("killed", pclose(in));
        in = popen("true", "r");
        fd = fileno(in);
        close(fd);
        say_status("its descriptor was closed", pclose(in));
        say_status("and its child", wait(NULL) > 0 ? 0 : -1);
        signal(SIGCHLD, SIG_IGN);
        in = popen("true", "r");
        say_status("SIGCHLD is ignored", pclose(in));
        signal(SIGCHLD, SIG_DFL);
        printf("descriptors more at the end: %d\n", descriptors("l") - before);
        close(null);
}

/* The pipe gets the numbers 0 and 1, which the child's ends are to have. */
static void low_numbers(void)
{
        int in = dup(0), out = dup(1), status;
        char line[64] = "";
        FILE *f;

        fflush(stdout);
        close(0);
        close(1);
        f = popen("echo through 1", "r");
        if (!f || !fgets(line, sizeof(line), f))
                strcpy(line, "nothing\n");
        status = f ? pclose(f) : -1;
        dup2(in, 0);
        dup2(out, 1);
        close(in);
        close(out);
        printf("numbers 0 and 1: %s", line);
        say_status(" closed", status);
}

static void in_forked_child(void)
{
        FILE *f = popen("exit 9", "r");
        pid_t pid = fork();
        int status;

        if (pid == 0)
                _exit(pclose(f) == -1 && errno == ECHILD ? 5 : 6);
        waitpid(pid, &status, 0);
        say_status("pclose in a forked child", WEXITSTATUS(status));
        say_status("and in its parent", pclose(f));
}

static void *cancel_me(void *arg)
{
        FILE *f = popen("sleep 1; exit 4", "r");

        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
        say_status("pclose of a thread that is cancelled", pclose(f));
        pthread_testcancel();
        return arg;
}

static void all(void)
{
        pthread_t thread;
        void *ret;

        modes();
        streams();
        low_numbers();
        in_forked_child();
        read_all(popen("grep -E 'SigBlk|SigIgn' /proc/self/status", "r"));
        read_all(popen("env | grep -c -E 'LD_PRELOAD|LUASAMPLE_AGENT'", "r"));
        pthread_create(&thread, NULL, cancel_me, NULL);
        usleep(100000);
        pthread_cancel(thread);
        pthread_join(thread, &ret);
        printf("%s\n", ret == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
        say_status("system(NULL)", system(NULL) != 0);
        say_status("system", system("exit 3"));
        say_status("system, killed", system("kill -15 $$"));
}

static atomic_int over;
static atomic_ulong looks, seen;

static void *look(void *arg)
{
        while (!atomic_load(&over)) {
                const char *p = getenv("LUASAMPLE_TEST_LAST");

                if (getenv("LD_PRELOAD") || getenv("LUASAMPLE_AGENT_MEMORY") || !p ||
                    strcmp(p, "here"))
                        atomic_fetch_add(&seen, 1);
                atomic_fetch_add(&looks, 1);
        }
        return arg;
}

static void *start(void *arg)
{
        while (!atomic_load(&over)) {
                FILE *f = popen("exit 2", "r");

                if (!f || pclose(f) != W_EXITCODE(2, 0) || system("exit 2") != W_EXITCODE(2, 0))
                        atomic_fetch_add(&seen, 1);
        }
        return arg;
}

static void readers(double seconds)
{
        pthread_t thread[4];

        setenv("LUASAMPLE_TEST_LAST", "here", 1);
        for (int i = 0; i < 4; i++)
                pthread_create(&thread[i], NULL, i % 2 ? start : look, NULL);
        usleep((useconds_t)(seconds * 1e6));
        atomic_store(&over, 1);
        for (int i = 0; i < 4; i++)
                pthread_join(thread[i], NULL);
        printf("%s, %lu strange\n", looks > 1000 ? "many looks" : "few looks", atomic_load(&seen));
}

int main(int argc, char **argv)
{
        lua_State *L = host_new();

        if (argc > 1 && !strcmp(argv[1], "all")) {
                all();
        } else if (argc > 2 && !strcmp(argv[1], "readers")) {
                readers(atof(argv[2]));
        } else {
                fprintf(stderr, "usage: shells all | readers SECONDS\n");
                return 129;
        }
        lua_close(L);
        return 0;
}
