/* jit.zone per coroutine. See zones.h. */
#include "libsample/zones.h"

#include <stdio.h>

#include "libsample/agent.h"
#include "libsample/handler/ring_writer.h"
#include "libsample/lua_debug.h"
#include "libsample/proto_hash.h"
#include "libsample/rawtab.h"
#include "libsample/walk.h"

#define DEPTH_MOST 1023                 /* zones whose owner is noted; deeper ones count for every coroutine */
#define KNOWN_MOST 4096                 /* different zone paths */

/* Behaves as LuaJIT's jit.zone: a call pushes, or pops and returns; get, flush. Beside each zone the running
 * coroutine is noted, as the low half of its address, read from the VM's own memory through the FFI: an operation
 * that compiles as the push itself does. Without the FFI no owner is noted. The chunk is named after the file that
 * require would have found, and its lines are where that file has them, so that error messages are the same. */
static const char module_source[] =
        "local own, cur = ... local ok, ffi = pcall(require, 'ffi') if ok then\n"
        "  own, cur = ffi.cast('int32_t *', own), ffi.cast('int32_t *', cur)\n"
        "else own, cur = {}, {} end\n"
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
        "      local n = #t + 1 t[n] = zone if n < 1024 then own[n] = cur[0] end\n"
        "    else\n"
        "      return (assert(remove(t), 'empty zone stack'))\n"
        "    end\n"
        "  end\n"
        "})\n";
#define MODULE_ASSERT_LINE 18           /* of module_source; in LuaJIT's file it is line 41 */
#define FILE_ASSERT_LINE   41

static struct {
        const char *table;              /* the module's table, kept alive by the registry */
        int32_t own[DEPTH_MOST + 1];    /* by index in the table: who pushed it */
        struct { uint64_t hash; uint32_t parent, id; } known[KNOWN_MOST];
        uint32_t next_id, used;
} zones;

/* Leaves the chunk name on the stack: "@" and the path of LuaJIT's own module, or "=jit.zone". */
static const char *chunk_name(lua_State *L, char *buf, size_t size)
{
        const char *path;

        ls_lua.lua_getfield(L, LS_LUA_GLOBALSINDEX, "package");
        if (ls_lua.lua_type(L, -1) != LS_LUA_TTABLE)
                return "=jit.zone";
        ls_lua.lua_getfield(L, -1, "searchpath");
        ls_lua.lua_pushlstring(L, "jit.zone", 8);
        ls_lua.lua_getfield(L, -3, "path");
        if (ls_lua.lua_pcall(L, 2, 1, 0) || !(path = ls_lua.lua_tolstring(L, -1, NULL)))
                return "=jit.zone";
        snprintf(buf, size, "@%s", path);
        return buf;
}

int ls_zone_open(lua_State *L)
{
        const char *g = LS_READ(const char *, L, LS_L_GLREF);
        char source[sizeof module_source + FILE_ASSERT_LINE], name[4096];
        size_t lines = FILE_ASSERT_LINE - MODULE_ASSERT_LINE;

        memset(source, '\n', lines);
        memcpy(source + lines, module_source, sizeof module_source);
        if (ls_lua.luaL_loadbuffer(L, source, lines + sizeof module_source - 1, chunk_name(L, name, sizeof name)))
                return ls_lua.lua_error(L);
        ls_lua.lua_pushlightuserdata(L, zones.own);
        ls_lua.lua_pushlightuserdata(L, (void *)(uintptr_t)(g + ls_vm_facts.cur_L_offset));
        if (ls_lua.lua_pcall(L, 2, 1, 0))
                return ls_lua.lua_error(L);
        ls_lua.lua_pushvalue(L, -1);
        ls_lua.lua_setfield(L, LS_LUA_REGISTRYINDEX, "luasample.zones");
        zones.table = ls_lua.lua_topointer(L, -1);
        return 1;
}

/* What people call a zone: strings, and numbers as Lua prints them. Anything else can be pushed too. */
static uint32_t zone_text(uint64_t tv, char *buf, size_t size, const char **ret)
{
        double number;

        *ret = buf;
        if (ls_istype(tv, LS_T_STR)) {
                *ret = ls_str_data(ls_gcptr(tv));
                return ls_str_len(ls_gcptr(tv)) < 4096 ? ls_str_len(ls_gcptr(tv)) : 4096;
        }
        if (tv >> 47 >= 0x1fff0)
                return (uint32_t)snprintf(buf, size, "(zone that is no string)");
        memcpy(&number, &tv, 8);
        return (uint32_t)snprintf(buf, size, "%.14g", number);
}

static uint32_t intern(struct ls_ring *ring, uint32_t parent, const char *name, uint32_t len)
{
        uint64_t hash = ls_bytes_hash(name, len) * 31 + parent;
        uint32_t i = (uint32_t)(hash >> 20) % KNOWN_MOST;
        struct ls_rec_zone rec = { zones.next_id + 1, parent, len, 0 };
        char *body;

        for (; zones.known[i].id; i = (i + 1) % KNOWN_MOST)
                if (zones.known[i].hash == hash && zones.known[i].parent == parent)
                        return zones.known[i].id;
        if (zones.used >= KNOWN_MOST / 2) {     /* forget all: they are sent again, with new ids */
                memset(zones.known, 0, sizeof zones.known);
                zones.used = 0;
        }
        body = ls_ring_reserve(ring, LS_REC_ZONE, sizeof rec + len, LS_RESERVE_DEFINITION);
        if (!body) {
                atomic_fetch_add(&ls_agent.shm->lost[LS_LOSS_DEFINITION_LOST], 1);
                return parent;
        }
        memcpy(body, &rec, sizeof rec);
        memcpy(body + sizeof rec, name, len);
        ls_ring_commit(ring, body);
        zones.known[i].hash = hash;
        zones.known[i].parent = parent;
        zones.used++;
        return zones.known[i].id = ++zones.next_id;
}

/* 1 when the owner of a zone is L or has, directly or not, resumed it. */
static int concerns(int32_t owner, const lua_State *L)
{
        int by_c;

        for (int i = 0; L && i < 256; i++, L = ls_walk_resumer(L, &by_c))
                if ((int32_t)(uintptr_t)L == owner)
                        return 1;
        return 0;
}

uint32_t ls_zone_id(struct ls_ring *ring, const lua_State *L)
{
        uint32_t id = 0;
        char buf[40];

        for (uint32_t i = 1; zones.table && i < 4096; i++) {
                uint64_t tv = ls_tab_geti(zones.table, i);
                const char *name;

                if (tv == ~UINT64_C(0))
                        break;
                if (i <= DEPTH_MOST && zones.own[i] && !concerns(zones.own[i], L))
                        continue;
                uint32_t len = zone_text(tv, buf, sizeof buf, &name);

                id = intern(ring, id, name, len);
        }
        return id;
}

void ls_zones_reset(void)
{
        zones.table = NULL;
        memset(zones.own, 0, sizeof zones.own);
}
