/* The VMs of the process: made known to the tick handler when they are created, taken from it when they are closed; and
 * what exec, fork and the process's end mean for the recording. Called from the patched entries and from interpose/preload.c, by any
 * thread; see agent.h. */
#include "libsample/vm/engine.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libsample/exact/exact.h"
#include "libsample/handler/names.h"
#include "libsample/handler/sample.h"
#include "libsample/jit/jit.h"
#include "libsample/lock.h"
#include "libsample/vm/view.h"
#include "libsample/vm/probe.h"
#include "libsample/api/labels.h"
#include "libsample/api/ready.h"
#include "libsample/api/zones.h"

/* At the end of a VM or of the process the names that are still missing may take so long. */
#define LAST_NAMES_NS  UINT64_C(5000000)

void ls_agent_notice(const char *fmt, ...)
{
        struct ls_thread *t = ls_thread_self();
        struct ls_rec_notice rec = { 0 };
        char text[512], *body;
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        if (!t || n <= 0)
                return;
        rec.len = (uint32_t)n < sizeof text ? (uint32_t)n : (uint32_t)sizeof text - 1;
        body = ls_ring_reserve(t->ring, LS_REC_NOTICE, sizeof rec + rec.len, LS_RESERVE_DEFINITION);
        if (!body)
                return;
        memcpy(body, &rec, sizeof rec);
        memcpy(body + sizeof rec, text, rec.len);
        ls_ring_commit(t->ring, body);
}

static void set_state(uint32_t state)
{
        atomic_store(&ls_agent.shm->agent_state, state);
}

static void send_vm(struct ls_thread *t, const struct ls_vm *v)
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

/* For the process that reads blocked threads from outside. */
static void publish_view(void)
{
        static struct ls_view view;
        size_t size;

        view = (struct ls_view){
                .size = sizeof view, .vm_size = sizeof(struct ls_vm), .facts_size = sizeof ls_vm_facts,
                .thread_size = sizeof(struct ls_thread), .facts = &ls_vm_facts, .vms = ls_vms, .vms_used = &ls_vms_used,
                .vms_closed = &ls_vms_closed, .jit_functions = ls_jit_functions,
                .builtins = (const char (*)[40])ls_builtin_table(&size), .interposed = ls_interposed,
        };
        atomic_store(&ls_agent.shm->view, (uintptr_t)&view);
}

static atomic_int no_signal_stack, installed;

int ls_engine_install_handler(void)
{
        struct sigaction sa = { .sa_sigaction = ls_tick_handler, .sa_flags = SA_SIGINFO | SA_RESTART };

        if (!atomic_load(&no_signal_stack))
                sa.sa_flags |= SA_ONSTACK;
        atomic_store(&installed, 1);

        sigemptyset(&sa.sa_mask);
        return ls_real.sigaction(LS_TICK_SIGNAL, &sa, NULL);
}

int ls_engine_has_handler(void)
{
        return atomic_load(&installed);
}

void ls_engine_give_up_handler(void)
{
        atomic_store(&installed, 0);
}

void ls_engine_leave_signal_stacks(void)
{
        if (!atomic_exchange(&no_signal_stack, 1) && atomic_load(&installed) && ls_agent_live())
                ls_engine_install_handler();
}

/* Says once why VMs are not sampled. */
static void refuse(const char *why)
{
        static const char *said;

        if (said != why)
                ls_agent_notice("the Lua VM in %s is not sampled: %s", ls_lua.path ? ls_lua.path : "the program", why);
        said = why;
        if (!atomic_load(&ls_agent.shm->nvms))
                set_state(LS_AGENT_REFUSED);
}

/* 1 when samples can be had through the API alone. */
static int have_profiler_api(void)
{
        return ls_lua.luaJIT_profile_start && ls_lua.luaJIT_profile_stop && ls_lua.lua_getstack && ls_lua.lua_getinfo &&
               ls_lua.lua_settop && ls_lua.lua_tocfunction;
}

static int probed;

static void describe_runtime(void)
{
        snprintf(ls_agent.shm->runtime, sizeof ls_agent.shm->runtime, "%s", ls_vm_facts.version);
        snprintf(ls_agent.shm->runtime_path, sizeof ls_agent.shm->runtime_path, "%s", ls_lua.path ? ls_lua.path : "");
        if (ls_vm_facts.ok)
                publish_view();
}

static void probe_once(void)
{
        if (probed)
                return;
        probed = 1;
        ls_vm_probe();
        describe_runtime();
}

static int usable(void)
{
        probe_once();
        if (!ls_vm_facts.ok && !have_profiler_api())
                refuse(ls_vm_facts.why);
        return ls_vm_facts.ok || have_profiler_api();
}

#define NAP_NS 50000
#define NAPS 40000                      /* 2 s at least: a thread that is stopped in its handler is not waited for */

/* Until no handler that looked at the VM before still reads it. Handlers are short, but their thread may have lost its CPU: it may
 * have to wait until this one sleeps. */
