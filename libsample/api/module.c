/* What the recorded program can require: "luasample" (regions, pauses, marks, counters, zones,
 * labels) and "jit.zone". Both are put into package.preload when the VM is created. */

#include "libsample/api/module.h"

#include "libsample/agent.h"
#include "libsample/api/control.h"
#include "libsample/api/counters.h"
#include "libsample/api/lend.h"
#include "libsample/api/own.h"
#include "libsample/api/ready.h"
#include "libsample/api/zones.h"
#include "libsample/handler/labels.h"
#include "libsample/handler/ready.h"
#include "libsample/handler/vms.h"
#include "libsample/handler/walk.h"
#include "libsample/handler/zones.h"
#include "libsample/libc/real.h"
#include "libsample/lua_debug.h"
#include "libsample/recording/pass.h"

_Static_assert(LS_LABELS_MOST == 8, "a set of module.lua has so many places");

#define INNER "luasample.inner"         /* in the registry: what the C interface calls */
#define OUTER "luasample.module"        /* and the module, where that was what opened it */

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

/* The name of the trace of the program's own recorder, which is asked for or not. */
static int push_trace(lua_State *L, int wanted)
{
        if (wanted)
                ls_lua.lua_pushstring(L, ls_own_trace());
        return wanted;
}

/* luasample.start(opts): from here on only what lies between start and stop is recorded. */
static int region_start(lua_State *L)
{
        size_t len;
        const char *name = region_name(L, &len);

        ls_control_start(L, name, len);
        return push_trace(L, ls_own_is_at_work());
}

static int region_stop(lua_State *L)
{
        ls_control_stop(L);
        return push_trace(L, !ls_control_in_region() && ls_own_end());
}

static int pause_samples(lua_State *L)
{
        ls_control_pause(L);
        return 0;
}

static int resume_samples(lua_State *L)
{
        ls_control_resume(L);
        return 0;
}

/* A string or a number; anything else is an empty name: what marks the program must not break
 * it. */
static int mark(lua_State *L)
{
        size_t len = 0;
        const char *name = ls_lua.lua_gettop(L) ? ls_lua.lua_tolstring(L, 1, &len) : NULL;

        ls_control_mark(name ? name : "", len);
        return 0;
}

/* What is no number, and NaN, is no value. */
static int counter(lua_State *L)
{
        size_t len = 0;
        const char *name = ls_lua.lua_gettop(L) > 1 ? ls_lua.lua_tolstring(L, 1, &len) : NULL;

        if (name && ls_lua.lua_type(L, 2) == LS_LUA_TNUMBER)
                ls_control_counter(name, len, ls_lua.lua_tonumber(L, 2));
        return 0;
}

/* ready(co), ready(co, false): anything that is no coroutine is let pass. */
static int ready(lua_State *L)
{
        int runs = ls_lua.lua_gettop(L) > 1 && !ls_lua.lua_toboolean(L, 2);

        if (ls_lua.lua_gettop(L) && ls_lua.lua_type(L, 1) == LS_LUA_TTHREAD)
                ls_ready_mark(ls_lua.lua_topointer(L, 1), !runs);
        return 0;
}

static int is_recording(lua_State *L)
{
        ls_lua.lua_pushboolean(L, ls_control_is_recording(L));
        return 1;
}

/* Leaves package.loaded[name] or nil on the stack; returns 1 when it is there. */
static int push_loaded(lua_State *L, const char *name)
{
        ls_lua.lua_getfield(L, LS_LUA_REGISTRYINDEX, "_LOADED");
        if (ls_lua.lua_type(L, -1) == LS_LUA_TTABLE) {
                ls_lua.lua_getfield(L, -1, name);
                ls_lua.lua_remove(L, -2);
        }
        return ls_lua.lua_type(L, -1) == LS_LUA_TTABLE;
}

/* Leaves the program's jit.zone on the stack, and loads it as require would. */
static void push_zone(lua_State *L)
{
        if (push_loaded(L, "jit.zone"))
                return;
        ls_lua_pop(L, 1);
        ls_lua.lua_pushcclosure(L, ls_zone_open, 0);
        ls_lua.lua_call(L, 0, 1);
        ls_lua.lua_getfield(L, LS_LUA_REGISTRYINDEX, "_LOADED");
        if (ls_lua.lua_type(L, -1) == LS_LUA_TTABLE) {
                ls_lua.lua_pushvalue(L, -2);
                ls_lua.lua_setfield(L, -2, "jit.zone");
        }
        ls_lua_pop(L, 1);
}

/* The tables of the first label: with room in their array parts, which is where the tick handler
 * looks. Returns both. */
static int new_labels(lua_State *L)
{
        struct ls_vm_labels *labels;

        ls_module_lend(L);              /* in another attachment than that which opened the
                                         * module */
        labels = ls_labels_of(L);
        if (!labels)
                return 0;
        ls_lua.lua_createtable(L, LS_LABEL_SLOTS, 0);
        ls_lua.lua_pushvalue(L, -1);
        ls_lua.lua_setfield(L, LS_LUA_REGISTRYINDEX, "luasample.live");
        ls_lua.lua_createtable(L, LS_LABEL_SLOTS, 0);
        ls_lua.lua_pushvalue(L, -1);
        ls_lua.lua_setfield(L, LS_LUA_REGISTRYINDEX, "luasample.labels");
        labels->live = ls_lua.lua_topointer(L, -2);
        labels->sets = ls_lua.lua_topointer(L, -1);
        return 2;
}

