/* jit.zone with zones per coroutine. The program's require "jit.zone" gets a module of ours that behaves as LuaJIT's
 * and notes which coroutine pushed each zone; the VM hook reads the stack of zones raw. */
#ifndef LS_ZONES_H
#define LS_ZONES_H

#include <stdint.h>

#include "formats/wire/ring.h"

typedef struct lua_State lua_State;

/* Loader of the module, for package.preload. A lua_CFunction; runs in the program's require. */
int ls_zone_open(lua_State *L);

/* Id of the innermost zone that L or one of its resumers is in, 0 = none. Hook only. */
uint32_t ls_zone_id(struct ls_ring *ring, const lua_State *L);

/* The VM is gone, the module too. */
void ls_zones_reset(void);

#endif
