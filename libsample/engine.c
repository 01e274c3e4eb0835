/* Life of the hook engine: begins with the first VM, steps aside for the program's own profiler, ends with the VM,
 * with exec or with the process. Called from the patched entries and from preload.c; see agent.h. */
#include "libsample/engine.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libsample/coroutines.h"
#include "libsample/names.h"
#include "libsample/sources.h"
#include "libsample/vm_probe.h"
#include "libsample/zones.h"

/* At the end of a VM or of the process the names that are still missing may take so long. */
#define LAST_NAMES_NS  UINT64_C(5000000)
/* How long to wait for the recorder's helper to be done with a signal; it needs a microsecond unless it is stopped. */
#define SENDING_SPINS  10000

struct ls_engine ls_engine;

/* 1 while the engine itself is in luaJIT_profile_start or _stop. */
static __thread int in_own_call;
/* 1 while the program's call of luaJIT_profile_start is passed on. */
static __thread int in_start;
/* Starts of the program's profiler that had no effect. */
static atomic_uint starts_refused;

void ls_agent_notice(const char *fmt, ...)
{
        struct ls_ring *ring = ls_ring_of_process();
        struct ls_rec_notice rec = { 0 };
        char text[512], *body;
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        if (!ring || n <= 0)
                return;
        rec.len = (uint32_t)n < sizeof text ? (uint32_t)n : (uint32_t)sizeof text - 1;
        body = ls_ring_reserve(ring, LS_REC_NOTICE, sizeof rec + rec.len, LS_RESERVE_DEFINITION);
        if (!body)
                return;
        memcpy(body, &rec, sizeof rec);
        memcpy(body + sizeof rec, text, rec.len);
        ls_ring_commit(ring, body);
}

static void set_state(uint32_t state)
{
        atomic_store(&ls_agent.shm->agent_state, state);
}

static void wake_recorder(void)
{
        atomic_fetch_add(&ls_agent.shm->request, 1);
        syscall(SYS_futex, &ls_agent.shm->request, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void start_timer(void)
{
        uint64_t ns = ls_tick.interval_ns;
        struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
        struct itimerspec spec = { t, t };

        if (!ls_tick.has_timer) {
                struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = LS_TICK_SIGNAL };

                event._sigev_un._tid = ls_engine.tid;
                if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &ls_tick.timer)) {
                        ls_agent_notice("no CPU-time timer can be had (%s): use --timer helper", strerror(errno));
                        return;
                }
                ls_tick.has_timer = 1;
        }
        timer_settime(ls_tick.timer, 0, &spec, NULL);
}

void ls_engine_arm(void)
{
        struct ls_shm *shm = ls_agent.shm;

        if (shm->bare_tick == 2)
                return;
        atomic_store(&ls_tick.last_cpu_ns, ls_thread_cpu_ns());
        ls_tick.remainder_ns = 0;
        ls_tick.ready = 1;
        atomic_store(&shm->tick_tid, (uint32_t)ls_engine.tid);
        atomic_store(&shm->armed, 1);
        if (shm->timer == LS_TIMER_CPUTIME)
                start_timer();
        wake_recorder();
}

/* CPU time since the last tick: it had no tick of its own, so it is counted as one that met no safe point. */
static void count_rest(void)
{
        uint64_t cpu = ls_thread_cpu_ns(), last = atomic_load(&ls_tick.last_cpu_ns), ticks;

        if (!ls_tick.ready || ls_tick.paused || cpu <= last || ls_agent.shm->bare_tick)
                return;
        atomic_store(&ls_tick.last_cpu_ns, cpu);
        ticks = (ls_tick.remainder_ns + cpu - last) / ls_tick.interval_ns;
        atomic_fetch_add(&ls_tick.ring->ticks, ticks);
        atomic_fetch_add(&ls_agent.shm->lost[LS_LOSS_NO_SAFE_POINT], ticks);
        atomic_store(&ls_tick.ring->last_cpu_ns, cpu);
}

/* When this returns the recorder sends no further signal; one may be pending. */
void ls_engine_disarm(void)
{
        struct ls_shm *shm = ls_agent.shm;

        if (ls_tick.has_timer) {
                struct itimerspec never = { 0 };

                timer_settime(ls_tick.timer, 0, &never, NULL);
        }
        atomic_store(&shm->armed, 0);
        wake_recorder();
        for (int i = 0; i < SENDING_SPINS && atomic_load(&shm->sending); i++)
                if (i > 100)
                        syscall(SYS_sched_yield);
        count_rest();
        ls_tick.ready = 0;
}

