/* What LuaJIT tries to compile, and what comes of it: counted in the control page, and described in
 * the ring, where it began and ended and why. Called by events.c, on the VM's thread, in normal
 * context. */
#ifndef LS_LIBSAMPLE_JIT_ATTEMPTS_H
#define LS_LIBSAMPLE_JIT_ATTEMPTS_H

#include "libsample/handler/jit_traces.h"
#include "libsample/thread.h"

typedef struct lua_State lua_State;

/* An attempt begins: event "start". */
void ls_jit_attempt_begins(struct ls_jit *jit);
/* It has become a trace (a GCtrace), or was given up: the arguments of the event "abort" are on the
 * stack. t: NULL = the thread is not sampled: then it is counted only. In the former t is entered,
 * in the latter not. */
void ls_jit_attempt_compiled(struct ls_jit *jit, struct ls_thread *t, const char *trace);
void ls_jit_attempt_aborted(struct ls_jit *jit, struct ls_thread *t, lua_State *L);
/* All traces are thrown away: the handler of event "flush" runs on L. Before ls_jit_flush. */
void ls_jit_attempt_flushed(struct ls_jit *jit, lua_State *L);

/* In the probe's VM, protected: a table with strings irnames, errors (each ends with a zero byte)
 * and bcnames is on top. Fills in what ls_jit_facts has of the latter two. */
void ls_jit_attempt_names(lua_State *L);

#endif
