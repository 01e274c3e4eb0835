/* require "luasample" in a program: see module.c. */
#ifndef LS_LIBSAMPLE_API_MODULE_H
#define LS_LIBSAMPLE_API_MODULE_H

typedef struct lua_State lua_State;

/* Puts require "jit.zone" and require "luasample" into the VM. */
void ls_module_install(lua_State *L);
/* Pushes an inner function of require "luasample" (NULL = the module itself), and loads that if
 * need be. Raises Lua's errors. */
void ls_module_push(lua_State *L, const char *function);

/* The part of it that is Lua: module.lua, put into a C file by the build. */
extern const char ls_module_lua[];
extern const unsigned ls_module_lua_len;

#endif
