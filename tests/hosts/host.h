/* What the C hosts of the tests share: clocks, and running Lua text or files with errors on
 * stderr. */
#ifndef LS_TESTS_HOST_H
#define LS_TESTS_HOST_H

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t host_ns(clockid_t clock)
{
        struct timespec ts;

        clock_gettime(clock, &ts);
        return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Work in C that no compiler removes. */
static inline void host_spin_ms(unsigned ms)
{
        uint64_t end = host_ns(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000ull;
        static volatile uint64_t x;

        while (host_ns(CLOCK_THREAD_CPUTIME_ID) < end)
                for (int i = 0; i < 1000; i++)
                        x = x + (uint64_t)i;
}

static inline void host_check(lua_State *L, int status)
{
        if (status) {
                fprintf(stderr, "host: %s\n", lua_tostring(L, -1));
                exit(1);
        }
}

static inline void host_run(lua_State *L, const char *text, const char *name)
{
        host_check(L, luaL_loadbuffer(L, text, __builtin_strlen(text), name));
        host_check(L, lua_pcall(L, 0, 0, 0));
}

static inline lua_State *host_new(void)
{
        lua_State *L = luaL_newstate();

        if (!L) {
                fprintf(stderr, "host: no VM\n");
                exit(1);
        }
        luaL_openlibs(L);
        return L;
}

/* burn(ms) and burn2(ms) for Lua: named loops that take CPU time by the clock. */
#define HOST_BURN                                                                                  \
        "local function loop(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end\n"      \
        "function burn(ms) local e = os.clock() + ms / 1000 repeat loop(20000) until os.clock() "  \
        ">= e end\n"                                                                               \
        "function burn2(ms) local e = os.clock() + ms / 1000 repeat loop(20000) until os.clock() " \
        ">= e end\n"

#endif
