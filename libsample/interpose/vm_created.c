/* A VM that the program creates: its engine is chosen, and it is made known to the tick handler.
 * Called from the patched entries (library.c), in the VM's own thread. */

#include "libsample/interpose/vm_created.h"

#include <stdatomic.h>

#include "libsample/agent.h"
#include "libsample/alloc/alloc.h"
#include "libsample/api/module.h"
#include "libsample/handler/clock.h"
#include "libsample/handler/walk.h"
#include "libsample/jit/jit.h"
#include "libsample/recording/notice.h"
#include "libsample/recording/threads.h"
#include "libsample/recording/tick_action.h"
#include "libsample/vm/counting.h"
#include "libsample/vm/probe.h"
#include "libsample/vm/profiler.h"
#include "libsample/vm/runtime.h"
#include "libsample/vm/vms.h"

/* Which engine reads this VM. NULL in *ret_why: the one that was asked for, or with auto the
 * best. */
static uint8_t engine_for_new_vm(const char **ret_why)
{
        *ret_why = ls_vm_facts.ok ? NULL : ls_vm_facts.why;
        if (!ls_vm_facts.ok || ls_agent.shm->engine == LS_ENGINE_HOOK)
                return LS_ENGINE_HOOK;
        if (!ls_vm_facts.jit_base_offset) {
                *ret_why = ls_vm_facts.why_no_walk;
                return LS_ENGINE_HOOK;
        }
        return LS_ENGINE_WALK;
}

static void say_once(const char **said, const char *fmt, const char *why)
{
        if (*said != why)
                ls_agent_notice(fmt, why);
        *said = why;
}

/* Begins what the VM's engine needs. Returns NULL, or why the VM cannot be sampled. */
static const char *begin(struct ls_vm *vm, lua_State *L)
{
        static const char *said_walk, *said_map;
        const char *why;
        int counted;

        vm->engine = engine_for_new_vm(&why);
        if (why)
                say_once(&said_walk,
                         "the stacks are read at LuaJIT's safe points (engine hook): %s", why);
        vm->jit_leaf = ls_agent.shm->jit_leaf;
        counted = ls_counting_begin(vm, L);
        if (vm->engine == LS_ENGINE_HOOK)
                return ls_agent.shm->bare_tick == 2 ? NULL : ls_profiler_start(vm);
        /* no place in compiled code is asked for */
        if (ls_agent.shm->bare_tick == 2 && !ls_agent.shm->alloc_interval)
                vm->jit_leaf = LS_JIT_LEAF_ROOT;
        if (counted || ls_agent.shm->alloc_interval || ls_agent.shm->bare_tick != 2)
                ls_jit_open(vm, L);
        ls_counting_check(vm, L);
        if (vm->jit_leaf == LS_JIT_LEAF_MAP && (why = ls_jit_why_not()))
                say_once(&said_map,
                         "compiled code is shown by the function that its trace starts in: %s",
                         why);
        atomic_fetch_add(&ls_agent.shm->nvms_walk, 1);
        return NULL;
}

void ls_engine_vm_created(lua_State *L)
{
        static const char *said_alloc;
        struct ls_thread *t;
        struct ls_vm *vm;
        const char *why;
        uint64_t start;

        if (ls_vm_probing || !atomic_load(&ls_agent.shm->recording))
                return;
        start = ls_thread_cpu_ns();
        ls_thread_begin(0);
        t = ls_thread_self();
        if (!t)
                return;
        ls_thread_enter(t);
        vm = ls_vms_reserve(L, ls_vm_identity(L));
        if (!vm)
                goto out;
        atomic_store(&vm->runner, t->thread_id);
        why = ls_tick_action_install() ? "the tick's signal handler cannot be installed"
                                       : begin(vm, L);
        if (why) {
                ls_runtime_refuse(why);
                atomic_store(&vm->taken, 0);
                goto out;
        }
        ls_vms_send(t, vm);
        ls_vms_publish(vm, ls_vm_identity(L));         /* now the handler finds it: all else is
                                                        * ready */
        if (ls_vm_facts.ok)
                ls_module_install(L);
        atomic_fetch_add(&ls_agent.shm->nvms, 1);
        ls_runtime_set_state(LS_AGENT_SAMPLING);
        ls_threads_arm_all();
        why = ls_alloc_open(vm, ls_vm_identity(L));
        if (why)
                say_once(&said_alloc, "the allocations of a VM are not recorded: %s", why);
out:
        ls_thread_leave(t);
        atomic_fetch_add(&ls_agent.shm->own_start_ns, ls_thread_cpu_ns() - start);
}
