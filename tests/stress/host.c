/* A program that embeds LuaJIT and does all that a profiler may break: stress MODULE SCRIPT
 * [ARG...] runs stress.lua with parts of its own added. See stress.lua and run.py. */
#include "tests/stress/stress.h"

const char *stress_module;

static const struct luaL_Reg parts[] = {
        { "vms", stress_vms },
        { "threads", stress_threads },
        { "handed", stress_handed },
        { "forks", stress_forks },
        { "timers", stress_timers },
        { "jumps", stress_jumps },
        { "interrupts", stress_interrupts },
        { "stacks", stress_stacks },
        { "resumes", stress_resumes },
        { "library", stress_library },
        { "calls", stress_calls },
};

double stress_run(lua_State *L, const char *text, double a, double b)
{
        double result;

        host_check(L, luaL_loadbuffer(L, text, __builtin_strlen(text), "=stress"));
        lua_pushnumber(L, a);
        lua_pushnumber(L, b);
        host_check(L, lua_pcall(L, 2, 1, 0));
        result = lua_tonumber(L, -1);
        lua_pop(L, 1);
        return result;
}

double stress_run_new(const char *text, double a, double b)
{
        lua_State *L = host_new();
        double result = stress_run(L, text, a, b);

        lua_close(L);
        return result;
}

int main(int argc, char **argv)
{
        lua_State *L;

        if (argc < 3) {
                fprintf(stderr, "usage: stress MODULE SCRIPT [ARG...]\n");
                return 129;
        }
        stress_module = argv[1];
        L = host_new();
        lua_newtable(L);
        for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
                lua_createtable(L, 0, 2);
                lua_pushstring(L, parts[i].name);
                lua_setfield(L, -2, "name");
                lua_pushcfunction(L, parts[i].func);
                lua_setfield(L, -2, "run");
                lua_rawseti(L, -2, (int)i + 1);
        }
        lua_setglobal(L, "host_parts");
        host_check(L, luaL_loadfile(L, argv[2]));
        for (int i = 3; i < argc; i++)
                lua_pushstring(L, argv[i]);
        host_check(L, lua_pcall(L, argc - 3, 0, 0));
        lua_close(L);
        fprintf(stderr, "short %.6f\n", stress_short_s());
        return 7;
}