static void wait_for_readers(const struct ls_vm *vm)
{
        for (unsigned i = 0; i < LS_THREADS_MOST; i++)
                for (int spins = 0; spins < NAPS && atomic_load(&ls_vm_readers[i]) == vm; spins++)
                        if (spins > 200)
                                syscall(SYS_nanosleep, &(struct timespec){ 0, NAP_NS }, NULL);
                        else if (spins > 100)
                                syscall(SYS_sched_yield);
}

/* No handler finds the VM from here on, and none that has found it still reads it when this returns. */
static void withdraw(struct ls_vm *vm)
{
        if (!atomic_exchange(&vm->global, NULL))
                return;
        if (!ls_agent_live()) {
                ls_jit_close(vm);
                return;
        }
        atomic_fetch_add(&ls_vms_closed, 1);
        wait_for_readers(vm);
        ls_jit_close(vm);
        ls_zones_close(vm);
        ls_labels_close(vm);
        ls_ready_close(vm);
        atomic_store(&vm->taken, 0);
}

/* A VM that lua_close has freed, and whose address the new one was given before its thread could say so. */
static void withdraw_predecessor(const char *global)
{
        for (uint32_t i = 0; i < atomic_load(&ls_vms_used); i++)
                if (atomic_load(&ls_vms[i].global) == global)
                        withdraw(&ls_vms[i]);
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

/* The tables of VMs change under this lock, and the probe runs. Never the program's code, nor its allocator: a VM's own
 * thread may hold any lock of the program when it makes or closes a VM. */
static pthread_mutex_t vms_lock = PTHREAD_MUTEX_INITIALIZER;

/* A slot for a new VM with this global_State, NULL = it cannot be sampled. */
static struct ls_vm *reserve(lua_State *L, const char *global)
{
        static uint32_t next_vm_id;
        struct ls_vm *vm;
        sigset_t mask;

        ls_lock(&vms_lock, &mask);
        withdraw_predecessor(global);
        vm = usable() ? take_slot() : NULL;
        if (!vm && (ls_vm_facts.ok || have_profiler_api()))
                refuse("the process has more VMs at a time than can be told apart");
        if (vm) {
                vm->main = L;
                vm->vm_id = ++next_vm_id;
                vm->jit = NULL;
                vm->exact = NULL;
                vm->zones = NULL;
                vm->labels = NULL;
                vm->lent = 0;
                vm->ready = NULL;
                vm->paused = vm->in_region = 0;
                atomic_store(&vm->runner, 0);
                atomic_store(&vm->closing, NULL);
        }
        ls_unlock(&vms_lock, &mask);
        return vm;
}

static void publish(struct ls_vm *vm, const char *global)
{
        uint32_t slots = (uint32_t)(vm - ls_vms) + 1, used = atomic_load(&ls_vms_used);

        if (ls_vm_facts.ok && atomic_load(&ls_heap_is_watched) &&
            LS_READ(const void *, global, LS_G_ALLOCF) != ls_vm_facts.heap_alloc)
                atomic_store(&ls_heap_is_watched, 0);
        atomic_store(&vm->global, global);
        while (used < slots && !atomic_compare_exchange_weak(&ls_vms_used, &used, slots))
                ;
}

/* Which engine reads this VM. NULL in *ret_why: the one that was asked for, or with auto the best. */
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
        static const char *said_walk, *said_check, *said_map;
        const char *why;

        vm->engine = engine_for_new_vm(&why);
        if (why)
                say_once(&said_walk, "the stacks are read at LuaJIT's safe points (engine hook): %s", why);
        vm->jit_leaf = ls_agent.shm->jit_leaf;
        if (vm->engine == LS_ENGINE_HOOK)
                return ls_profiler_start(vm);
        if (vm->jit_leaf == LS_JIT_LEAF_CHECK && (why = ls_profiler_start(vm)))
                say_once(&said_check, "--jit-leaf check has no effect for a VM: %s", why);
        ls_jit_open(vm, L);
        if (vm->jit_leaf == LS_JIT_LEAF_MAP && (why = ls_jit_why_not()))
                say_once(&said_map, "compiled code is shown by the function that its trace starts in: %s", why);
        atomic_fetch_add(&ls_agent.shm->nvms_walk, 1);
        return NULL;
}

void ls_engine_vm_created(lua_State *L)
{
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
        vm = reserve(L, ls_vm_identity(L));
        if (!vm)
                goto out;
        atomic_store(&vm->runner, t->thread_id);
        why = ls_engine_install_handler() ? "the tick's signal handler cannot be installed" : begin(vm, L);
        if (why) {
                refuse(why);
                atomic_store(&vm->taken, 0);
                goto out;
        }
        send_vm(t, vm);
        publish(vm, ls_vm_identity(L));         /* now the handler finds it: all else is ready */
        if (ls_vm_facts.ok)
                ls_module_install(L);
        atomic_fetch_add(&ls_agent.shm->nvms, 1);
        set_state(LS_AGENT_SAMPLING);
        ls_threads_arm_all();
out:
        ls_thread_leave(t);
        atomic_fetch_add(&ls_agent.shm->own_start_ns, ls_thread_cpu_ns() - start);
}

