/* require "luasample" in a process that was attached to. The agent comes and goes, but what the Lua
 * code of zones and labels writes to must stay: so it is memory of the VM, which is lent to each
 * recording. luasample.lua opens the module itself. */

#include "libsample/api/lend.h"

#include <stdio.h>
#include <string.h>

#include "libsample/agent.h"
#include "libsample/handler/labels.h"
#include "libsample/handler/vms.h"
#include "libsample/handler/zones.h"
#include "libsample/lua_debug.h"

struct lent { struct ls_vm_zones zones; struct ls_vm_labels labels; };

/* Raises Lua's errors. In the registry under its size: an agent of another build may have left one
 * that is smaller. In lua_close nothing is lent, since it would be freed while samples are
 * taken. */
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
