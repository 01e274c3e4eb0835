/* What happens at a tick. The engine fills struct ls_tick before it arms the timer; the handler reads it at each
 * tick signal and adds up the time that passed; the VM hook takes the sums. One ticked thread a process. */
#ifndef LS_HANDLER_TICK_H
#define LS_HANDLER_TICK_H

#include <signal.h>
#include <time.h>

#include "libsample/handler/ring_writer.h"

struct ls_tick {
        struct ls_ring *ring;
        uint64_t interval_ns;
        void (*trigger)(int);           /* LuaJIT's own handler: sets its profile hook; NULL = not started */
        const char *global;             /* global_State, NULL when its layout is not known */
        unsigned vmstate_offset;        /* in global_State: int32_t vmstate */
        unsigned cur_L_offset;          /* in global_State: running lua_State */
        unsigned hookmask_offset;       /* in global_State: uint8_t hookmask, dispatchmode */
        unsigned cframe_offset;         /* in lua_State: its C frame, NULL = runs nothing */
        volatile sig_atomic_t ready;    /* 1 = all above is set and ticks count */
        volatile sig_atomic_t paused;   /* 1 = between regions or while the program's own profiler runs */
        timer_t timer;                  /* cputime timer */
        volatile sig_atomic_t has_timer;
        volatile sig_atomic_t slowed;   /* cputime: the recorder is silent, the timer is stretched */

        /* The handler adds, the hook takes; both on one thread, the handler may interrupt the hook. */
        _Atomic uint32_t pending[LS_NVMSTATES]; /* ticks by VM state since the hook took them */
        _Atomic uint32_t outside;       /* ticks while the VM ran nothing */
        _Atomic uint32_t delayed;       /* of all these, ticks seen late */
        _Atomic uint64_t last_time_ns;  /* CLOCK_MONOTONIC of the last tick */
        _Atomic uint64_t last_cpu_ns;   /* thread's CPU clock at the last tick, or when ticking began */
        uint64_t remainder_ns;          /* CPU time below one interval, carried to the next tick; handler's own */
};
extern struct ls_tick ls_tick;

/* Set on the ticked thread: a tick signal that somebody sends to another thread is ignored. */
extern __thread int ls_tick_thread __attribute__((tls_model("initial-exec")));

/* What to do with a tick signal that did not come from the timer: the program's own use of it. Set by preload.c. */
extern void (*ls_tick_foreign)(int sig, siginfo_t *info, void *context);

/* The tick signal's handler. Preserves errno. */
LS_HANDLER void ls_tick_handler(int sig, siginfo_t *info, void *context);

/* CLOCK_MONOTONIC and the calling thread's CPU clock in ns. Any context. */
LS_HANDLER uint64_t ls_now_ns(void);
LS_HANDLER uint64_t ls_thread_cpu_ns(void);

/* The agent's own time since since_ns (CLOCK_MONOTONIC), at most the CPU time since cpu_ns (thread's CPU clock, at or
 * before since_ns): a thread that lost the CPU meanwhile did no work of ours. Any context. */
LS_HANDLER uint64_t ls_own_ns(uint64_t since_ns, uint64_t cpu_ns);

#endif
