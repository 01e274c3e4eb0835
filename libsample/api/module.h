/* The part of require "luasample" that is Lua: module.lua, put into a C file by the build for module.c. */
#ifndef LS_LIBSAMPLE_API_MODULE_H
#define LS_LIBSAMPLE_API_MODULE_H

extern const char ls_module_lua[];
extern const unsigned ls_module_lua_len;

#endif
