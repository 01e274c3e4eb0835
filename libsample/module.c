/* What the recorded program can require: "luasample" (start, stop, is_recording) and "jit.zone". Both are put into
 * package.preload when the VM is created. */
#include "libsample/engine.h"
#include "libsample/lua_debug.h"
#include "libsample/zones.h"

/* The name of a region: start("name"), start{name = "name"} or nothing. */
static const char *region_name(lua_State *L, size_t *len)
{
        *len = 0;
        if (ls_lua.lua_gettop(L) < 1)
                return "";
        if (ls_lua.lua_type(L, 1) == LS_LUA_TTABLE)
                ls_lua.lua_getfield(L, 1, "name");
        else
                ls_lua.lua_pushvalue(L, 1);
        return ls_lua.lua_type(L, -1) == LS_LUA_TSTRING ? ls_lua.lua_tolstring(L, -1, len) : "";
}

static void send_region(int begin, const char *name, size_t len)
{
        struct ls_thread *t = ls_thread_self();
        struct ls_rec_region rec = { ls_now_ns(), ls_thread_cpu_ns(), (uint32_t)begin, (uint32_t)(len < 1024 ? len : 1024) };
        char *body;

        if (!t)
                return;
        body = ls_ring_reserve(t->ring, LS_REC_REGION, sizeof rec + rec.name_len, LS_RESERVE_DEFINITION);
        if (!body)
                return;
        memcpy(body, &rec, sizeof rec);
        memcpy(body + sizeof rec, name, rec.name_len);
        ls_ring_commit(t->ring, body);
}

/* The VM of L, when it is sampled and this thread is. */
static struct ls_vm *sampled_here(const lua_State *L)
{
        return ls_thread_self() ? ls_vm_of(L) : NULL;
}

/* luasample.start(opts): from here on only what lies between start and stop is recorded. */
static int region_start(lua_State *L)
{
        size_t len;
        const char *name = region_name(L, &len);
        struct ls_vm *vm = sampled_here(L);

        if (!vm || vm->in_region)
                return 0;
        ls_thread_flush(ls_thread_self());
        send_region(1, name, len);
        vm->in_region = 1;
        vm->paused = 0;
        return 0;
}

static int region_stop(lua_State *L)
{
        struct ls_vm *vm = sampled_here(L);

        if (!vm || !vm->in_region)
                return 0;
        vm->paused = 1;
        ls_thread_flush(ls_thread_self());
        vm->in_region = 0;
        send_region(0, "", 0);
        return 0;
}

static int is_recording(lua_State *L)
{
        const struct ls_vm *vm = sampled_here(L);

        ls_lua.lua_pushboolean(L, vm && !vm->paused && !atomic_load(&ls_agent.shm->paused) &&
                               (vm->engine == LS_ENGINE_WALK || !ls_profiler_is_taken()));
        return 1;
}

static int open_module(lua_State *L)
{
        static const struct { const char *name; int (*fn)(lua_State *); } functions[] = {
                { "start", region_start },
                { "stop", region_stop },
                { "is_recording", is_recording },
        };

        ls_lua.lua_createtable(L, 0, 4);
        for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++) {
                ls_lua.lua_pushcclosure(L, functions[i].fn, 0);
                ls_lua.lua_setfield(L, -2, functions[i].name);
        }
        ls_lua.lua_pushlstring(L, LS_VERSION, sizeof LS_VERSION - 1);
        ls_lua.lua_setfield(L, -2, "_VERSION");
        return 1;
}

/* The registry's _PRELOAD becomes package.preload when the package library is opened. */
static int install(lua_State *L)
{
        ls_lua.lua_getfield(L, LS_LUA_REGISTRYINDEX, "_PRELOAD");
        if (ls_lua.lua_type(L, -1) != LS_LUA_TTABLE) {
                ls_lua_pop(L, 1);
                ls_lua.lua_createtable(L, 0, 4);
                ls_lua.lua_pushvalue(L, -1);
                ls_lua.lua_setfield(L, LS_LUA_REGISTRYINDEX, "_PRELOAD");
        }
        ls_lua.lua_pushcclosure(L, open_module, 0);
        ls_lua.lua_setfield(L, -2, "luasample");
        ls_lua.lua_pushcclosure(L, ls_zone_open, 0);
        ls_lua.lua_setfield(L, -2, "jit.zone");
        ls_lua_pop(L, 1);
        return 0;
}

void ls_module_install(lua_State *L)
{
        int top = ls_lua.lua_gettop(L);

        ls_lua.lua_pushcclosure(L, install, 0);
        ls_lua.lua_pcall(L, 0, 0, 0);   /* no memory: the program will notice soon enough by itself */
        ls_lua.lua_settop(L, top);
}
