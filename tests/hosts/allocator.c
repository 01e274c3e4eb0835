/* A VM whose memory comes and goes: allocator lj|own|wrapped MS [calm]. lj: LuaJIT's own allocator;
 * own: the host's, over malloc; wrapped: LuaJIT's, and half-way one of the host's around it. Runs
 * Lua that makes large and small things and drops them, calm: only small ones, for MS ms of CPU
 * time; prints "done". For tests/integration/record/memory.py. */
#include "tests/hosts/host.h"

#include <string.h>

static const char *const churn =
        "local sum, e = 0, os.clock() + MS / 1000\n"
        "local function deep(n) if n == 0 then coroutine.yield(1) return 1 end return 1 + deep(n - "
        "1) end\n"
        "local function round(i)\n"
        "  local cos, s = {}, string.rep(tostring(i), 100000)\n"
        "  for k = 1, 20 do cos[k] = coroutine.wrap(deep); sum = sum + cos[k](k * 100) end\n"
        "  local t = {} for k = 1, 50000 do t[k] = { k } end\n"
        "  sum = sum + #s + #t\n"
        "  for k = 1, 20 do sum = sum + cos[k]() end\n"
        "  cos, s, t = nil\n"
        "  collectgarbage()\n"
        "end\n"
        "local i = 0\n"
        "repeat i = i % 10 + 1; round(i) until os.clock() > e\n"
        "return sum > 0\n";

static const char *const calm = "local e, x = os.clock() + MS / 1000, 0\n"
                                "repeat for i = 1, 100 do x = x + #(('abc'):rep(50)):gsub('b', "
                                "'xy') end until os.clock() > e\n";

static lua_Alloc real_alloc;
static void *real_data;
static unsigned long calls;

static void *from_malloc(void *data, void *p, size_t old, size_t n)
{
        (void)data;
        (void)old;
        calls++;
        if (n)
                return realloc(p, n);
        free(p);
        return NULL;
}

static void *around(void *data, void *p, size_t old, size_t n)
{
        (void)data;
        calls++;
        return real_alloc(real_data, p, old, n);
}

static void work(lua_State *L, const char *text, unsigned ms)
{
        lua_pushinteger(L, (lua_Integer)ms);
        lua_setglobal(L, "MS");
        host_run(L, text, "=work");
}

int main(int argc, char **argv)
{
        const char *how = argc > 1 ? argv[1] : "lj";
        const char *text = argc > 3 ? calm : churn;
        unsigned ms = argc > 2 ? (unsigned)atoi(argv[2]) : 300;
        lua_State *L = strcmp(how, "own") ? luaL_newstate() : lua_newstate(from_malloc, NULL);

        if (!L) {
                fprintf(stderr, "allocator: no VM\n");
                return 1;
        }
        luaL_openlibs(L);
        work(L, text, ms / 2);
        if (!strcmp(how, "wrapped")) {
                real_alloc = lua_getallocf(L, &real_data);
                lua_setallocf(L, around, NULL);
        }
        work(L, text, ms / 2);
        printf("%s\n", strcmp(how, "lj") && calls < 1000 ? "no calls" : "done");
        lua_close(L);
        return 0;
}
