/* The VMs of the process: made known to the tick handler when they are created, taken from it
 * when they are closed. See vms.h. */

#include "libsample/vm/vms.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libsample/agent.h"
#include "libsample/handler/guard.h"
#include "libsample/handler/labels.h"
#include "libsample/handler/ready.h"
#include "libsample/handler/ring_writer.h"
#include "libsample/handler/walk.h"
#include "libsample/handler/zones.h"
#include "libsample/jit/jit.h"
#include "libsample/layout.h"
#include "libsample/lock.h"
#include "libsample/vm/runtime.h"

/* The tables of VMs change under this lock, and the probe runs. Never the program's code, nor its
 * allocator: a VM's own thread may hold any lock of the program when it makes or closes a VM. */
static pthread_mutex_t vms_lock = PTHREAD_MUTEX_INITIALIZER;

void ls_vms_lock(sigset_t *ret_mask)
{
        ls_lock(&vms_lock, ret_mask);
}

void ls_vms_unlock(const sigset_t *mask)
{
        ls_unlock(&vms_lock, mask);
}

void ls_vms_after_fork(void)
{
        static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

        memcpy(&vms_lock, &fresh, sizeof fresh);        /* another thread may have had it */
}

void ls_vms_send(struct ls_thread *t, const struct ls_vm *v)
{
        struct ls_rec_vm vm = { v->vm_id, LS_VMF_PROBED | LS_VMF_JIT, 0, 0 };
        char *body;

        vm.name_len = (uint32_t)strlen(ls_vm_facts.version);
        body = ls_ring_reserve(t->ring, LS_REC_VM, sizeof vm + vm.name_len, LS_RESERVE_DEFINITION);
        if (!body)
                return;
        memcpy(body, &vm, sizeof vm);
        memcpy(body + sizeof vm, ls_vm_facts.version, vm.name_len);
        ls_ring_commit(t->ring, body);
}

#define NAP_NS 50000
#define NAPS 40000 /* 2 s at least: a thread that is stopped in its handler is not waited for */

/* Until no handler that looked at the VM before still reads it. Handlers are short, but their
 * thread may have lost its CPU: it may have to wait until this one sleeps. */
void ls_vms_wait_for_readers(const struct ls_vm *vm)
{
        for (unsigned i = 0; i < LS_THREADS_MOST; i++)
                for (int spins = 0; spins < NAPS && atomic_load(&ls_vm_readers[i]) == vm; spins++)
                        if (spins > 200)
                                syscall(SYS_nanosleep, &(struct timespec){ 0, NAP_NS }, NULL);
                        else if (spins > 100)
                                syscall(SYS_sched_yield);
}

/* No handler finds the VM from here on, and none that has found it still reads it when this
 * returns. */
void ls_vms_withdraw(struct ls_vm *vm)
{
        if (!atomic_exchange(&vm->global, NULL))
                return;
        if (!ls_agent_live()) {
                ls_jit_close(vm);
                return;
        }
        atomic_fetch_add(&ls_vms_closed, 1);
        ls_vms_wait_for_readers(vm);
        ls_jit_close(vm);
        ls_zones_close(vm);
        ls_labels_close(vm);
        ls_ready_close(vm);
        atomic_store(&vm->taken, 0);
}

/* A VM that lua_close has freed, and whose address the new one was given before its thread could
 * say so. */
static void withdraw_predecessor(const char *global)
{
        for (uint32_t i = 0; i < atomic_load(&ls_vms_used); i++)
                if (atomic_load(&ls_vms[i].global) == global)
                        ls_vms_withdraw(&ls_vms[i]);
}

static struct ls_vm *take_slot(void)
{
        for (uint32_t i = 0; i < LS_VMS_MOST; i++) {
                uint32_t taken = 0;

                if (atomic_compare_exchange_strong(&ls_vms[i].taken, &taken, 1))
                        return &ls_vms[i];
        }
        return NULL;
}

/* A slot for a new VM with this global_State, NULL = it cannot be sampled. */
struct ls_vm *ls_vms_reserve(lua_State *L, const char *global)
{
        static uint32_t next_vm_id;
        struct ls_vm *vm;
        sigset_t mask;

        ls_vms_lock(&mask);
        withdraw_predecessor(global);
        vm = ls_runtime_is_usable() ? take_slot() : NULL;
        if (!vm && (ls_vm_facts.ok || ls_runtime_has_profiler_api()))
                ls_runtime_refuse("the process has more VMs at a time than can be told apart");
        if (vm) {
                vm->main = L;
                vm->vm_id = ++next_vm_id;
                vm->jit = NULL;
                vm->exact = NULL;
                vm->zones = NULL;
                vm->labels = NULL;
                vm->own_alloc = NULL;
                vm->lent = 0;
                vm->ready = NULL;
                vm->paused = vm->in_region = 0;
                vm->heap_key = 0;
                atomic_store(&vm->runner, 0);
                atomic_store(&vm->closing, NULL);
        }
        ls_vms_unlock(&mask);
        return vm;
}

void ls_vms_publish(struct ls_vm *vm, const char *global)
{
        uint32_t slots = (uint32_t)(vm - ls_vms) + 1, used = atomic_load(&ls_vms_used);

        if (ls_vm_facts.ok && atomic_load(&ls_heap_is_watched) &&
            LS_READ(const void *, global, LS_G_ALLOCF) != ls_vm_facts.heap_alloc)
                atomic_store(&ls_heap_is_watched, 0);
        atomic_store(&vm->global, global);
        while (used < slots && !atomic_compare_exchange_weak(&ls_vms_used, &used, slots))
                ;
}

uint32_t ls_vms_live(void)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < atomic_load(&ls_vms_used); i++)
                n += atomic_load(&ls_vms[i].global) != NULL;
        return n;
}
