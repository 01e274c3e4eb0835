/* A host that embeds libluajit and creates its VM late: after work in C, deep in a chain of
 * functions. late FILE.lua [ARG...] runs the file; late - runs a loop of its own. */
#include "tests/hosts/host.h"

#include <string.h>

static int g_argc;
static char **g_argv;

static __attribute__((noinline)) int third(int depth)
{
        lua_State *L;

        if (depth > 0)
                return third(depth - 1) + (int)(host_ns(CLOCK_MONOTONIC) & 0);
        L = host_new();
        lua_createtable(L, g_argc, 0);
        for (int i = 1; i < g_argc; i++) {
                lua_pushstring(L, g_argv[i]);
                lua_rawseti(L, -2, i - 1);
        }
        lua_setglobal(L, "arg");
        if (strcmp(g_argv[1], "-") == 0) {
                host_run(L, HOST_BURN "burn(700) print('late done')", "=late");
        } else {
                host_check(L, luaL_loadfile(L, g_argv[1]));
                for (int i = 2; i < g_argc; i++)
                        lua_pushstring(L, g_argv[i]);
                host_check(L, lua_pcall(L, g_argc - 2, 0, 0));
        }
        lua_close(L);
        return 0;
}

static __attribute__((noinline)) int second(void)
{
        host_spin_ms(100);
        return third(20) + (int)(host_ns(CLOCK_MONOTONIC) & 0);
}

int main(int argc, char **argv)
{
        g_argc = argc;
        g_argv = argv;
        if (argc < 2)
                return 2;
        host_spin_ms(200);
        return second();
}
