/* The module that the program's require "jit.zone" gets: see zones.c, and handler/zones.h for what
 * samples read. */
#ifndef LS_LIBSAMPLE_API_ZONES_H
#define LS_LIBSAMPLE_API_ZONES_H

typedef struct lua_State lua_State;

/* Loader of the module, for package.preload. A lua_CFunction; runs in the program's require. */
int ls_zone_open(lua_State *L);

#endif
