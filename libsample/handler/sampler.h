/* What a thread keeps of its ticks and its samples. */
#ifndef LS_LIBSAMPLE_HANDLER_SAMPLER_H
#define LS_LIBSAMPLE_HANDLER_SAMPLER_H

#include <signal.h>

#include "libsample/handler/vms.h"
#include "libsample/handler/walk.h"
#include "libsample/thread.h"

struct ls_ticks {                       /* time that a sample stands for */
        uint32_t weight[LS_NVMSTATES];
        uint32_t sum, delayed;
        uint8_t event;                  /* enum ls_event_kind; 0 = CPU */
        uint8_t flags;                  /* LS_SAMPLE_* that its sample gets */
        uint32_t type;                  /* enum ls_objtype */
        uint32_t place;                 /* the number that its stack gets, see ring.h; 0 = none */
        uint64_t time_ns, cpu_ns;       /* CLOCK_MONOTONIC and the thread's CPU clock at the last
                                         * tick */
};

struct ls_sampler {                     /* of a thread; pages */
        volatile sig_atomic_t ready;    /* 1 = ticks count */
        int timer;                      /* cputime timer, the kernel's number of it */
        volatile sig_atomic_t has_timer;
        volatile sig_atomic_t slowed;   /* cputime: the recorder is silent, the timer is
                                         * stretched */
        int described;                  /* -1 = the THREAD record was sent, 1 = and its name was
                                         * looked at again */
        char name[16];                  /* as it was sent */

        /* The handler adds, the hook takes; both on one thread, the handler may interrupt the
         * hook. */
        _Atomic uint32_t pending[LS_NVMSTATES]; /* ticks by VM state since they were taken */
        _Atomic uint32_t outside;       /* ticks while no VM ran */
        _Atomic uint32_t delayed;       /* of all these, ticks seen late */
        _Atomic uint64_t last_time_ns;  /* CLOCK_MONOTONIC of the last tick */
        _Atomic uint64_t last_cpu_ns;   /* thread's CPU clock at the last tick, or when ticking
                                         * began */
        uint64_t remainder_ns;          /* CPU time below one interval, carried to the next tick;
                                         * handler's own */
        uint32_t traced;                /* the shared one at the last tick */
        uint64_t cpu_start;             /* thread's CPU clock when it was armed */

        uint64_t rest_until_ns;         /* thread's CPU clock: before it no stack is read */
        const struct ls_vm *last_vm;    /* that ran at the last tick; only compared */
        struct ls_walk walks[2];        /* the sample at hand and the last one that was sent */
        unsigned current;
        struct ls_guard aside;          /* of ticks that only count, while the thread's tables are
                                         * in use */
        size_t last_n;                  /* frames of the last one, 0 = the next one stands alone */
        uintptr_t inside;               /* stack address of the handler that runs, 0 = none */
        uint32_t nested;                /* ticks since then */
        uint32_t in_write;              /* the ring's, before that handler wrote */
        struct ls_ticks at_hand;        /* ticks that it has taken and not sent; sum 0 = none */
        uint64_t names_ns;              /* spent on searches for names */
        int inlined;                    /* 1 = a trace has a function without a name that was not
                                         * looked for yet */
        int untried;                    /* 1 = a function without a name was in a sample whose call
                                         * sites could not be read */
        unsigned again;                 /* times that all frames were looked at for that */
        uint64_t builtins_ns;           /* when the libraries were last read for names of fast
                                         * functions */
        struct ls_native_copy *native;  /* the last native stack, NULL = none wanted */
        /* Asked before a sample is sent, 0 = it is not: the thread does not stand where it was
         * read any more. NULL for a thread that reads itself. */
        int (*still)(const struct ls_thread *t);
};

/* 1 when CPU time that has passed since the last tick is not to be counted: samples are not wanted
 * for now, or a debugger has held the program. On the thread, or when it is disarmed. */
LS_HANDLER int ls_sampler_paused(struct ls_sampler *s, const struct ls_shm *shm);
/* Takes the pending ticks. On the thread. */
LS_HANDLER void ls_ticks_take(struct ls_sampler *s, struct ls_ticks *ret);

#endif
