/* Functions of C for Lua in a library that the stress host loads and unloads. */
#include <lauxlib.h>
#include <lua.h>

__attribute__((visibility("default"))) int luaopen_module(lua_State *L);

static int each(lua_State *L)
{
        int n = (int)luaL_checkinteger(L, 2);
        double sum = 0;

        for (int i = 1; i <= n; i++) {
                lua_pushvalue(L, 1);
                lua_pushinteger(L, i);
                lua_call(L, 1, 1);
                sum += lua_tonumber(L, -1);
                lua_pop(L, 1);
        }
        lua_pushnumber(L, sum);
        return 1;
}

static int sum_of(lua_State *L)
{
        volatile double sum = 0;

        for (int k = 0; k < 1000; k++)
                for (int i = 1; i <= lua_gettop(L); i++)
                        sum = sum + lua_tonumber(L, i);
        lua_pushnumber(L, sum);
        return 1;
}

static int fail(lua_State *L)
{
        lua_pushvalue(L, 1);
        return lua_error(L);
}

static int object_gc(lua_State *L)
{
        volatile double *p = lua_touserdata(L, 1);

        for (int i = 0; i < 500; i++)
                *p = *p + 1;
        return 0;
}

static int object(lua_State *L)
{
        *(double *)lua_newuserdata(L, sizeof(double)) = luaL_checknumber(L, 1);
        lua_newtable(L);
        lua_pushcfunction(L, object_gc);
        lua_setfield(L, -2, "__gc");
        lua_setmetatable(L, -2);
        return 1;
}

int luaopen_module(lua_State *L)
{
        static const luaL_Reg functions[] = { { "each", each },
                                              { "sum", sum_of },
                                              { "fail", fail },
                                              { "object", object },
                                              { NULL, NULL } };

        luaL_register(L, "stressed", functions);
        return 0;
}
