/* What the agent reads raw of a real LuaJIT: the probe, walks against lua_getstack, hashes of
 * functions before and after they are compiled, names. Linked with libluajit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "formats/wire/shm.h"
#include "libsample/layout.h"
#include "libsample/handler/walk.h"
#include "tests/unit/vm_agent.h"

static lua_State *new_vm(void)
{
        lua_State *L = luaL_newstate();

        luaL_openlibs(L);
        return L;
}

static void probe_accepts_this_build(void **state)
{
        (void)state;
        vm_agent_probe();
        assert_string_equal(ls_vm_facts.why ? ls_vm_facts.why : "", "");
        assert_true(ls_vm_facts.ok);
        assert_true(ls_vm_facts.cur_L_offset && ls_vm_facts.main_offset &&
                    ls_vm_facts.resume_return[0]);
        assert_memory_equal(ls_vm_facts.version, "LuaJIT 2.1", 10);
}

static size_t walked, counted;

/* Called from Lua at various places: compares the raw walk with lua_getstack, frame by frame. */
static int compare(lua_State *L)
{
        struct ls_walk w = { 0 };
        lua_Debug ar;
        int level = 0;

        assert_int_equal(ls_walk_stack(&w, L), 0);
        for (; lua_getstack(L, level, &ar); level++) {
                assert_true((size_t)level < w.n);
                lua_getinfo(L, "Slf", &ar);
                assert_ptr_equal(lua_topointer(L, -1), w.frames[level].fn);
                lua_pop(L, 1);
                if (*ar.what != 'C')
                        assert_non_null(w.frames[level].pc);
                if (*ar.what != 'C')
                        assert_int_equal(ls_pt_line(ls_fn_proto(w.frames[level].fn),
                                                    w.frames[level].pc),
                                         ar.currentline);
                counted++;
        }
        assert_int_equal(w.body + 1, level);
        walked += w.n;
        return 0;
}

static void run(lua_State *L, const char *source)
{
        if (luaL_dostring(L, source))
                fail_msg("%s", lua_tostring(L, -1));
}

static void walks_agree_with_getstack(void **state)
{
        lua_State *L = new_vm();

        (void)state;
        lua_register(L, "compare", compare);
        run(L,
            "local function rec(n, ...) if n == 0 then compare() else rec(n - 1, n, ...) end "
            "return n end\n"
            "rec(0) rec(1) rec(100)\n"
            "local function tail(n) if n == 0 then return compare() end return tail(n - 1) end "
            "tail(10)\n"
            "pcall(rec, 5) xpcall(function() rec(3) end, print)\n"
            "pcall(function() error(setmetatable({}, {__tostring = function() compare() return 'x' "
            "end})) end)\n"
            "table.sort({3, 2, 1}, function(a, b) rec(2) return a < b end)\n"
            "string.gsub('aaa', 'a', function() rec(2) end)\n"
            "local o = setmetatable({}, {__index = function(t, k) rec(1) return k end, __add = "
            "function() rec(2) return 1 end,\n"
            "  __lt = function() rec(1) return true end, __concat = function() rec(1) return '' "
            "end,\n"
            "  __call = function() rec(1) end, __newindex = function() rec(1) end, __eq = "
            "function() rec(1) return true end})\n"
            "local x = o.a, o + 1, o < o, o .. 'x', o() o.b = 1 for k in (function() rec(1) end) "
            "do end\n"
            "local co = coroutine.create(function(...) rec(2, ...) coroutine.yield(1) rec(3) end)\n"
            "coroutine.resume(co, 1, 2) coroutine.resume(co)\n"
            "coroutine.wrap(function() coroutine.wrap(function() rec(4) end)() end)()\n"
            "load('compare() local function f() compare() end f()')()\n"
            "for i = 1, 200 do rec(i % 7) end\n"
            "xpcall(function() local a a = a.b end, function() rec(2) end)\n"
            "local function hook() rec(1) end debug.sethook(hook, 'l')\n"
            "local a = 1\n"
            "coroutine.wrap(function()\n"
            "  debug.sethook(hook, 'l')\n"
            "  a = 2\n"
            "end)()\n"
            "pcall(function()\n"
            "  a = 3\n"
            "end)\n"
            "debug.sethook()\n"
            "for i = 1, 20 do local p = newproxy(true) getmetatable(p).__gc = function() rec(2) "
            "end end\n"
            "collectgarbage() for i = 1, 1000 do local s = {} end\n"
            "for i = 1, 20 do local p = newproxy(true) getmetatable(p).__gc = function() rec(2) "
            "end end\n"
            "for i = 1, 100000 do local s = { i } end\n"
            "local ffi = require 'ffi' jit.off(true, true)\n"
            "ffi.cdef 'void qsort(void *, size_t, size_t, int (*)(const int *, const int *));'\n"
            "local n = ffi.new('int[3]', 3, 2, 1)\n"
            "local cb = ffi.cast('int (*)(const int *, const int *)', function(x, y) rec(1) return "
            "x[0] - y[0] end)\n"
            "ffi.C.qsort(n, 3, 4, cb)\n");
        assert_true(counted > 1000 && walked > counted);
        lua_close(L);
}

