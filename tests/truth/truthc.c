/* C functions that take CPU time, for cfunctions.lua and others: a module that programs load with
 * require. Each returns the nanoseconds of its thread's CPU clock that it took itself. */
#include <lauxlib.h>
#include <lua.h>
#include <stdint.h>
#include <time.h>

static uint64_t now(void)
{
        struct timespec t;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void spin(uint64_t until)
{
        static volatile uint64_t x;

        while (now() < until)
                for (int i = 0; i < 20000; i++)
                        x = x + (uint64_t)i;
}

/* busy(MS) */
static int busy(lua_State *L)
{
        uint64_t start = now();

        spin(start + (uint64_t)(luaL_checknumber(L, 1) * 1e6));
        lua_pushnumber(L, (lua_Number)(now() - start));
        return 1;
}

/* calls(MS, F, N): busy for MS between the N calls of F; returns its own time and F's. */
static int calls(lua_State *L)
{
        uint64_t ms = (uint64_t)(luaL_checknumber(L, 1) * 1e6), begin = now(), in_f = 0, start;
        int n = (int)luaL_checkinteger(L, 3);

        for (int i = 0; i < n; i++) {
                spin(now() + ms / (uint64_t)n);
                lua_pushvalue(L, 2);
                start = now();
                lua_call(L, 0, 0);
                in_f += now() - start;
        }
        lua_pushnumber(L, (lua_Number)(now() - begin - in_f));
        lua_pushnumber(L, (lua_Number)in_f);
        return 2;
}

/* The same for the FFI. */
double truthc_one(double ms);
double truthc_two(double ms);
__attribute__((visibility("default"))) double truthc_one(double ms)
{
        uint64_t start = now();

        spin(start + (uint64_t)(ms * 1e6));
        return (double)(now() - start);
}
__attribute__((visibility("default"))) double truthc_two(double ms)
{
        uint64_t start = now();

        spin(start + (uint64_t)(ms * 1e6));
        return (double)(now() - start);
}

int luaopen_truthc(lua_State *L);
__attribute__((visibility("default"))) int luaopen_truthc(lua_State *L)
{
        static const luaL_Reg functions[] = { { "busy", busy },
                                              { "calls", calls },
                                              { NULL, NULL } };

        lua_newtable(L);
        luaL_register(L, NULL, functions);
        return 1;
}