const char *ls_engine_attach(void)
{
        sigset_t mask;

        ls_lock(&vms_lock, &mask);
        probed = 0;                     /* another LuaJIT may have taken the place of the one before */
        memset(&ls_vm_facts, 0, sizeof ls_vm_facts);
        for (uint32_t i = 0; i < atomic_load(&ls_vms_used); i++) {      /* those of the process that forked this one */
                atomic_store(&ls_vms[i].global, NULL);
                atomic_store(&ls_vms[i].taken, 0);
        }
        probe_once();
        ls_unlock(&vms_lock, &mask);
        if (!ls_vm_facts.ok)
                return ls_vm_facts.why;
        if (!ls_vm_facts.jit_base_offset)
                return ls_vm_facts.why_no_walk;
        return ls_engine_install_handler() ? "the tick's signal handler cannot be installed" : NULL;
}

const char *ls_engine_vm_adopt(lua_State *L)
{
        struct ls_thread *t = ls_thread_self();
        const char *global;
        struct ls_vm *vm;

        /* L is not read: a thread of the program may just have closed it. */
        global = (const char *)L + ls_vm_facts.main_to_global;
        if (ls_vm_probing || !ls_vm_facts.ok || !atomic_load(&installed) || ls_vm_at(global))
                return NULL;
        vm = reserve(L, global);
        if (!vm)
                return "too many VMs";
        vm->engine = LS_ENGINE_WALK;
        vm->jit_leaf = ls_agent.shm->jit_leaf;
        ls_jit_open_running(vm, global);
        if (t) {
                ls_thread_enter(t);
                send_vm(t, vm);
                ls_thread_leave(t);
        }
        publish(vm, global);
        atomic_fetch_add(&ls_agent.shm->nvms, 1);
        atomic_fetch_add(&ls_agent.shm->nvms_walk, 1);
        set_state(LS_AGENT_SAMPLING);
        ls_threads_arm_all();
        return NULL;
}

void ls_engine_detach(void)
{
        sigset_t mask;

        ls_lock(&vms_lock, &mask);
        for (uint32_t i = 0; i < atomic_load(&ls_vms_used); i++)
                withdraw(&ls_vms[i]);
        atomic_store(&ls_vms_used, 0);
        ls_unlock(&vms_lock, &mask);
        ls_threads_restart();
}

/* 1 when the VM runs nothing or a C function. A host may call exit in a handler of signals, at any instruction. */
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

static uint32_t live_vms(void)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < atomic_load(&ls_vms_used); i++)
                n += atomic_load(&ls_vms[i].global) != NULL;
        return n;
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
        wait_for_readers(vm);
        if (vm->lent) {                 /* lua_close frees them */
                vm->zones = NULL;
                vm->labels = NULL;
        }
        if (vm->engine == LS_ENGINE_HOOK || !t)
                withdraw(vm);           /* else its finalizers, which run in lua_close, are time of this VM */
        return vm;
}

void ls_engine_vm_closed(lua_State *L, struct ls_vm *vm, uint32_t vm_id)
{
        sigset_t mask;

        if (ls_vm_probing)
                return;
        ls_lock(&vms_lock, &mask);
        if (vm && vm->vm_id == vm_id)
                withdraw(vm);
        ls_unlock(&vms_lock, &mask);
        ls_profiler_vm_closed(L);
        if (!live_vms() && atomic_load(&ls_agent.shm->nvms))
                set_state(LS_AGENT_DONE);
}

/* A tick that is pending when exec succeeds would kill the new program. Ignoring the signal discards it; with a perf
 * event, which the kernel removes only in the middle of exec, the signal stays ignored, and the agent in the new
 * image puts that right. Attached there is none: so the recorder has to say that it has stopped. */
int ls_engine_before_exec(void)
{
        struct sigaction sa = { .sa_handler = SIG_IGN };
        int quiet;

        if (!ls_agent_live())
                return 0;
        ls_threads_stop();
        if (!atomic_load(&ls_agent.shm->nvms))
                return 0;
        quiet = ls_threads_wait_for_recorder() == 0;
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
        ls_threads_stop();
        set_state(LS_AGENT_DONE);
}

static int may_go_on;

void ls_engine_after_fork_child(void)
{
        static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

        memcpy(&vms_lock, &fresh, sizeof fresh);        /* another thread may have had it */
        ls_engine_give_up_handler();
        ls_jit_after_fork();
        ls_exact_after_fork();
        may_go_on = ls_threads_after_fork_child() && live_vms();
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

        if (probed)
                describe_runtime();
        if (!t || !live_vms())
                return;
        ls_thread_enter(t);
        for (uint32_t i = 0; i < atomic_load(&ls_vms_used); i++) {
                if (!atomic_load(&ls_vms[i].global))
                        continue;
                send_vm(t, &ls_vms[i]);
                vms++;
                walk += ls_vms[i].engine == LS_ENGINE_WALK;
        }
        ls_thread_leave(t);
        atomic_store(&ls_agent.shm->nvms, vms);
        atomic_store(&ls_agent.shm->nvms_walk, walk);
        if (ls_engine_install_handler())
                return;
        set_state(LS_AGENT_SAMPLING);
        ls_threads_arm_all();
}
