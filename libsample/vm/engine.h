/* Life of the capture engines: what library.c (patched entries), interpose/preload.c and api/module.c call, and what engine.c,
 * profiler.c and hook.c share. Normal context. */
#ifndef LS_LIBSAMPLE_VM_ENGINE_H
#define LS_LIBSAMPLE_VM_ENGINE_H

#include "libsample/agent.h"
#include "libsample/handler/tick.h"

/* The callback for luaJIT_profile_start: one sample. */
void ls_hook(void *data, lua_State *L, int samples, int vmstate);
/* hook_api.c: the same where stacks cannot be read raw. */
void ls_hook_api(struct ls_thread *t, const struct ls_vm *vm, lua_State *L, int vmstate);

/* profiler.c: LuaJIT's own profiler, of which a process has one. */

/* Starts it for this VM. Returns NULL, or why it cannot be had. */
const char *ls_profiler_start(struct ls_vm *vm);
/* The VM is about to be closed, or the process ends: ours stops. */
void ls_profiler_stop(const struct ls_vm *vm);
/* 1 while the program's own profiler has it. */
int ls_profiler_is_taken(void);
/* The recording ends while the program's profiler has it: what could not be sampled is counted. */
void ls_profiler_account(void);
/* The VM in which ours ran is about to be closed while the program's runs, or the program's VM is. */
void ls_profiler_vm_closing(lua_State *L, const struct ls_vm *vm);
void ls_profiler_vm_closed(lua_State *L);
/* Last words on it. */
void ls_profiler_last_words(void);

/* Installs the tick's signal handler. 0 or -1. */
int ls_engine_install_handler(void);

/* 1 when ticks have a handler: else one would kill the process. */
int ls_engine_has_handler(void);
/* From now on they have not: threads that arm themselves late, such as one that makes a VM, get no ticks. */
void ls_engine_give_up_handler(void);

/* Puts require "jit.zone" and require "luasample" into the VM. */
void ls_module_install(lua_State *L);

/* attach/attach.c: the first recording of an attached process, and each further one. Returns NULL, or why VMs cannot be sampled. */
const char *ls_engine_attach(void);
/* VMs are forgotten. No handler runs any more. */
void ls_engine_detach(void);

#endif
