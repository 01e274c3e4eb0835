/* jit.zone per coroutine. See zones.h. */

#include "libsample/api/zones.h"

#include <stdio.h>

#include "libsample/agent.h"
#include "libsample/handler/walk.h"
#include "libsample/handler/zones.h"
#include "libsample/lua_debug.h"
#include "libsample/pages.h"

/* Behaves as LuaJIT's jit.zone: a call pushes, or pops and returns; get, flush. Beside it a second
 * stack is kept, of zone and running coroutine (the low half of its address, read from the VM's own
 * memory through the FFI: operations that compile as the push itself does). When coroutines take
 * turns a pop takes another's zone from LuaJIT's one stack; from the second one it takes the last
 * zone of the coroutine that pops. Without the FFI there is no second stack. The chunk is named
 * after the file that require would have found, and its lines are where that file has them, so that
 * error messages are the same. */
static const char module_source[] =
        "local own, cur, names = ... local ok, ffi = pcall(require, 'ffi') if not ok then return end\n"
        "own, cur = ffi.cast('int32_t *', own), ffi.cast('int32_t *', cur)\n"
        "local function unmix(n, co)\n"
        "  for i = n, 1, -1 do if own[i] == co then\n"
        "    for j = i, n - 1 do own[j], names[j] = own[j + 1], names[j + 1] end own[0] = n - 1 return end end\n"
        "  if n > 0 then own[0] = n - 1 end\n"
        "end\n"
        "local remove = table.remove\n"
        "\n"
        "return setmetatable({\n"
        "  flush = function(t)\n"
        "    for i = #t, 1, -1 do t[i] = nil end own[0] = 0\n"
        "  end,\n"
        "  get = function(t)\n"
        "    return t[#t]\n"
        "  end\n"
        "}, {\n"
        "  __call = function(t, zone)\n"
        "    if zone then\n"
        "      t[#t + 1] = zone local n = own[0] + 1 if n < 16384 then names[n] = zone own[n] = cur[0] own[0] = n end\n"
        "    else local n = own[0] if own[n] == cur[0] then own[0] = n - 1 else unmix(n, cur[0]) end\n"
        "      return (assert(remove(t), 'empty zone stack'))\n"
        "    end\n"
        "  end\n"
        "})\n";
/* The same without the FFI. */
static const char plain_source[] =
        "local remove = table.remove\n"
        "\n"
        "return setmetatable({\n"
        "  flush = function(t)\n"
        "    for i = #t, 1, -1 do t[i] = nil end\n"
        "  end,\n"
        "  get = function(t)\n"
        "    return t[#t]\n"
        "  end\n"
        "}, {\n"
        "  __call = function(t, zone)\n"
        "    if zone then\n"
        "      t[#t + 1] = zone\n"
        "    else\n"
        "      return (assert(remove(t), 'empty zone stack'))\n"
        "    end\n"
        "  end\n"
        "})\n";
#define FILE_ASSERT_LINE 41             /* where LuaJIT's file has the assert */

static struct ls_vm_zones *zones_of(const lua_State *L)
{
        struct ls_vm *vm = ls_vm_of(L);

        if (vm && !vm->zones)
                vm->zones = ls_pages_new(sizeof *vm->zones);
        return vm ? vm->zones : NULL;
}

/* package.searchpath("jit.zone", package.path) */
static int search_path(lua_State *L)
{
        ls_lua.lua_getfield(L, LS_LUA_GLOBALSINDEX, "package");
        ls_lua.lua_getfield(L, -1, "searchpath");
        ls_lua.lua_pushlstring(L, "jit.zone", 8);
        ls_lua.lua_getfield(L, -3, "path");
        return ls_lua.lua_pcall(L, 2, 1, 0) == 0;
}

/* Leaves the chunk name on the stack: "@" and the path of LuaJIT's own module, or "=jit.zone".
 * Globals may be missing and may raise errors. */
static const char *chunk_name(lua_State *L, char *buf, size_t size)
{
        const char *path;

        ls_lua.lua_pushcclosure(L, search_path, 0);
        if (ls_lua.lua_pcall(L, 0, 1, 0) || !(path = ls_lua.lua_tolstring(L, -1, NULL)))
                return "=jit.zone";
        snprintf(buf, size, "@%s", path);
        return buf;
}

/* Loads one of the sources at its lines of LuaJIT's file and calls it. Returns 0, or an error of
 * Lua's on the stack. */
static int load_module(lua_State *L, struct ls_vm_zones *zones, const char *source, size_t len, const char *name)
{
        const char *g = LS_READ(const char *, L, LS_L_GLREF);
        char padded[sizeof module_source + FILE_ASSERT_LINE];
        size_t lines = FILE_ASSERT_LINE - 1;
        int error;

        for (const char *p = source; p < strstr(source, "assert("); p++)
                lines -= *p == '\n';
        memset(padded, '\n', lines);
        memcpy(padded + lines, source, len);
        error = ls_lua.luaL_loadbuffer(L, padded, lines + len, name);
        if (error)
                return error;
        ls_lua.lua_pushlightuserdata(L, zones ? zones->own : NULL);
        ls_lua.lua_pushlightuserdata(L, (void *)(uintptr_t)(g + ls_vm_facts.cur_L_offset));
        ls_lua.lua_createtable(L, 8, 0);
        ls_lua.lua_pushvalue(L, -1);
        ls_lua.lua_setfield(L, LS_LUA_REGISTRYINDEX, "luasample.zones");
        zones->names = ls_lua.lua_topointer(L, -1);
        return ls_lua.lua_pcall(L, 3, 1, 0);
}

int ls_zone_open(lua_State *L)
{
        static struct ls_vm_zones unused;       /* of a VM that is not sampled: nobody reads it */
        struct ls_vm_zones *zones = zones_of(L);
        char buf[4096];
        const char *name = chunk_name(L, buf, sizeof buf);

        if (!zones)
                zones = &unused;
        zones->own[0] = 0;
        zones->tracked = zones != &unused;
        if (!zones->tracked || load_module(L, zones, module_source, sizeof module_source - 1, name)) {
                if (zones->tracked)
                        return ls_lua.lua_error(L);
                ls_lua.lua_pushnil(L);
        }
        if (ls_lua.lua_type(L, -1) != LS_LUA_TTABLE) {
                zones->tracked = 0;
                if (load_module(L, zones, plain_source, sizeof plain_source - 1, name))
                        return ls_lua.lua_error(L);
                ls_lua.lua_pushvalue(L, -1);
                ls_lua.lua_setfield(L, LS_LUA_REGISTRYINDEX, "luasample.zones");
                zones->names = ls_lua.lua_topointer(L, -1);
        }
        return 1;
}