static int hash_of(lua_State *L)
{
        uint64_t hash = vm_agent_hash(ls_fn_proto(lua_topointer(L, 1)));
        char text[20];

        snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
        lua_pushstring(L, text);
        return 1;
}

static void hash_is_the_definition(void **state)
{
        lua_State *L = new_vm();

        (void)state;
        lua_register(L, "hash", hash_of);
        /* Compiled or not, all kinds of loops; iterators that lose their specialisation;
         * recursion. */
        run(L,
            "local function work(n) local s = 0 for i = 1, n do s = s + i end local i = 0 while i "
            "< n do i = i + 1 end\n"
            "  repeat i = i - 1 until i <= 0 for k, v in pairs({1, 2, 3}) do s = s + v end\n"
            "  for k, v in next, {1} do s = s + 1 end for c in string.gmatch('abc', '.') do s = s "
            "+ 1 end return s end\n"
            "local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end\n"
            "local function down(n) if n == 0 then return 0 end return 1 + down(n - 1) end\n"
            "local a, b, c = hash(work), hash(fib), hash(down)\n"
            "for i = 1, 300 do work(100) fib(10) down(100) end\n"
            "assert(a == hash(work), 'loops') assert(b == hash(fib), 'fib') assert(c == "
            "hash(down), 'down')\n"
            "local p = setmetatable({}, {__call = function() return nil end}) for i = 1, 3 do for "
            "k in p do end end\n"
            "assert(a == hash(work))");
        /* Two functions on one line, a reloaded chunk, a changed constant, operator and string. */
        run(L, "local f, g = function(a, b) return a + b end, function(a, b) return a - b end "
               "assert(hash(f) ~= hash(g))\n"
               "local l = function(s) return hash(assert(loadstring(s, '=x'))) end\n"
               "assert(l'return 1' == l'return 1') assert(l'return 1' ~= l'return 2') "
               "assert(l'return 1.5' ~= l'return 2.5')\n"
               "assert(l'return \"a\"' ~= l'return \"b\"') assert(l'return x.y' ~= l'return x.z')");
        lua_close(L);
}

static void names_are_found(void **state)
{
        static const struct { const char *expression, *name; } expected[] = {
                { "string.format", "string.format" },
                { "lib.Suite.run", "lib.Suite.run" },
                { "package.loaded['mod.sub'].f", "mod.sub.f" },
                { "object.method", "object.method" },
                { "deep.a.b.c.d", "deep.a.b.c.d" },
                { "print", "print" },
                { "string.rep", "string.rep" },
                { "pcall", "pcall" },
                { "require('ffi').cast", "ffi.cast" },
        };
        lua_State *L = new_vm();
        char name[256];

        (void)state;
        run(L,
            "aa = string.format ab = print ac = pcall ad = string.rep\n"
            "lib = { Suite = { run = function() end } }\n"
            "package.loaded['mod.sub'] = { f = function() end }\n"
            "object = setmetatable({}, { __index = { method = function() end } })\n"
            "deep = { a = { b = { c = { d = function() end } } } } deep.self = deep _G.loop = _G\n"
            "big = {} for i = 1, 200000 do big['k' .. i] = {} end\n");
        for (unsigned i = 0; i < sizeof expected / sizeof *expected; i++) {
                lua_pushfstring(L, "return %s", expected[i].expression);
                assert_int_equal(luaL_loadstring(L, lua_tostring(L, -1)), 0);
                assert_int_equal(lua_pcall(L, 0, 1, 0), 0);
                if (vm_agent_name(L, lua_topointer(L, -1), name, sizeof name))
                        fail_msg("no name for %s", expected[i].expression);
                assert_string_equal(name, expected[i].name);
                lua_settop(L, 0);
        }
        lua_close(L);
}

/* The search goes on where it stopped while the program changes and frees the tables that it
 * stopped in. */
static void a_search_survives_changes(void **state)
{
        lua_State *L = new_vm();

        (void)state;
        run(L, "t = {} for i = 1, 300 do local u = {} for j = 1, 50 do u['f' .. j] = { x = "
               "function() end } end t['k' .. i] = u end");
        for (int i = 0; i < 400; i++) {
                vm_agent_search(L, 2000);
                lua_pushinteger(L, i % 300 + 1);
                lua_setglobal(L, "n");
                run(L, "t['k' .. n] = nil t['m' .. n] = { y = {} } collectgarbage('step', 200)");
        }
        lua_close(L);
}

/* The keys of entries that were set to nil may be strings that are gone; long ones leave unmapped
 * memory behind. */
static void dead_keys_are_not_read(void **state)
{
        lua_State *L = new_vm();

        (void)state;
        run(L, "for _, t in ipairs({ _G, package }) do\n"
               "  for i = 1, 40 do t[string.rep('k', 300000) .. i] = i end\n"
               "  for i = 1, 40 do t[string.rep('k', 300000) .. i] = nil end\n"
               "end collectgarbage() collectgarbage()\n");
        for (int i = 0; i < 10; i++)
                vm_agent_search(L, 1000000);
        lua_close(L);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(probe_accepts_this_build),
                cmocka_unit_test(walks_agree_with_getstack),
                cmocka_unit_test(hash_is_the_definition),
                cmocka_unit_test(names_are_found),
                cmocka_unit_test(a_search_survives_changes),
                cmocka_unit_test(dead_keys_are_not_read),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