static void profile_start(void)
{
        static const char *const modes[] = { [LS_SCOPE_LINE] = "li1000000", [LS_SCOPE_FUNCTION] = "fi1000000",
                                             [LS_SCOPE_NONE] = "i1000000" };

        ls_engine.caught = NULL;
        in_own_call = 1;
        ls_lua.luaJIT_profile_start(ls_engine.L, modes[ls_agent.shm->scope % 3], ls_hook, NULL);
        in_own_call = 0;
        ls_tick.trigger = ls_engine.caught;
}

static void profile_stop(void)
{
        ls_tick.trigger = NULL;
        in_own_call = 1;
        ls_lua.luaJIT_profile_stop(ls_engine.L);
        in_own_call = 0;
}

static void send_thread_and_vm(struct ls_ring *ring)
{
        struct ls_rec_thread thread = { ls_engine.thread_id, (uint32_t)ls_engine.tid, 0, 0 };
        struct ls_rec_vm vm = { ls_engine.vm_id, LS_VMF_PROBED | LS_VMF_JIT, 0, 0 };
        char name[16] = "", *body;

        prctl(PR_GET_NAME, name);
        thread.name_len = (uint32_t)strnlen(name, sizeof name);
        body = ls_ring_reserve(ring, LS_REC_THREAD, sizeof thread + thread.name_len, LS_RESERVE_DEFINITION);
        if (body) {
                memcpy(body, &thread, sizeof thread);
                memcpy(body + sizeof thread, name, thread.name_len);
                ls_ring_commit(ring, body);
        }
        vm.name_len = (uint32_t)strlen(ls_vm_facts.version);
        body = ls_ring_reserve(ring, LS_REC_VM, sizeof vm + vm.name_len, LS_RESERVE_DEFINITION);
        if (body) {
                memcpy(body, &vm, sizeof vm);
                memcpy(body + sizeof vm, ls_vm_facts.version, vm.name_len);
                ls_ring_commit(ring, body);
        }
}

static int install_handler(void)
{
        struct sigaction sa = { .sa_sigaction = ls_tick_handler, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };

        sigemptyset(&sa.sa_mask);
        return ls_real.sigaction(LS_TICK_SIGNAL, &sa, NULL);
}

/* Says why a VM is not sampled. */
static void refuse(const char *why)
{
        ls_agent_notice("the Lua VM in %s is not sampled: %s", ls_lua.path ? ls_lua.path : "the program", why);
        set_state(LS_AGENT_REFUSED);
}

static int usable(void)
{
        static int probed;

        if (!ls_lua.luaJIT_profile_start || !ls_lua.luaJIT_profile_stop) {
                refuse("this LuaJIT is built without the profiler (luaJIT_profile_start)");
                return 0;
        }
        if (!probed) {
                probed = 1;
                ls_vm_probe();
                snprintf(ls_agent.shm->runtime, sizeof ls_agent.shm->runtime, "%s", ls_vm_facts.version);
                snprintf(ls_agent.shm->runtime_path, sizeof ls_agent.shm->runtime_path, "%s",
                         ls_lua.path ? ls_lua.path : "");
        }
        if (!ls_vm_facts.ok)
                refuse(ls_vm_facts.why);
        return ls_vm_facts.ok;
}

static void describe_to_handler(struct ls_ring *ring)
{
        ls_tick.ring = ring;
        ls_tick.interval_ns = ls_agent.shm->interval_ns;
        ls_tick.global = ls_engine.global;
        ls_tick.vmstate_offset = ls_vm_facts.vmstate_offset;
        ls_tick.cur_L_offset = ls_vm_facts.cur_L_offset;
        ls_tick.hookmask_offset = ls_vm_facts.hookmask_offset;
        ls_tick.cframe_offset = LS_L_CFRAME;
        ls_tick.paused = 0;
        atomic_store(&ring->tid, (uint32_t)ls_engine.tid);
        ls_tick_thread = 1;
}

