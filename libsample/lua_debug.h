/* Lua 5.1's lua_Debug, as every LuaJIT has it in its ABI: the agent is built without Lua's
 * headers. */
#ifndef LS_LIBSAMPLE_LUA_DEBUG_H
#define LS_LIBSAMPLE_LUA_DEBUG_H

struct lua_Debug {
        int event;
        const char *name;
        const char *namewhat;
        const char *what;
        const char *source;
        int currentline;
        int nups;
        int linedefined;
        int lastlinedefined;
        char short_src[60];
        int i_ci;                       /* frame: size << 16 | offset from the stack's start, in
                                         * slots */
};

#define LS_LUA_REGISTRYINDEX (-10000)
#define LS_LUA_GLOBALSINDEX  (-10002)
#define ls_lua_upvalueindex(i) (LS_LUA_GLOBALSINDEX - (i))
#define ls_lua_pop(L, n) ls_lua.lua_settop(L, -(n) - 1)
enum {
        LS_LUA_TNIL = 0,
        LS_LUA_TNUMBER = 3,
        LS_LUA_TSTRING = 4,
        LS_LUA_TTABLE = 5,
        LS_LUA_TFUNCTION = 6,
        LS_LUA_TTHREAD = 8
};

#endif
