/* The VMs of the process, as normal code changes the table of handler/vms.h: reserved, published,
 * withdrawn. */
#ifndef LS_LIBSAMPLE_VM_VMS_H
#define LS_LIBSAMPLE_VM_VMS_H

#include <signal.h>
#include <stdint.h>

#include "libsample/handler/vms.h"
#include "libsample/thread.h"

/* The lock of the table, and of the probe. Signals of the thread are blocked meanwhile. */
void ls_vms_lock(sigset_t *ret_mask);
void ls_vms_unlock(const sigset_t *mask);
/* In a forked child: no other thread has it. */
void ls_vms_after_fork(void);

/* A slot for a new VM with this global_State, NULL = it cannot be sampled. Takes the lock. */
struct ls_vm *ls_vms_reserve(lua_State *L, const char *global);
/* Now the handler finds it. */
void ls_vms_publish(struct ls_vm *vm, const char *global);
/* No handler finds the VM from here on, and none that has found it still reads it when this
 * returns. */
void ls_vms_withdraw(struct ls_vm *vm);
/* Until no handler that looked at the VM before still reads it. */
void ls_vms_wait_for_readers(const struct ls_vm *vm);
/* Sends its VM record. */
void ls_vms_send(struct ls_thread *t, const struct ls_vm *v);
/* How many there are. */
uint32_t ls_vms_live(void);

#endif
