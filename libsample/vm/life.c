/* What VMs that come and go, exec, fork and the end of the process mean for the recording: see
 * life.h. */

#include "libsample/vm/life.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "libsample/alloc/alloc.h"
#include "libsample/exact/exact.h"
#include "libsample/handler/clock.h"
#include "libsample/handler/guard.h"
#include "libsample/handler/jit_send.h"
#include "libsample/handler/names_search.h"
#include "libsample/handler/sampler.h"
#include "libsample/jit/jit.h"
#include "libsample/layout.h"
#include "libsample/recording/threads.h"
#include "libsample/recording/tick_action.h"
#include "libsample/vm/probe.h"
#include "libsample/vm/profiler.h"
#include "libsample/vm/runtime.h"
#include "libsample/vm/vms.h"

/* At the end of a VM or of the process the names that are still missing may take so long. */
#define LAST_NAMES_NS  UINT64_C(5000000)

const char *ls_engine_attach(void)
{
        sigset_t mask;

        ls_vms_lock(&mask);
        ls_runtime_forget();            /* another LuaJIT may have taken the place of the one
                                         * before */
        for (uint32_t i = 0; i < atomic_load(&ls_vms_used);
             i++) { /* those of the process that forked this one */
                atomic_store(&ls_vms[i].global, NULL);
                atomic_store(&ls_vms[i].taken, 0);
        }
        ls_runtime_probe();
        ls_vms_unlock(&mask);
        if (!ls_vm_facts.ok)
                return ls_vm_facts.why;
        if (!ls_vm_facts.jit_base_offset)
                return ls_vm_facts.why_no_walk;
        return ls_tick_action_install() ? "the tick's signal handler cannot be installed" : NULL;
}

const char *ls_engine_vm_adopt(lua_State *L)
{
        struct ls_thread *t = ls_thread_self();
        const char *global;
        struct ls_vm *vm;

        /* L is not read: a thread of the program may just have closed it. */
        global = (const char *)L + ls_vm_facts.main_to_global;
        if (ls_vm_probing || !ls_vm_facts.ok || !ls_tick_action_is_installed() || ls_vm_at(global))
                return NULL;
        vm = ls_vms_reserve(L, global);
        if (!vm)
                return "too many VMs";
        vm->engine = LS_ENGINE_WALK;
        vm->jit_leaf = ls_agent.shm->jit_leaf;
        ls_jit_open_running(vm, global);
        if (t) {
                ls_thread_enter(t);
                ls_vms_send(t, vm);
                ls_thread_leave(t);
        }
        ls_vms_publish(vm, global);
        atomic_fetch_add(&ls_agent.shm->nvms, 1);
        atomic_fetch_add(&ls_agent.shm->nvms_walk, 1);
        ls_runtime_set_state(LS_AGENT_SAMPLING);
        ls_threads_arm_all();
        return NULL;
}

void ls_engine_vm_runs(struct ls_vm *vm, const char *global)
{
        ls_alloc_runs(vm, global);
}

const char *ls_engine_why_no_memory(void)
{
        return ls_alloc_why_not();
}

void ls_engine_vm_sample_memory(lua_State *L)
{
        const char *global = ls_vm_facts.ok ? (const char *)L + ls_vm_facts.main_to_global : NULL;
        struct ls_vm *vm = global ? ls_vm_at(global) : NULL;

        if (vm)
                ls_alloc_open(vm, global);      /* why not is said at a tick */
}

void ls_engine_leave(void)
{
        ls_alloc_leave();
}

void ls_engine_detach(void)
{
        sigset_t mask;

        ls_alloc_left();
        ls_vms_lock(&mask);
        for (uint32_t i = 0; i < atomic_load(&ls_vms_used); i++)
                ls_vms_withdraw(&ls_vms[i]);
        atomic_store(&ls_vms_used, 0);
        ls_vms_unlock(&mask);
        ls_threads_restart();
}

/* 1 when the VM runs nothing or a C function. A host may call exit in a handler of signals, at
 * any instruction. */
static int is_at_rest(const struct ls_vm *vm)
{
        const char *global = atomic_load(&vm->global);

        if (!ls_vm_facts.ok || !global || !ls_readable(global + ls_vm_facts.main_offset - 8, 8) ||
            !ls_readable(global + ls_vm_facts.cur_L_offset, 8))
                return 0;
        const lua_State *L = LS_READ(const lua_State *, global, ls_vm_facts.cur_L_offset);

        if (L && !ls_readable(L, LS_L_CFRAME + 8))
                return 0;
        return !L || !ls_cframe_of(L) || LS_READ(int32_t, global, ls_vm_facts.vmstate_offset) == ~1;
}

/* Last words of a VM: what is still unnamed, what of texts is unsent, what ticks are pending. */
static void last_words(struct ls_thread *t, const struct ls_vm *vm, int rest)
{
        uint64_t start = ls_thread_cpu_ns();

        ls_profiler_last_words();
        if (!ls_thread_flush(t))
                return;
        ls_thread_enter(t);
        if (rest && ls_names_wanted(t))
                ls_names_search(t, vm->main, LAST_NAMES_NS);
        ls_thread_leave(t);
        atomic_fetch_add(&ls_agent.shm->own_hook_ns, ls_thread_cpu_ns() - start);
}

