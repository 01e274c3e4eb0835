/* jit.zone per coroutine. See zones.h. */
#include "libsample/zones.h"

#include <stdio.h>

#include "libsample/agent.h"
#include "libsample/handler/ring_writer.h"
#include "libsample/lua_debug.h"
#include "libsample/proto_hash.h"
#include "libsample/rawtab.h"
#include "libsample/walk.h"

#define OWNERS_MOST 16384               /* zones whose owner is noted; deeper ones count for every coroutine */
#define CHAIN_MOST  256                 /* coroutines that resumed one another; LuaJIT allows 200 nested C calls */
#define KNOWN_MOST  4096                /* different zone paths */

/* Behaves as LuaJIT's jit.zone: a call pushes, or pops and returns; get, flush. Beside it a second stack is kept, of
 * zone and running coroutine (the low half of its address, read from the VM's own memory through the FFI: operations
 * that compile as the push itself does). When coroutines take turns a pop takes another's zone from LuaJIT's one
 * stack; from the second one it takes the last zone of the coroutine that pops. Without the FFI there is no second
 * stack. The chunk is named after the file that require would have found, and its lines are where that file has
 * them, so that error messages are the same. */
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

static struct {
        const char *names;              /* table of zones, kept alive by the registry: our second stack, or without */
                                        /* the FFI the module's table itself */
        int tracked;                    /* 1 = own is filled */
        int32_t own[OWNERS_MOST];       /* [0]: how many; then by index in names: who pushed it */
        struct { uint64_t hash; uint32_t parent, id; } known[KNOWN_MOST];
        uint32_t next_id, used;
} zones;

/* package.searchpath("jit.zone", package.path) */
static int search_path(lua_State *L)
{
        ls_lua.lua_getfield(L, LS_LUA_GLOBALSINDEX, "package");
        ls_lua.lua_getfield(L, -1, "searchpath");
        ls_lua.lua_pushlstring(L, "jit.zone", 8);
        ls_lua.lua_getfield(L, -3, "path");
        return ls_lua.lua_pcall(L, 2, 1, 0) == 0;
}

/* Leaves the chunk name on the stack: "@" and the path of LuaJIT's own module, or "=jit.zone". Globals may be missing
 * and may raise errors. */
static const char *chunk_name(lua_State *L, char *buf, size_t size)
{
        const char *path;

        ls_lua.lua_pushcclosure(L, search_path, 0);
        if (ls_lua.lua_pcall(L, 0, 1, 0) || !(path = ls_lua.lua_tolstring(L, -1, NULL)))
                return "=jit.zone";
        snprintf(buf, size, "@%s", path);
        return buf;
}

/* Loads one of the sources at its lines of LuaJIT's file and calls it. Returns 0, or an error of Lua's on the stack. */
static int load_module(lua_State *L, const char *source, size_t len, const char *name)
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
        ls_lua.lua_pushlightuserdata(L, zones.own);
        ls_lua.lua_pushlightuserdata(L, (void *)(uintptr_t)(g + ls_vm_facts.cur_L_offset));
        ls_lua.lua_createtable(L, 8, 0);
        ls_lua.lua_pushvalue(L, -1);
        ls_lua.lua_setfield(L, LS_LUA_REGISTRYINDEX, "luasample.zones");
        zones.names = ls_lua.lua_topointer(L, -1);
        return ls_lua.lua_pcall(L, 3, 1, 0);
}

int ls_zone_open(lua_State *L)
{
        char buf[4096];
        const char *name = chunk_name(L, buf, sizeof buf);

        zones.own[0] = 0;
        zones.tracked = 1;
        if (load_module(L, module_source, sizeof module_source - 1, name))
                return ls_lua.lua_error(L);
        if (ls_lua.lua_type(L, -1) != LS_LUA_TTABLE) {
                zones.tracked = 0;
                if (load_module(L, plain_source, sizeof plain_source - 1, name))
                        return ls_lua.lua_error(L);
                ls_lua.lua_pushvalue(L, -1);
                ls_lua.lua_setfield(L, LS_LUA_REGISTRYINDEX, "luasample.zones");
                zones.names = ls_lua.lua_topointer(L, -1);
        }
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

/* L and those that resumed it, directly or not, as owners are noted. Returns how many. */
static unsigned chain_of(const lua_State *L, int32_t chain[CHAIN_MOST])
{
        unsigned n = 0;
        int by_c;

        for (; L && n < CHAIN_MOST; L = ls_walk_resumer(L, &by_c))
                chain[n++] = (int32_t)(uintptr_t)L;
        return n;
}

static int is_among(int32_t owner, const int32_t *chain, unsigned n)
{
        for (unsigned i = 0; i < n; i++)
                if (chain[i] == owner)
                        return 1;
        return 0;
}

uint32_t ls_zone_id(struct ls_ring *ring, const lua_State *L)
{
        uint32_t id = 0, n = zones.tracked ? (uint32_t)zones.own[0] : OWNERS_MOST - 1;
        int32_t chain[CHAIN_MOST];
        unsigned nchain = zones.tracked && n ? chain_of(L, chain) : 0;
        char buf[40];

        for (uint32_t i = 1; zones.names && i <= n && i < OWNERS_MOST; i++) {
                uint64_t tv;
                const char *name;

                if (zones.tracked && !is_among(zones.own[i], chain, nchain))
                        continue;
                tv = ls_tab_geti(zones.names, i);
                if (tv == LS_NIL)
                        break;
                uint32_t len = zone_text(tv, buf, sizeof buf, &name);

                id = intern(ring, id, name, len);
        }
        return id;
}

void ls_zones_reset(void)
{
        zones.names = NULL;
        zones.own[0] = 0;
}
