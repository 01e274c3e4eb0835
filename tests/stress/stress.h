/* What the parts of the stress host share. Each part is a lua_CFunction that takes a number from 1
 * to 4 and returns one that depends on it alone. */
#ifndef LS_TESTS_STRESS_H
#define LS_TESTS_STRESS_H

#include "tests/hosts/host.h"

extern const char *stress_module;       /* a library with functions of C for Lua (module.c) */

/* A VM that runs text with two arguments: what it returns. Ends the program when that fails. */
double stress_run(lua_State *L, const char *text, double a, double b);
/* The same in a VM made for it, which is then closed. */
double stress_run_new(const char *text, double a, double b);

/* threads.c */
int stress_vms(lua_State *L);
int stress_threads(lua_State *L);
double stress_short_s(void);            /* CPU seconds of the threads that stress_threads made, so
                                         * far */
int stress_handed(lua_State *L);
int stress_forks(lua_State *L);
/* signals.c */
int stress_timers(lua_State *L);
int stress_jumps(lua_State *L);
int stress_interrupts(lua_State *L);
int stress_stacks(lua_State *L);
/* calls.c */
int stress_resumes(lua_State *L);
int stress_library(lua_State *L);
int stress_calls(lua_State *L);

#endif
