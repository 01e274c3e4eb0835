/* A host that begins its own recorder by luasample.h, twice: own FILE. What it must not notice of
 * that it counts: children, SIGCHLD, descriptors, its signal mask. Says what each call returned. */
#include <dirent.h>
#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <luasample.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t children;

static void on_child(int sig)
{
        (void)sig;
        children++;
}

static int count_descriptors(void)
{
        DIR *dir = opendir("/proc/self/fd");
        int n = 0;

        while (dir && readdir(dir))
                n++;
        if (dir)
                closedir(dir);
        return n;
}

static void run(lua_State *L, const char *chunk)
{
        if (luaL_loadstring(L, chunk) || lua_pcall(L, 0, 0, 0))
                printf("error: %s\n", lua_tostring(L, -1));
}

static const char work[] =
        "local function work()\n"
        "  local x, e = 0, os.clock() + 0.15\n"
        "  repeat for i = 1, 20000 do x = x + i % 7 end until os.clock() > e\n"
        "end\n"
        "work()";

static void record(lua_State *L, const char *file)
{
        int before = count_descriptors(), r;
        const char *const options[] = { "-i", "1ms", NULL };
        char why[256];

        r = luasample_begin(file, options, why, sizeof(why));
        printf("begin %d %s\n", r, why);
        if (r < 0)
                return;
        printf("start %d\n", luasample_start(L, "work"));
        printf("again %d\n", luasample_start(L, "again"));
        printf("mark %d\n", luasample_mark("mark of C"));
        printf("counter %d\n", luasample_counter("counter of C", -2.5));
        printf("label %d\n", luasample_label(L, "who", "bob"));
        printf("zone %d\n", luasample_zone_push(L, "zone of C"));
        run(L, work);
        printf("pop %d\n", luasample_zone_pop(L));
        printf("recording %d, stack %d\n", luasample_is_recording(L), lua_gettop(L));
        printf("stop %d\n", luasample_stop(L));
        printf("trace %s\n", luasample_trace() ? luasample_trace() : "none");
        printf("recording %d, descriptors %+d\n", luasample_is_recording(L),
               count_descriptors() - before);
}

int main(int argc, char **argv)
{
        struct sigaction sa = { .sa_handler = on_child };
        sigset_t before, after;
        lua_State *L = luaL_newstate();
        char file[512];

        if (!L || argc < 2)
                return 1;
        luaL_openlibs(L);
        memset(&before, 0, sizeof(before));
        memset(&after, 0, sizeof(after));
        sigaction(SIGCHLD, &sa, NULL);
        sigprocmask(SIG_SETMASK, NULL, &before);
        printf("before %d\n", luasample_mark("unseen"));
        for (int i = 1; i <= 2; i++) {
                snprintf(file, sizeof(file), "%s.%d", argv[1], i);
                record(L, file);
        }
        sigprocmask(SIG_SETMASK, NULL, &after);
        errno = 0;
        printf("wait %d", (int)waitpid(-1, NULL, WNOHANG));
        printf(" %s, SIGCHLD %d, mask %s\n", errno == ECHILD ? "ECHILD" : "?", (int)children,
               memcmp(&before, &after, sizeof(before)) ? "differs" : "same");
        lua_close(L);
        return 0;
}
