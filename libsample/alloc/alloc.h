/* Samples what a VM allocates. The VM's allocator, one word of its global_State, is replaced by a
 * stub that knows the VM, and counts bytes down: where the count ends an allocation is sampled, on
 * average one each shm->alloc_interval bytes, so that a block of size bytes is with the probability
 * 1 - exp(-size / interval), whatever was before. The function's data stays the host's, so that
 * one store puts the stub in and takes it out, at any moment.
 *
 * Called by interpose/ and vm/, in normal context. docs/memory.md. */
#ifndef LS_LIBSAMPLE_ALLOC_ALLOC_H
#define LS_LIBSAMPLE_ALLOC_ALLOC_H

#include "libsample/handler/vms.h"

/* Samples the allocations of this VM, whose global_State is known, from now on, if they are wanted.
 * Returns NULL, or why it cannot. */
const char *ls_alloc_open(struct ls_vm *vm, const char *global);
/* At a tick, in a process that was attached to: the same for this VM, which runs on the calling
 * thread, whose tables nobody uses. Signal handler. */
void ls_alloc_runs(struct ls_vm *vm, const char *global);
/* Why that could not be since it was asked last, NULL = it could. */
const char *ls_alloc_why_not(void);
/* The process ends, on thread t: what was freed of the VMs that it ran last is told. */
void ls_alloc_process_ends(struct ls_thread *t);
/* The end of an attachment: takes all stubs out. After that, when no call of the program is at
 * work in the agent: forgets the blocks. */
void ls_alloc_leave(void);
void ls_alloc_left(void);
/* At the entry of lua_close, in whatever process: the allocator is what it was, since lua_close
 * gives the VM's memory back by which one it is. A stub that a host has put behind a function of
 * its own lets pass from now on. */
void ls_alloc_close(const lua_State *L);
/* In a forked child: nothing is sampled, or anew when it is recorded. */
void ls_alloc_after_fork(int recorded);

/* The allocator behind f: what the program has set. */
void *ls_alloc_inner(void *f);
/* Around lua_setallocf: the stub of L's VM, NULL = it has none; puts it back, with what the program
 * has set behind it. */
void *ls_alloc_stub(const lua_State *L);
void ls_alloc_put_back(const lua_State *L, void *stub);

#endif
