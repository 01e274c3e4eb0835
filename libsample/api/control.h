/* What a recorded program can tell of itself: regions, pauses, marks, counters. Called by module.c
 * (Lua) and api.c (C). Normal context. */
#ifndef LS_LIBSAMPLE_API_CONTROL_H
#define LS_LIBSAMPLE_API_CONTROL_H

#include <stddef.h>

#include "libsample/handler/vms.h"

/* struct ls_vm's paused */
#define LS_PAUSED_REGION 1              /* a region has ended, and no other has begun */
#define LS_PAUSED_CALL   2              /* pause was called, and resume was not */

/* L: all these are about its VM; NULL = all VMs. Return 1 when something changed, 0 = nothing is
 * recorded here, or it was so before. */
int ls_control_start(lua_State *L, const char *name, size_t len);
int ls_control_stop(lua_State *L);
int ls_control_pause(lua_State *L);
int ls_control_resume(lua_State *L);
int ls_control_is_recording(lua_State *L);
/* 1 when any VM is in a region. */
int ls_control_in_region(void);
/* An instant of the calling thread. */
int ls_control_mark(const char *name, size_t len);
#endif
