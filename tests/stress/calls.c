/* C between Lua and Lua: coroutines that C resumes and yields, protected calls nested as deep as
 * they go, and a library with functions for Lua that is loaded and unloaded. */
#include <dlfcn.h>

#include "tests/stress/stress.h"

static int yield_two(lua_State *L)
{
        lua_pushinteger(L, lua_gettop(L));
        return lua_yield(L, 1);
}

int stress_resumes(lua_State *L)
{
        static const char *const text =
                "local a = ...\n"
                "for i = 1, 20 do\n"
                "  local x = yield_two(i, a) + (coroutine.yield(i) or 0)\n"
                "  if i == a * 4 then error(x, 0) end\n"
                "  for j = 1, 50 do x = x + j end\n"
                "end\n"
                "return 1\n";
        double sum = 0;

        lua_register(L, "yield_two", yield_two);
        for (int i = 0; i < 300; i++) {
                lua_State *co = lua_newthread(L);
                int status, n = 1;

                host_check(co, luaL_loadbuffer(co, text, __builtin_strlen(text), "=resumes"));
                lua_pushinteger(co, lua_tointeger(L, 1) + i % 3);
                while ((status = lua_resume(co, n)) == LUA_YIELD) {
                        sum += lua_tonumber(co, -1);
                        lua_settop(co, 0);
                        lua_pushinteger(co, i);
                        n = 1;
                }
                sum += status * 1000 + lua_tonumber(co, -1);
                lua_pop(L, 1);
        }
        lua_pushnumber(L, sum);
        return 1;
}

int stress_library(lua_State *L)
{
        static const char *const text = "local a, b = ...\n"
                                        "local x = 0\n"
                                        "for i = 1, 30 do\n"
                                        "  local o = stressed.object(i)\n"
                                        "  x = x + stressed.each(function(v) return v * a end, 40) "
                                        "+ stressed.sum(1, 2, i)\n"
                                        "  local ok, why = pcall(stressed.fail, i)\n"
                                        "  x = x + (ok and 0 or why)\n"
                                        "end\n"
                                        "return x\n";
        double sum = 0;

        for (int i = 0; i < 10; i++) {
                lua_State *vm = host_new();
                void *library = dlopen(stress_module, i % 2 ? RTLD_NOW : RTLD_LAZY);
                lua_CFunction open = library ? (lua_CFunction)dlsym(library, "luaopen_module")
                                             : NULL;

                if (!open) {
                        fprintf(stderr, "stress: %s\n", dlerror());
                        exit(1);
                }
                lua_pushcfunction(vm, open);
                host_check(vm, lua_pcall(vm, 0, 0, 0));
                sum += stress_run(vm, text, lua_tonumber(L, 1), i);
                lua_close(vm);
                if (dlclose(library) || dlopen(stress_module, RTLD_NOW | RTLD_NOLOAD)) {
                        fprintf(stderr, "stress: the library stays loaded\n");
                        exit(1);
                }
        }
        lua_pushnumber(L, sum);
        return 1;
}

static int again(lua_State *L)
{
        int n = (int)lua_tointeger(L, 1), status;

        if (n == 0)
                return luaL_error(L, "bottom");
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_pushinteger(L, n - 1);
        status = lua_pcall(L, 2, 1, 0);
        lua_pushinteger(L, n + status);
        return 1;
}

static int in_cpcall(lua_State *L)
{
        double *value = lua_touserdata(L, 1);

        *value += stress_run(L,
                             "local a, b = ... local t = {} for i = 1, 200 do t[i] = a * i end "
                             "return t[200] + b",
                             *value, 1);
        return luaL_error(L, "out");
}

int stress_calls(lua_State *L)
{
        double value = lua_tonumber(L, 1), sum = 0;

        for (int i = 0; i < 40; i++) {
                host_check(L, luaL_loadstring(L, "local f, n = ... return f(n)"));
                lua_pushvalue(L, -1);
                lua_pushcclosure(L, again, 1);
                lua_pushinteger(L, 20 + i);
                host_check(L, lua_pcall(L, 2, 1, 0));
                sum += lua_tonumber(L, -1);
                lua_pop(L, 1);
                value = (double)((int)value % 100);
                sum += lua_cpcall(L, in_cpcall, &value);
                lua_pop(L, 1);
        }
        lua_pushnumber(L, sum + value);
        return 1;
}
