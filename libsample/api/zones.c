/* jit.zone per coroutine. See zones.h. */

#include "libsample/api/zones.h"

#include <stdio.h>

#include "libsample/agent.h"
#include "libsample/handler/walk.h"
#include "libsample/handler/zones.h"
#include "libsample/lua_debug.h"
#include "libsample/pages.h"

#define FILE_ASSERT_LINE 41             /* where LuaJIT's file has the assert */
#define LUA_MOST         4096u          /* bytes of each of our two */

struct source { const char *text; const unsigned *len; };
static const struct source with_ffi = { ls_zone_lua, &ls_zone_lua_len };
static const struct source without_ffi = { ls_zone_plain_lua, &ls_zone_plain_lua_len };

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
static int load_module(lua_State *L, struct ls_vm_zones *zones, const struct source *source,
                       const char *name)
{
        const char *g = LS_READ(const char *, L, LS_L_GLREF);
        char padded[LUA_MOST + FILE_ASSERT_LINE];
        size_t lines = FILE_ASSERT_LINE - 1,
               len = *source->len < LUA_MOST ? *source->len : LUA_MOST;
        const char *end = memmem(source->text, len, "assert(", 7);
        int error;

        for (const char *p = source->text; end && p < end; p++)
                lines -= *p == '\n' && lines;
        memset(padded, '\n', lines);
        memcpy(padded + lines, source->text, len);
        error = ls_lua.luaL_loadbuffer(L, padded, lines + len, name);
        if (error)
                return error;
        ls_lua.lua_pushlightuserdata(L, zones ? zones->own : NULL);
        ls_lua.lua_pushlightuserdata(L, (void *)(uintptr_t)(g + ls_vm_facts.cur_L_offset));
        ls_lua.lua_createtable(L, 8, 0);
        ls_lua.lua_pushvalue(L, -1);
        ls_lua.lua_setfield(L, LS_LUA_REGISTRYINDEX, "luasample.zones");
        zones->names = ls_lua.lua_topointer(L, -1);
        ls_lua.lua_pushnumber(L, LS_ZONE_OWNERS);
        return ls_lua.lua_pcall(L, 4, 1, 0);
}

/* Behaves as LuaJIT's jit.zone: a call pushes, or pops and returns; get, flush. Beside it a second
 * stack is kept, of zone and running coroutine (the low half of its address, read from the VM's own
 * memory through the FFI: operations that compile as the push itself does). When coroutines take
 * turns a pop takes another's zone from LuaJIT's one stack; from the second one it takes the last
 * zone of the coroutine that pops. Without the FFI there is no second stack. The chunk is named
 * after the file that require would have found, and its lines are where that file has them, so that
 * error messages are the same. */
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
        if (!zones->tracked || load_module(L, zones, &with_ffi, name)) {
                if (zones->tracked)
                        return ls_lua.lua_error(L);
                ls_lua.lua_pushnil(L);
        }
        if (ls_lua.lua_type(L, -1) != LS_LUA_TTABLE) {
                zones->tracked = 0;
                if (load_module(L, zones, &without_ffi, name))
                        return ls_lua.lua_error(L);
                ls_lua.lua_pushvalue(L, -1);
                ls_lua.lua_setfield(L, LS_LUA_REGISTRYINDEX, "luasample.zones");
                zones->names = ls_lua.lua_topointer(L, -1);
        }
        return 1;
}
