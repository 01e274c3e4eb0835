/* What happens to VMs and to the process, and what that means for the recording. Called from the
 * patched entries in the VM's own thread, from interpose/ and from start/; normal context. */
#ifndef LS_LIBSAMPLE_VM_LIFE_H
#define LS_LIBSAMPLE_VM_LIFE_H

#include <stdint.h>

#include "libsample/agent.h"
#include "libsample/handler/vms.h"

/* In a process that was attached to: a VM that was there before the agent, or one that a thread
 * has just made, which may have no ring yet. It is not read, since it may be gone again. Returns
 * NULL, or why it is not sampled. */
const char *ls_engine_vm_adopt(lua_State *L);
/* lua_close is about to run. Returns the VM, NULL = it is not sampled. */
struct ls_vm *ls_engine_vm_closing(lua_State *L, uint32_t *ret_vm_id);
/* lua_close of that VM has returned. L is only compared. */
void ls_engine_vm_closed(lua_State *L, struct ls_vm *vm, uint32_t vm_id);
/* The process is about to exec in place: stop ticks so that none is pending in the new image;
 * undo when exec fails. Returns 0, or -1: the recorder does not answer, a tick may still come. */
int ls_engine_before_exec(void);
void ls_engine_exec_failed(void);
/* The process ends normally (destructor): send last names, disarm. */
void ls_engine_process_end(void);
/* The recording of this process ends before the process does, for good: the same, and returns when
 * no tick comes any more; or -1: the recorder does not answer, one may still come. */
int ls_engine_give_up(void);
/* In the child after fork: no tick comes, nothing is written. */
void ls_engine_after_fork_child(void);
/* In that child: 1 when it has VMs that can be sampled on. */
int ls_engine_may_go_on(void);
/* A process that has just joined: what it has of its VMs, and of the runtime, is told anew, and
 * ticks begin. */
void ls_engine_go_on(void);
/* Greatest id of a JIT trace so far. */
uint32_t ls_engine_jit_ids(void);

/* start/attach.c: the first recording of an attached process, and each further one. Returns NULL,
 * or why VMs cannot be sampled. */
const char *ls_engine_attach(void);
/* At a tick, for ls_tick_vm_runs: the VM's allocations are sampled from now on. */
void ls_engine_vm_runs(struct ls_vm *vm, const char *global);
/* Why those of a VM are not; NULL = none is to be told of. */
const char *ls_engine_why_no_memory(void);
/* The same for a VM that the calling thread has just made. */
void ls_engine_vm_sample_memory(lua_State *L);
/* The attachment ends: what was put into VMs is taken out, while the agent hears of those that
 * close. */
void ls_engine_leave(void);
/* VMs are forgotten. No handler runs any more. */
void ls_engine_detach(void);

#endif