struct ls_vm *ls_engine_vm_closing(lua_State *L, uint32_t *ret_vm_id)
{
        struct ls_thread *t = ls_thread_self();
        struct ls_vm *vm = ls_vm_probing ? NULL : ls_vm_of(L);

        if (ls_vm_probing)
                return NULL;
        if (vm && t)
                last_words(t, vm, is_at_rest(vm));
        ls_profiler_vm_closing(L, vm);
        if (!vm)
                return NULL;
        *ret_vm_id = vm->vm_id;
        atomic_store(&vm->closing, t);
        ls_vms_wait_for_readers(vm);
        if (vm->lent) {                 /* lua_close frees them */
                vm->zones = NULL;
                vm->labels = NULL;
        }
        if (vm->engine == LS_ENGINE_HOOK || !t)
                ls_vms_withdraw(vm);           /* else its finalizers, which run in lua_close, are
                                                * time of this VM */
        return vm;
}

void ls_engine_vm_closed(lua_State *L, struct ls_vm *vm, uint32_t vm_id)
{
        sigset_t mask;

        if (ls_vm_probing)
                return;
        ls_vms_lock(&mask);
        if (vm && vm->vm_id == vm_id)
                ls_vms_withdraw(vm);
        ls_vms_unlock(&mask);
        if (vm_id && ls_vm_facts.ok)
                ls_exact_closed((const char *)L + ls_vm_facts.main_to_global, vm_id);
        ls_profiler_vm_closed(L);
        if (!ls_vms_live() && atomic_load(&ls_agent.shm->nvms))
                ls_runtime_set_state(LS_AGENT_DONE);
}

/* A tick that is pending when exec succeeds would kill the new program. Ignoring the signal
 * discards it; with a perf event, which the kernel removes only in the middle of exec, the signal
 * stays ignored, and the agent in the new image puts that right. Attached there is none: so the
 * recorder has to say that it has stopped. */
int ls_engine_before_exec(void)
{
        struct sigaction sa = { .sa_handler = SIG_IGN };
        int quiet;

        if (!ls_agent_live())
                return 0;
        ls_threads_stop();
        if (!atomic_load(&ls_agent.shm->nvms))
                return 0;
        quiet = ls_threads_wait_for_recorder(ls_agent.attached) == 0;
        ls_real.sigaction(LS_TICK_SIGNAL, &sa, NULL);
        sa.sa_handler = SIG_DFL;
        if (quiet && (ls_agent.attached || ls_agent.shm->timer != LS_TIMER_PERF))
                ls_real.sigaction(LS_TICK_SIGNAL, &sa, NULL);
        return quiet ? 0 : -1;
}

void ls_engine_exec_failed(void)
{
        if (ls_agent_live())
                ls_threads_go_on();
}

/* Another thread may be in a VM when exit is called from here: only a VM that rests is read. */
void ls_engine_process_end(void)
{
        struct ls_thread *t = ls_thread_self();

        if (!t || !atomic_load(&ls_agent.shm->nvms))
                return;
        ls_profiler_account();
        for (uint32_t i = 0; i < atomic_load(&ls_vms_used); i++)
                if (atomic_load(&ls_vms[i].global) && t->sampler->last_vm == &ls_vms[i])
                        last_words(t, &ls_vms[i], is_at_rest(&ls_vms[i]));
        ls_alloc_process_ends(t);
        ls_threads_stop();
        ls_runtime_set_state(LS_AGENT_DONE);
}

int ls_engine_give_up(void)
{
        if (!ls_agent_live())
                return 0;
        ls_engine_process_end();
        ls_threads_stop();
        return ls_threads_wait_for_recorder(1);
}

static int may_go_on;

void ls_engine_after_fork_child(void)
{
        ls_vms_after_fork();
        ls_tick_action_give_up();
        ls_jit_after_fork();
        ls_exact_after_fork();
        ls_alloc_after_fork(0);
        may_go_on = ls_threads_after_fork_child() && ls_vms_live();
}

int ls_engine_may_go_on(void)
{
        return may_go_on;
}

uint32_t ls_engine_jit_ids(void)
{
        return ls_jit_last_id();
}

/* The tables of VMs and of their traces are as in the parent. */
void ls_engine_go_on(void)
{
        struct ls_thread *t = ls_thread_self();
        uint32_t vms = 0, walk = 0;

        if (ls_runtime_is_probed())
                ls_runtime_describe();
        if (!t || !ls_vms_live())
                return;
        ls_thread_enter(t);
        for (uint32_t i = 0; i < atomic_load(&ls_vms_used); i++) {
                if (!atomic_load(&ls_vms[i].global))
                        continue;
                ls_vms_send(t, &ls_vms[i]);
                vms++;
                walk += ls_vms[i].engine == LS_ENGINE_WALK;
        }
        ls_thread_leave(t);
        atomic_store(&ls_agent.shm->nvms, vms);
        atomic_store(&ls_agent.shm->nvms_walk, walk);
        ls_alloc_after_fork(1);
        if (ls_tick_action_install())
                return;
        ls_runtime_set_state(LS_AGENT_SAMPLING);
        ls_threads_arm_all();
}