/* Adds what is written in Lua to the table on the stack. */
static void add_lua(lua_State *L)
{
        const char *g = LS_READ(const char *, L, LS_L_GLREF);
        int module = ls_lua.lua_gettop(L);
        struct ls_vm *vm = ls_vm_of(L);
        struct ls_vm_labels *labels = ls_labels_of(L);

        push_zone(L);
        if (vm && vm->lent && vm->zones &&
            !vm->zones->names) /* LuaJIT's own, from before: its stack is in itself */
                vm->zones->names = ls_lua.lua_topointer(L, -1);
        if (ls_lua.luaL_loadbuffer(L, ls_module_lua, ls_module_lua_len, "=luasample"))
                ls_lua.lua_error(L);
        ls_lua.lua_pushvalue(L, module);
        if (vm && vm->zones && vm->zones->tracked)
                ls_lua.lua_pushlightuserdata(L, vm->zones->own);
        else
                ls_lua.lua_pushnil(L);
        ls_lua.lua_pushlightuserdata(L, (void *)(uintptr_t)(g + ls_vm_facts.cur_L_offset));
        ls_lua.lua_pushvalue(L, module + 1);
        if (labels)
                ls_lua.lua_pushlightuserdata(L, labels->own);
        else
                ls_lua.lua_pushnil(L);
        ls_lua.lua_pushcclosure(L, new_labels, 0);
        ls_lua.lua_pushnumber(L, LS_ZONE_OWNERS);
        ls_lua.lua_pushnumber(L, LS_LABEL_SLOTS);
        ls_lua.lua_pushnumber(L, LS_LABEL_PROBES);
        ls_lua.lua_call(L, 9, 1);
        ls_lua.lua_setfield(L, LS_LUA_REGISTRYINDEX, INNER);
        ls_lua.lua_settop(L, module);
}

static int open_module(lua_State *L)
{
        static const struct { const char *name; int (*fn)(lua_State *); } functions[] = {
                { "start", region_start },
                { "stop", region_stop },
                { "pause", pause_samples },
                { "resume", resume_samples },
                { "mark", mark },
                { "counter", counter },
                { "is_recording", is_recording },
                { "ready", ready },
        };

        ls_lua.lua_createtable(L, 0, 12);
        for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++) {
                ls_lua.lua_pushcclosure(L, functions[i].fn, 0);
                ls_lua.lua_setfield(L, -2, functions[i].name);
        }
        ls_lua.lua_pushlstring(L, LS_VERSION, sizeof LS_VERSION - 1);
        ls_lua.lua_setfield(L, -2, "_VERSION");
        add_lua(L);
        return 1;
}

/* What the program has of the module for programs that are not recorded (luasample.lua) goes on as
 * this one, on top of the stack; else this one is what require finds. */
static void join_loaded(lua_State *L)
{
        int module = ls_lua.lua_gettop(L), joins = 0;

        if (push_loaded(L, "luasample")) {
                ls_lua.lua_getfield(L, -1, "_join");
                joins = ls_lua.lua_type(L, -1) == LS_LUA_TFUNCTION;
        }
        if (joins) {
                ls_lua.lua_pushvalue(L, module);
                ls_lua.lua_call(L, 1, 0);
        } else {
                ls_lua.lua_getfield(L, LS_LUA_REGISTRYINDEX, "_LOADED");
                ls_lua.lua_pushvalue(L, module);
                if (ls_lua.lua_type(L, -2) == LS_LUA_TTABLE)
                        ls_lua.lua_setfield(L, -2, "luasample");
        }
        ls_lua.lua_settop(L, module);
}

void ls_module_push(lua_State *L, const char *function)
{
        ls_module_lend(L);
        ls_lua.lua_getfield(L, LS_LUA_REGISTRYINDEX, INNER);
        if (ls_lua.lua_type(L, -1) != LS_LUA_TTABLE) {
                ls_lua_pop(L, 1);
                open_module(L);
                ls_lua.lua_pushvalue(L, -1);
                ls_lua.lua_setfield(L, LS_LUA_REGISTRYINDEX, OUTER);
                join_loaded(L);
                ls_lua_pop(L, 1);
                ls_lua.lua_getfield(L, LS_LUA_REGISTRYINDEX, INNER);
        }
        if (function)
                ls_lua.lua_getfield(L, -1, function);
        else
                ls_lua.lua_getfield(L, LS_LUA_REGISTRYINDEX, OUTER);
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
        ls_lua.lua_pcall(L, 0, 0, 0);   /* no memory: the program will notice soon enough by
                                         * itself */
        ls_lua.lua_settop(L, top);
}

static int open_here(lua_State *L)
{
        ls_module_push(L, NULL);
        return 1;
}

int luasample_open(lua_State *L);

/* A lua_CFunction. Returns the module, or nothing where this VM is not recorded by way of
 * attachment. */
LS_EXPORT int luasample_open(lua_State *L)
{
        int found = 0;

        if (!ls_agent_live() || !ls_agent.attached || !ls_control_come_in())
                return 0;
        if (ls_vm_of(L) && ls_lua.lua_newuserdata) {
                ls_lua.lua_pushcclosure(L, open_here, 0);
                found = ls_lua.lua_pcall(L, 0, 1, 0) == 0;
        }
        ls_control_go_out();
        return found;
}
