/* LuaJIT's own profiler: a process has one. The hook engine needs it for its VM;
 * the program may want it too, and then has it. Called from the patched entries; see profiler.h. */

#include "libsample/vm/profiler.h"

#include <string.h>

#include "libsample/agent.h"
#include "libsample/handler/clock.h"
#include "libsample/handler/walk.h"
#include "libsample/recording/notice.h"
#include "libsample/recording/threads.h"
#include "libsample/vm/hook.h"

/* 1 while the engine itself is in luaJIT_profile_start or _stop. */
static __thread int in_own_call;
/* 1 while the program's call of luaJIT_profile_start is passed on. */
static __thread int in_start;
/* Starts of the program's profiler that had no effect. */
static atomic_uint starts_refused;
/* 1 = a VM has our profiler. */
static atomic_uint claimed;

static struct {
        struct ls_vm *vm;               /* ours is for this VM, also while the program's runs; NULL
                                         * = not wanted */
        lua_State *L;
        const char *global;
        uint32_t thread_id;             /* of the thread that started it */
        int app_active;                 /* the program's own runs in our place */
        const char *app_global;         /* in this VM */
        int app_closing;                /* lua_close of that VM is under way */
        uint64_t app_cpu_start;
        void (*caught)(int);            /* handler that LuaJIT gave to sigaction in our own start */
} own;

static uint32_t self_id(void)
{
        const struct ls_thread *t = ls_thread_self();

        return t ? t->thread_id : 0;
}

static void start(void)
{
        static const char *const modes[] = { [LS_SCOPE_LINE] = "li1000000",
                                             [LS_SCOPE_FUNCTION] = "fi1000000",
                                             [LS_SCOPE_NONE] = "i1000000" };

        own.caught = NULL;
        in_own_call = 1;
        ls_lua.luaJIT_profile_start(own.L, modes[ls_agent.shm->scope % 3], ls_hook, NULL);
        in_own_call = 0;
        ls_profiler.trigger = own.caught;
        ls_profiler.thread_id = own.thread_id;
        if (own.caught)
                atomic_store(&ls_profiler.vm, own.vm);
}

static void stop(void)
{
        atomic_store(&ls_profiler.vm, NULL);
        ls_profiler.trigger = NULL;
        in_own_call = 1;
        ls_lua.luaJIT_profile_stop(own.L);
        in_own_call = 0;
}

const char *ls_profiler_start(struct ls_vm *vm)
{
        if (!ls_lua.luaJIT_profile_start || !ls_lua.luaJIT_profile_stop)
                return "this LuaJIT is built without the profiler (luaJIT_profile_start)";
        if (atomic_exchange(&claimed, 1))
                return "the program has more than one Lua VM at a time, and LuaJIT's profiler "
                       "serves one";
        own.vm = vm;
        own.L = vm->main;
        own.global = vm->global;
        own.thread_id = self_id();
        start();
        if (ls_profiler.trigger)
                return NULL;
        own.vm = NULL;
        atomic_store(&claimed, 0);
        return "its profiler does not use SIGPROF, or runs for another VM";
}

int ls_profiler_is_taken(void)
{
        return own.app_active;
}

void ls_profiler_account(void)
{
        uint64_t cpu = ls_thread_cpu_ns();

        if (own.app_active && cpu > own.app_cpu_start)
                atomic_fetch_add(&ls_agent.shm->app_profiler_ns, cpu - own.app_cpu_start);
        own.app_cpu_start = cpu;
}

void ls_profiler_stop(const struct ls_vm *vm)
{
        if (!vm || own.vm != vm)
                return;
        if (own.app_active)
                ls_profiler_account();
        else
                stop();
        own.vm = NULL;
        own.app_active = 0;
        atomic_store(&ls_profiler.taken, 0);
        atomic_store(&claimed, 0);
}

void ls_profiler_last_words(void)
{
        if (atomic_exchange(&starts_refused, 0))
                ls_agent_notice("a Lua VM of another thread asked for LuaJIT's profiler, which "
                                "this recording had: it got "
                                "no samples");
}

/* The program's profiler has stopped. */
static void take_turn_again(void)
{
        if (ls_agent_live())
                ls_profiler_account();
        own.app_active = 0;
        atomic_store(&ls_profiler.taken, 0);
        if (ls_agent_live() && self_id() == own.thread_id)
                start();
}

void ls_profiler_vm_closing(lua_State *L, const struct ls_vm *vm)
{
        if (vm && vm == own.vm)
                ls_profiler_stop(vm);
        else
                own.app_closing = own.app_active && ls_vm_identity(L) == own.app_global;
}

/* lua_close stops a profiler that the program left running. */
void ls_profiler_vm_closed(lua_State *L)
{
        (void)L;
        if (!own.app_closing)
                return;
        own.app_closing = 0;
        take_turn_again();
}

/* The program's own profiler takes the place of ours until it stops. LuaJIT has one profiler a
 * process, so ours stops first, also when another VM asks. Not for one in another thread: to stop
 * ours means to flush the compiled code that its VM may be running; then LuaJIT ignores the
 * start. */
void ls_engine_app_profile_start(lua_State *L, const char *mode,
                                 void (*cb)(void *, lua_State *, int, int), void *data)
{
        struct ls_thread *t = ls_thread_self();

        if (own.vm && !own.app_active && self_id() != own.thread_id &&
            ls_vm_identity(L) != own.global) {
                atomic_fetch_add(&starts_refused, 1);
        } else if (own.vm && !own.app_active) {
                if (t)
                        ls_thread_flush(t);
                stop();
                own.app_active = 1;
                atomic_store(&ls_profiler.taken, 1);
                own.app_global = ls_vm_identity(L);
                own.app_cpu_start = ls_thread_cpu_ns();
        }
        in_start = 1;
        ls_lua.luaJIT_profile_start(L, mode, cb, data);
        in_start = 0;
}

/* Without the program's profiler running a stop does nothing, as in LuaJIT. LuaJIT's start itself
 * stops what runs, through the patched entry. */
void ls_engine_app_profile_stop(lua_State *L)
{
        if (!in_own_call && !in_start && own.vm && !own.app_active)
                return;
        ls_lua.luaJIT_profile_stop(L);
        if (in_own_call || in_start || !own.app_active || ls_vm_identity(L) != own.app_global)
                return;
        take_turn_again();
}

/* A forked child has our profiler in LuaJIT's state, but not its timer and its disposition of
 * SIGPROF: the first stop must leave these alone. */
void ls_engine_child_profile_stop(lua_State *L)
{
        static int stopped;

        in_own_call = !stopped && own.vm && !own.app_active && !ls_agent_live() &&
                      ls_vm_identity(L) == own.global;
        stopped |= in_own_call;
        ls_lua.luaJIT_profile_stop(L);
        in_own_call = 0;
}

int ls_engine_swallow_sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
        if (!in_own_call || sig != SIGPROF)
                return 0;
        if (act && act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN)
                own.caught = act->sa_handler;
        if (old)
                memset(old, 0, sizeof *old);
        return 1;
}

int ls_engine_swallow_setitimer(int which, const struct itimerval *value, struct itimerval *old)
{
        (void)value;
        if (!in_own_call || which != ITIMER_PROF)
                return 0;
        if (old)
                memset(old, 0, sizeof *old);
        return 1;
}
