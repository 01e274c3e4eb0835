/* The names of the instructions of LuaJIT's intermediate code: their numbers differ between builds,
 * and only jit/vmdef.lua, which comes with each, tells them. Called by probe.c, in the probe's
 * VM. */

#include "libsample/jit/irnames.h"

#include <string.h>

#include "libsample/agent.h"

#include "libsample/jit/attempts.h"
#include "libsample/jit/facts.h"
#include "libsample/layout.h"
#include "libsample/lua_debug.h"

/* Finds the file as require would, and runs it where it can do nothing. */
static const char vmdef_source[] =
        "local path = package.searchpath and package.searchpath('jit.vmdef', package.path)\n"
        "local chunk = path and loadfile(path)\n"
        "local env = { assert = assert, require = function(name) return package.loaded[name] end "
        "}\n"
        "local ok, vmdef = pcall(chunk and setfenv(chunk, env), 'jit.vmdef')\n"
        "if not ok or type(vmdef) ~= 'table' then return end\n"
        "local names = { errors = '', bcnames = type(vmdef.bcnames) == 'string' and vmdef.bcnames "
        "or nil }\n"
        "local errors = type(vmdef.traceerr) == 'table' and vmdef.traceerr or {}\n"
        "for i = 0, 255 do\n"
        "  if type(errors[i]) ~= 'string' then break end\n"
        "  names.errors = names.errors .. errors[i] .. '\\0'\n"
        "end\n"
        "return vmdef.irnames, names\n";

/* The names at known places: BASE comes first, and a loop's trace has one LOOP. */
static const char *check(const char *names, size_t len, const char *trace)
{
        const char *ir = LS_READ(const char *, trace, LS_TR_IR) + LS_IR_SIZE * (size_t)LS_REF_BIAS;
        uint32_t n = LS_READ(uint32_t, trace, LS_TR_NINS) - LS_REF_BIAS, loops = 0, adds = 0;

        if (!names)
                return "jit/vmdef.lua, which names the instructions of traces, was not found in "
                       "package.path";
        if (len < 6 || len % 6 || len > sizeof ls_jit_facts.irnames)
                return "jit/vmdef.lua names the instructions of traces in an unknown way";
        for (uint32_t i = 0; i < n; i++) {
                size_t at = 6 * (size_t)LS_READ(uint8_t, ir, LS_IR_SIZE * (size_t)i + LS_IR_OP);

                if (at >= len || (i == 0 && memcmp(names + at, "BASE  ", 6)))
                        return "jit/vmdef.lua is of another LuaJIT";
                loops += !memcmp(names + at, "LOOP  ", 6);
                adds += !memcmp(names + at, "ADD   ", 6);
        }
        return loops == 1 && adds ? NULL : "jit/vmdef.lua is of another LuaJIT";
}

const char *ls_jit_find_irnames(lua_State *L, const char *trace)
{
        const char *names = NULL, *why;
        size_t len = 0;

        if (!ls_lua.luaL_loadbuffer(L, vmdef_source, sizeof vmdef_source - 1, "=luasample") &&
            !ls_lua.lua_pcall(L, 0, 2, 0)) {
                names = ls_lua.lua_tolstring(L, -2, &len);
                if (ls_lua.lua_type(L, -1) == LS_LUA_TTABLE)
                        ls_jit_attempt_names(L);
        }
        why = check(names, len, trace);
        if (why)
                return why;
        memcpy(ls_jit_facts.irnames, names, len);
        ls_jit_facts.nirnames = (uint32_t)len;
        return NULL;
}
