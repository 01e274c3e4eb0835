/* The tick: counts the CPU time that passed, by VM state, and asks LuaJIT for its profile hook. Runs in the handler
 * of LS_TICK_SIGNAL on the sampled thread. */
#include "libsample/handler/tick.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libsample/agent.h"

struct ls_tick ls_tick;
__thread int ls_tick_thread __attribute__((tls_model("initial-exec")));

/* No heartbeat for so long: the recorder is gone or stopped. */
#define RECORDER_SILENT_NS UINT64_C(2000000000)

LS_HANDLER static uint64_t clock_ns(clockid_t id)
{
        struct timespec t;

        clock_gettime(id, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

LS_HANDLER uint64_t ls_now_ns(void)
{
        return clock_ns(CLOCK_MONOTONIC);
}

LS_HANDLER uint64_t ls_thread_cpu_ns(void)
{
        return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Longer than the agent's work takes: the thread was off the CPU meanwhile. */
#define LONG_NS 20000

LS_HANDLER uint64_t ls_own_ns(uint64_t since_ns, uint64_t cpu_ns)
{
        uint64_t passed = ls_now_ns() - since_ns, cpu;

        if (passed < LONG_NS)
                return passed;
        cpu = ls_thread_cpu_ns() - cpu_ns;
        return cpu < passed ? cpu : passed;
}

/* LuaJIT's vmstate: a trace number, or the complement of INTERP, C, GC, EXIT, RECORD, OPT, ASM. */
LS_HANDLER static enum ls_vmstate vmstate_of(int32_t vmstate)
{
        static const uint8_t map[] = { LS_VMSTATE_INTERPRETED, LS_VMSTATE_C, LS_VMSTATE_GC };

        if (vmstate >= 0)
                return LS_VMSTATE_NATIVE;
        return (uint32_t)~vmstate < sizeof map ? map[~vmstate] : LS_VMSTATE_JIT;
}

/* 1 when the VM has a C frame: it runs Lua code or something called by it. */
LS_HANDLER static int vm_runs(void)
{
        const char *L = *(const char *const volatile *)(ls_tick.global + ls_tick.cur_L_offset);

        return L && *(const void *const volatile *)(L + ls_tick.cframe_offset);
}

/* The cputime timer is the one source of ticks that outlives the recorder and the recording. Without them it is
 * stretched to one tick a CPU second, not stopped, so that a recorder that was only stopped gets its rate back. */
LS_HANDLER static void watch_recorder(uint64_t now)
{
        uint64_t beat = atomic_load_explicit(&ls_agent.shm->heartbeat_ns, memory_order_relaxed);
        int silent = (now > beat && now - beat > RECORDER_SILENT_NS) ||
                     !atomic_load_explicit(&ls_agent.shm->recording, memory_order_relaxed);

        if (!ls_tick.has_timer || silent == ls_tick.slowed)
                return;
        uint64_t period = silent ? 1000000000u : ls_tick.interval_ns;
        struct timespec t = { (time_t)(period / 1000000000u), (long)(period % 1000000000u) };
        struct itimerspec spec = { t, t };

        ls_tick.slowed = silent;
        timer_settime(ls_tick.timer, 0, &spec, NULL);
}

/* LuaJIT's hookmask and dispatchmode. */
enum { HOOK_VMEVENT = 0x20, HOOK_GC = 0x40, HOOK_PROFILE = 0x80, DISPMODE_INS = 0x04, DISPMODE_PROF = 0x40 };

/* LuaJIT's handler asks for the hook in hookmask and then in the dispatch table. When a signal meets the VM at work on
 * that table, the VM overwrites the second with what it decided before the signal. LuaJIT never tries again, since the
 * first still stands; compiled code leaves at each of its checks because of it, and may do nothing else for ever. So a
 * request that a tick finds unanswered is taken back: LuaJIT's handler then makes all of it anew. It does so only
 * outside of finalizers and VM events. */
LS_HANDLER static void renew_request(void)
{
        volatile uint8_t *hookmask = (volatile uint8_t *)(uintptr_t)ls_tick.global + ls_tick.hookmask_offset;
        uint8_t mask = *hookmask;

        if (!(mask & HOOK_PROFILE) || mask & (HOOK_VMEVENT | HOOK_GC))
                return;
        hookmask[1] &= (uint8_t)~(DISPMODE_INS | DISPMODE_PROF);
        *hookmask = (uint8_t)(mask & ~HOOK_PROFILE);
}

LS_HANDLER static void count(uint32_t ticks)
{
        if (ls_tick.global && !vm_runs()) {
                atomic_fetch_add_explicit(&ls_tick.outside, ticks, memory_order_relaxed);
                return;
        }
        enum ls_vmstate state = LS_VMSTATE_INTERPRETED;

        if (ls_tick.global)
                state = vmstate_of(*(const volatile int32_t *)(ls_tick.global + ls_tick.vmstate_offset));
        atomic_fetch_add_explicit(&ls_tick.pending[state], ticks, memory_order_relaxed);
        if (ls_tick.trigger) {
                if (ls_tick.global && ls_tick.hookmask_offset)
                        renew_request();
                ls_tick.trigger(SIGPROF);
        }
}

LS_HANDLER static void tick(struct ls_shm *shm)
{
        uint64_t now = ls_now_ns();
        uint64_t cpu = ls_thread_cpu_ns();
        uint64_t last = atomic_load_explicit(&ls_tick.last_cpu_ns, memory_order_relaxed);
        uint64_t passed = ls_tick.remainder_ns + (cpu > last ? cpu - last : 0);
        uint64_t ticks = passed / ls_tick.interval_ns;

        ls_tick.remainder_ns = passed - ticks * ls_tick.interval_ns;
        atomic_store_explicit(&ls_tick.last_cpu_ns, cpu, memory_order_relaxed);
        watch_recorder(now);
        if (ticks > UINT32_MAX / 2)     /* decades; a broken clock */
                ticks = 0;
        if (ticks && !ls_tick.paused && atomic_load_explicit(&shm->recording, memory_order_relaxed)) {
                atomic_store_explicit(&ls_tick.last_time_ns, now, memory_order_relaxed);
                atomic_fetch_add_explicit(&ls_tick.ring->ticks, ticks, memory_order_relaxed);
                if (ticks > 1)
                        atomic_fetch_add_explicit(&ls_tick.delayed, (uint32_t)ticks - 1, memory_order_relaxed);
                count((uint32_t)ticks);
        }
        atomic_store_explicit(&ls_tick.ring->last_cpu_ns, cpu, memory_order_relaxed);
        atomic_fetch_add_explicit(&shm->own_handler_ns, ls_own_ns(now, cpu), memory_order_relaxed);
}

void (*ls_tick_foreign)(int sig, siginfo_t *info, void *context);

/* 1 when the program or a stranger sent it. The pid is 0 when the recorder is in another pid namespace, and when the
 * kernel had no room to queue what belongs to the signal (ulimit -i 0): then it looks like kill's. */
LS_HANDLER static int is_foreign(const siginfo_t *info, const struct ls_shm *shm)
{
        if (info->si_code != SI_USER && info->si_code != SI_QUEUE && info->si_code != SI_TKILL)
                return 0;
        return info->si_pid != 0 && info->si_pid != (pid_t)shm->recorder_pid;
}

LS_HANDLER void ls_tick_handler(int sig, siginfo_t *info, void *context)
{
        int saved = errno;
        struct ls_shm *shm = ls_agent.shm;

        if (ls_tick_foreign && is_foreign(info, shm)) {
                ls_tick_foreign(sig, info, context);
                errno = saved;
                return;
        }
        if (ls_tick.ready && ls_tick_thread && ls_agent_live()) {
                if (shm->bare_tick == 0)
                        tick(shm);
                atomic_fetch_add_explicit(&ls_tick.ring->signals, 1, memory_order_relaxed);
                atomic_fetch_add_explicit(&shm->ticks_handled, 1, memory_order_release);
        }
        errno = saved;
}
