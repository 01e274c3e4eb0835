/* What happens at a tick: the handler adds up the CPU time that passed and takes a sample, or, for a VM of the hook
 * engine, asks LuaJIT for its profile hook, which takes it. */
#ifndef LS_HANDLER_TICK_H
#define LS_HANDLER_TICK_H

#include <signal.h>
#include <time.h>

#include "libsample/handler/walk.h"
#include "libsample/thread.h"
#include "libsample/vm/vm.h"

struct ls_ticks {                       /* time that a sample stands for */
        uint32_t weight[LS_NVMSTATES];
        uint32_t sum, delayed;
        uint8_t event;                  /* enum ls_event_kind; 0 = CPU */
        uint8_t flags;                  /* LS_SAMPLE_* that its sample gets */
        uint32_t place;                 /* the number that its stack gets, see ring.h; 0 = none */
        uint64_t time_ns, cpu_ns;       /* CLOCK_MONOTONIC and the thread's CPU clock at the last tick */
};

struct ls_sampler {                     /* of a thread; pages */
        volatile sig_atomic_t ready;    /* 1 = ticks count */
        int timer;                      /* cputime timer, the kernel's number of it */
        volatile sig_atomic_t has_timer;
        volatile sig_atomic_t slowed;   /* cputime: the recorder is silent, the timer is stretched */
        int described;                  /* -1 = the THREAD record was sent, 1 = and its name was looked at again */
        char name[16];                  /* as it was sent */

        /* The handler adds, the hook takes; both on one thread, the handler may interrupt the hook. */
        _Atomic uint32_t pending[LS_NVMSTATES]; /* ticks by VM state since they were taken */
        _Atomic uint32_t outside;       /* ticks while no VM ran */
        _Atomic uint32_t delayed;       /* of all these, ticks seen late */
        _Atomic uint64_t last_time_ns;  /* CLOCK_MONOTONIC of the last tick */
        _Atomic uint64_t last_cpu_ns;   /* thread's CPU clock at the last tick, or when ticking began */
        uint64_t remainder_ns;          /* CPU time below one interval, carried to the next tick; handler's own */
        uint64_t cpu_start;             /* thread's CPU clock when it was armed */

        uint64_t rest_until_ns;         /* thread's CPU clock: before it no stack is read */
        const struct ls_vm *last_vm;    /* that ran at the last tick; only compared */
        struct ls_walk walks[2];        /* the sample at hand and the last one that was sent */
        unsigned current;
        size_t last_n;                  /* frames of the last one, 0 = the next one stands alone */
        uintptr_t inside;               /* stack address of the handler that runs, 0 = none */
        uint32_t nested;                /* ticks since then */
        uint32_t in_write;              /* the ring's, before that handler wrote */
        struct ls_ticks at_hand;        /* ticks that it has taken and not sent; sum 0 = none */
        uint64_t names_ns;              /* spent on searches for names */
        int inlined;                    /* 1 = a trace has a function without a name that was not looked for yet */
        int untried;                    /* 1 = a function without a name was in a sample whose call sites could not be read */
        unsigned again;                 /* times that all frames were looked at for that */
        uint64_t builtins_ns;           /* when the libraries were last read for names of fast functions */
        struct ls_native_copy *native;  /* the last native stack, NULL = none wanted */
        /* Asked before a sample is sent, 0 = it is not: the thread does not stand where it was read any more. NULL for a
         * thread that reads itself. */
        int (*still)(const struct ls_thread *t);
};

/* LuaJIT's own profiler, which the hook engine runs on one VM of the process. */
struct ls_profiler {
        _Atomic(const struct ls_vm *) vm;       /* NULL = not started */
        _Atomic uint32_t taken;         /* 1 = the program's own profiler runs in its place */
        void (*trigger)(int);           /* LuaJIT's own handler: sets its profile hook */
        uint32_t thread_id;             /* of the thread that started it */
};
extern struct ls_profiler ls_profiler;

/* Threads that read a VM at this moment, by index: a VM is removed only when none does. */
extern _Atomic(const struct ls_vm *) ls_vm_readers[LS_THREADS_MOST];

/* What to do with a tick signal that did not come from the timer: the program's own use of it. Set by interpose/preload.c. */
extern void (*ls_tick_foreign)(int sig, siginfo_t *info, void *context);

/* A thread's first tick in a process that was attached to: what was made for it, NULL = nothing yet. Set by attach/attach.c. */
extern struct ls_thread *(*ls_tick_newcomer)(const void *context);

/* Recorders whose attachments have ended: a thread that had no processor may come to the handler only now, for a tick of theirs.
 * Set by attach/attach.c. */
#define LS_PAST_RECORDERS 8u
extern volatile pid_t ls_tick_past_recorders[LS_PAST_RECORDERS];

/* The tick signal's handler. Preserves errno. */
LS_HANDLER void ls_tick_handler(int sig, siginfo_t *info, void *context);

/* Sends the stack of a thread that is blocked, read from another process (record/watch): ticks->sum wall ticks, whose
 * VM state is filled in. t: what that process keeps for the thread. regs: ip and sp are known, the others 0. Returns 0; 1 = its
 * VM is outside of the marked regions; -1 = the stack could not be read, or not sent. */
int ls_tick_look(struct ls_thread *t, const struct ls_regs *regs, struct ls_ticks *ticks);

/* Sends the stack of L, a coroutine of vm that nobody runs, read from another process. Returns 0 or -1. */
int ls_tick_look_suspended(struct ls_thread *t, const struct ls_vm *vm, const lua_State *L, struct ls_ticks *ticks);

/* After a sample that took so long, from when the thread's CPU clock was cpu. One that took a large
 * part of the interval, such as of a stack of ten thousand frames at 50 us, is paid for before the next stack is read: the
 * program gets at least three quarters of the time. On the thread. */
LS_HANDLER void ls_tick_rest(struct ls_sampler *s, uint64_t took_ns, uint64_t cpu);

/* Takes the pending ticks. On the thread. */
LS_HANDLER void ls_ticks_take(struct ls_sampler *s, struct ls_ticks *ret);

/* CLOCK_MONOTONIC and the calling thread's CPU clock in ns. Any context. */
LS_HANDLER uint64_t ls_now_ns(void);
LS_HANDLER uint64_t ls_thread_cpu_ns(void);

/* The agent's own time since since_ns (CLOCK_MONOTONIC), at most the CPU time since cpu_ns (thread's CPU clock, at or
 * before since_ns): a thread that lost the CPU meanwhile did no work of ours. Any context. */
LS_HANDLER uint64_t ls_own_ns(uint64_t since_ns, uint64_t cpu_ns);

#endif