void ls_engine_vm_created(lua_State *L)
{
        struct ls_ring *ring = ls_ring_of_process();
        uint64_t start;

        if (ls_vm_probing || !ring || !atomic_load(&ls_agent.shm->recording))
                return;
        if (ls_engine.L) {
                static int said;

                if (!said++)
                        ls_agent_notice("the program has more than one Lua VM at a time: only the first is sampled");
                return;
        }
        start = ls_now_ns();
        ls_engine.tid = (int)syscall(SYS_gettid);
        if (!usable())
                return;
        ls_engine.L = L;
        ls_engine.global = LS_READ(const char *, L, LS_L_GLREF);
        ls_engine.vm_id++;
        ls_engine.thread_id = 1;
        profile_start();
        if (!ls_tick.trigger || install_handler()) {
                refuse(ls_tick.trigger ? "the tick's signal handler cannot be installed"
                                       : "its profiler does not use SIGPROF, or runs for another VM");
                ls_engine.L = NULL;
                return;
        }
        send_thread_and_vm(ring);
        ls_module_install(L);
        describe_to_handler(ring);
        ls_engine.cpu_start = ls_thread_cpu_ns();
        set_state(LS_AGENT_SAMPLING);
        atomic_fetch_add(&ls_agent.shm->own_start_ns, ls_now_ns() - start);
        ls_engine_arm();
}

/* 1 when the VM runs nothing or a C function. A host may call exit in a handler of signals, at any instruction. */
static int vm_is_at_rest(void)
{
        const char *L = LS_READ(const char *, ls_engine.global, ls_vm_facts.cur_L_offset);

        return !L || !LS_READ(const void *, L, LS_L_CFRAME) ||
               LS_READ(int32_t, ls_engine.global, ls_vm_facts.vmstate_offset) == ~1;
}

/* Last words of a VM: what is still unnamed, what of texts is unsent, what ticks are pending. */
static void last_words(struct ls_ring *ring)
{
        uint64_t start = ls_now_ns();

        ls_hook_flush();
        if (atomic_load(&starts_refused))
                ls_agent_notice("a Lua VM of another thread asked for LuaJIT's profiler, which this recording had: it got "
                                "no samples");
        if (ls_names_wanted() && vm_is_at_rest())
                ls_names_search(ring, ls_engine.L, LAST_NAMES_NS);
        ls_sources_send_text(ring);
        atomic_fetch_add(&ls_agent.shm->own_hook_ns, ls_now_ns() - start);
}

static int is_ours(const lua_State *L)
{
        return ls_engine.L && LS_READ(const char *, L, LS_L_GLREF) == ls_engine.global;
}

static void account_armed_time(void)
{
        uint64_t cpu = ls_thread_cpu_ns();

        if (cpu > ls_engine.cpu_start)
                atomic_fetch_add(&ls_agent.shm->armed_cpu_ns, cpu - ls_engine.cpu_start);
        ls_engine.cpu_start = cpu;
}

static void account_app_profiler(void)
{
        uint64_t cpu = ls_thread_cpu_ns(), passed = cpu - ls_engine.app_cpu_start;
        struct ls_ring *ring = ls_ring_of_process();

        if (!ring)
                return;
        atomic_fetch_add(&ls_agent.shm->app_profiler_ns, passed);
        atomic_fetch_add(&ls_agent.shm->lost[LS_LOSS_APP_PROFILER], passed / ls_agent.shm->interval_ns);
        atomic_fetch_add(&ring->ticks, passed / ls_agent.shm->interval_ns);
}

void ls_engine_vm_closing(lua_State *L)
{
        struct ls_ring *ring = ls_ring_of_process();

        if (ls_vm_probing)
                return;
        if (!is_ours(L)) {
                ls_engine.app_closing = ls_engine.app_active && LS_READ(const char *, L, LS_L_GLREF) == ls_engine.app_global;
                return;
        }
        if (ring && ls_tick_thread) {
                if (!ls_engine.app_active) {
                        ls_engine_disarm();
                        last_words(ring);
                } else {
                        account_app_profiler();
                }
                account_armed_time();
                set_state(LS_AGENT_DONE);
        }
        ls_tick.ready = 0;
        if (!ls_engine.app_active)
                profile_stop();
        ls_tick.global = NULL;
        ls_engine.L = NULL;
        ls_engine.app_active = ls_engine.in_region = 0;
        ls_names_reset();
        ls_zones_reset();
        ls_coroutines_reset();
        ls_functions_reset();
        ls_hook_reset();
}

/* The program's profiler has stopped. */
static void take_turn_again(void)
{
        ls_engine.app_active = 0;
        if (!ls_agent_live() || !ls_tick_thread)
                return;
        account_app_profiler();
        profile_start();
        ls_engine_arm();
}

