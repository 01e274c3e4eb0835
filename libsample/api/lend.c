/* require "luasample" in a process that was attached to. The agent comes and goes, but what the Lua code of zones and labels
 * writes to must stay: so it is memory of the VM, which is lent to each recording. luasample.lua opens the module itself. */
#include <stdio.h>

#include "libsample/api/control.h"
#include "libsample/vm/engine.h"
#include "libsample/api/labels.h"
#include "libsample/vm/lua_debug.h"
#include "libsample/interpose/real.h"
#include "libsample/api/zones.h"

struct lent { struct ls_vm_zones zones; struct ls_vm_labels labels; };

/* Raises Lua's errors. In the registry under its size: an agent of another build may have left one that is smaller. In
 * lua_close nothing is lent, since it would be freed while samples are taken. */
void ls_module_lend(lua_State *L)
{
        struct ls_vm *vm = ls_agent.attached ? ls_vm_of(L) : NULL;
        struct lent *lent;
        char name[48];

        if (!vm || vm->lent || atomic_load(&vm->closing))
                return;
        snprintf(name, sizeof name, "luasample.memory.%zu", sizeof *lent);
        ls_lua.lua_getfield(L, LS_LUA_REGISTRYINDEX, name);
        lent = ls_lua.lua_touserdata(L, -1);
        if (!lent) {
                lent = ls_lua.lua_newuserdata(L, sizeof *lent);
                memset(lent, 0, sizeof *lent);
                ls_lua.lua_setfield(L, LS_LUA_REGISTRYINDEX, name);
        }
        ls_lua_pop(L, 1);
        vm->lent = 1;
        vm->zones = &lent->zones;
        vm->labels = &lent->labels;
}

static int open_here(lua_State *L)
{
        ls_module_push(L, NULL);
        return 1;
}

int luasample_open(lua_State *L);

/* A lua_CFunction. Returns the module, or nothing where this VM is not recorded by way of attachment. */
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
