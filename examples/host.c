/* A host that tells luasample what it does: host [REQUESTS]. Serves made-up requests, each in a zone of its route and with
 * a label, and counts them, on one Lua VM. Runs with or without a recording:
 *
 *     cc host.c -o host $(pkg-config --cflags --libs luasample luajit)
 *     luasample record ./host
 *     luasample report --by zone
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <luasample.h>
#include <stdio.h>
#include <stdlib.h>

static const char handlers[] =
        "local function work(ms)\n"
        "        local x, e = 0, os.clock() + ms / 1000\n"
        "        repeat for i = 1, 10000 do x = x + i % 7 end until os.clock() >= e\n"
        "end\n"
        "function warm_up() work(60) end\n"
        "function route_list() work(4) end\n"
        "function route_item() work(2) end\n"
        "function route_fail() work(1) error('no such page') end\n";

static const struct { const char *zone, *function; } routes[] = {
        { "GET /list", "route_list" }, { "GET /item", "route_item" }, { "GET /fail", "route_fail" },
};

static int call(lua_State *L, const char *function)
{
        int error;

        lua_getglobal(L, function);
        error = lua_pcall(L, 0, 0, 0);
        if (error)
                lua_pop(L, 1);
        return error;
}

/* The zone ends with the request, whether its handler failed or not. */
static int serve(lua_State *L, unsigned number)
{
        unsigned route = number % (sizeof(routes) / sizeof(routes[0]));
        char name[16];
        int error;

        snprintf(name, sizeof(name), "%u", number / 3 % 3);
        luasample_label(L, "customer", name);
        luasample_zone_push(L, routes[route].zone);
        luasample_counter("requests", number + 1);
        error = call(L, routes[route].function);
        luasample_zone_pop(L);
        luasample_label(L, "customer", NULL);
        return error;
}

int main(int argc, char **argv)
{
        unsigned requests = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 90, failed = 0;
        lua_State *L = luaL_newstate();

        if (!L)
                return 1;
        luaL_openlibs(L);
        if (luaL_loadbuffer(L, handlers, sizeof(handlers) - 1, "=handlers") ||
            lua_pcall(L, 0, 0, 0)) {
                fprintf(stderr, "host: %s\n", lua_tostring(L, -1));
                return 1;
        }
        luasample_pause(L);                     /* the start is not what is looked for */
        call(L, "warm_up");
        luasample_resume(L);
        luasample_mark("serving");
        for (unsigned i = 0; i < requests; i++)
                failed += serve(L, i) != 0;
        luasample_mark("served");
        printf("%u requests, %u failed, recording %d, Lua stack %d\n", requests, failed,
               luasample_is_recording(L), lua_gettop(L));
        lua_close(L);
        return 0;
}