/* lua_close stops a profiler that the program left running. */
void ls_engine_vm_closed(lua_State *L)
{
        (void)L;
        if (!ls_engine.app_closing)
                return;
        ls_engine.app_closing = 0;
        take_turn_again();
}

/* The program's own profiler takes the place of ours until it stops. LuaJIT has one profiler a process, so ours
 * stops first, also when another VM asks. Not for one in another thread: to stop ours means to flush the compiled code
 * that its VM may be running; then LuaJIT ignores the start. */
void ls_engine_app_profile_start(lua_State *L, const char *mode, void (*cb)(void *, lua_State *, int, int), void *data)
{
        if (ls_engine.L && !ls_vm_probing && !ls_engine.app_active && !ls_tick_thread && !is_ours(L)) {
                atomic_fetch_add(&starts_refused, 1);
        } else if (ls_engine.L && !ls_vm_probing && !ls_engine.app_active) {
                if (ls_agent_live() && ls_tick_thread) {
                        ls_engine_disarm();
                        ls_hook_flush();
                }
                ls_tick.ready = 0;
                profile_stop();
                ls_engine.app_active = 1;
                ls_engine.app_global = LS_READ(const char *, L, LS_L_GLREF);
                ls_engine.app_cpu_start = ls_thread_cpu_ns();
        }
        in_start = 1;
        ls_lua.luaJIT_profile_start(L, mode, cb, data);
        in_start = 0;
}

/* Without the program's profiler running a stop does nothing, as in LuaJIT. LuaJIT's start itself stops what runs,
 * through the patched entry. */
void ls_engine_app_profile_stop(lua_State *L)
{
        if (!in_own_call && !in_start && ls_engine.L && !ls_engine.app_active)
                return;
        ls_lua.luaJIT_profile_stop(L);
        if (in_own_call || in_start || !ls_engine.app_active || LS_READ(const char *, L, LS_L_GLREF) != ls_engine.app_global)
                return;
        take_turn_again();
}

/* A forked child has our profiler in LuaJIT's state, but not its timer and its disposition of SIGPROF: the first stop
 * must leave these alone. */
void ls_engine_child_profile_stop(lua_State *L)
{
        static int stopped;

        in_own_call = !stopped && ls_engine.L && !ls_engine.app_active && !ls_agent_live() &&
                      LS_READ(const char *, L, LS_L_GLREF) == ls_engine.global;
        stopped |= in_own_call;
        ls_lua.luaJIT_profile_stop(L);
        in_own_call = 0;
}

int ls_engine_swallow_sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
        if (!in_own_call || sig != SIGPROF)
                return 0;
        if (act && act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN)
                ls_engine.caught = act->sa_handler;
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

/* A tick that is pending when exec succeeds would kill the new program. Ignoring the signal discards it; with a perf
 * event, which the kernel removes only in the middle of exec, the signal stays ignored, and the agent in the new
 * image puts that right. */
void ls_engine_before_exec(void)
{
        struct sigaction sa = { .sa_handler = SIG_IGN };

        if (!ls_engine.L || !ls_tick_thread || !ls_agent_live())
                return;
        ls_engine_disarm();
        ls_hook_flush();
        account_armed_time();
        ls_real.sigaction(LS_TICK_SIGNAL, &sa, NULL);
        sa.sa_handler = SIG_DFL;
        if (ls_agent.shm->timer != LS_TIMER_PERF)
                ls_real.sigaction(LS_TICK_SIGNAL, &sa, NULL);
}

void ls_engine_exec_failed(void)
{
        if (!ls_engine.L || !ls_tick_thread || !ls_agent_live())
                return;
        install_handler();
        if (!ls_engine.app_active)
                ls_engine_arm();
}

/* Another thread may be in the VM when exit is called from here: then nothing of the VM is read. */
void ls_engine_process_end(void)
{
        struct ls_ring *ring = ls_ring_of_process();

        if (!ring || !ls_engine.L || !ls_tick_thread)
                return;
        if (ls_engine.app_active) {
                account_app_profiler();
        } else {
                ls_engine_disarm();
                last_words(ring);
        }
        account_armed_time();
        set_state(LS_AGENT_DONE);
        ls_tick.ready = 0;
}

void ls_engine_after_fork_child(void)
{
        ls_tick.ready = 0;
        ls_tick_thread = 0;
        ls_tick.has_timer = 0;
}
