/* What a recorded program can tell of itself: regions, pauses, marks, counters. Called by module.c (Lua) and api.c (C).
 * Normal context. */
#ifndef LS_LIBSAMPLE_API_CONTROL_H
#define LS_LIBSAMPLE_API_CONTROL_H

#include <stddef.h>

#include "libsample/vm/vm.h"

/* struct ls_vm's paused */
#define LS_PAUSED_REGION 1              /* a region has ended, and no other has begun */
#define LS_PAUSED_CALL   2              /* pause was called, and resume was not */

/* Around what normal code of the program does with the recording: in a process that was attached to that may end meanwhile.
 * come_in returns 0 when nothing is recorded here; then go_out must not be called. */
int ls_control_come_in(void);
/* The same for what needs no ring of its thread. */
int ls_control_pass(void);
/* The same for entries of the VM: the agent hears of VMs for as long as it samples. */
int ls_control_pass_vm(void);
void ls_control_go_out(void);

/* L: all these are about its VM; NULL = all VMs. Return 1 when something changed, 0 = nothing is recorded here, or it was so
 * before. */
int ls_control_start(lua_State *L, const char *name, size_t len);
int ls_control_stop(lua_State *L);
int ls_control_pause(lua_State *L);
int ls_control_resume(lua_State *L);
int ls_control_is_recording(lua_State *L);
/* 1 when any VM is in a region. */
int ls_control_in_region(void);
/* An instant of the calling thread. */
int ls_control_mark(const char *name, size_t len);
/* counters.c: a counter of the process has this value from now on. NaN and infinities are no values. */
int ls_control_counter(const char *name, size_t len, double value);

/* module.c: pushes an inner function of require "luasample" (NULL = the module itself), and loads that if need be. Raises
 * Lua's errors. */
void ls_module_push(lua_State *L, const char *function);
/* lend.c: what it needs in a process that was attached to. Raises Lua's errors. */
void ls_module_lend(lua_State *L);

#endif
