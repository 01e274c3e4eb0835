/* The module that the program's require "jit.zone" gets: see zones.c, and handler/zones.h for what
 * samples read. */
#ifndef LS_LIBSAMPLE_API_ZONES_H
#define LS_LIBSAMPLE_API_ZONES_H

typedef struct lua_State lua_State;

/* Loader of the module, for package.preload. A lua_CFunction; runs in the program's require. */
int ls_zone_open(lua_State *L);

/* What it is, with the FFI and without: zone.lua and zone_plain.lua, put into C files by the
 * build. */
extern const char ls_zone_lua[], ls_zone_plain_lua[];
extern const unsigned ls_zone_lua_len, ls_zone_plain_lua_len;

#endif
