/* The memory that the recorder makes and the agent maps: a control page and the rings. Read and
 * written by both sides; each field says who writes it. Neither trusts it. */
#ifndef LS_WIRE_SHM_H
#define LS_WIRE_SHM_H

#include <linux/futex.h>

#include "formats/wire/counters.h"
#include "formats/wire/ring.h"

#define LS_SHM_MAGIC   0x4d53534cu      /* "LSSM" */
#define LS_SHM_VERSION 15u
#define LS_SHM_COUNTERS 4096u           /* offset of the counters, struct ls_counter[LS_COUNTERS] */
/* Offset of the rings: see ls_ring_offset. */
#define LS_SHM_RINGS   (LS_SHM_COUNTERS + LS_COUNTERS * sizeof(struct ls_counter))

/* The agent finds the memory through this variable: "PID:FD:GENERATION", opened as /proc/PID/fd/FD;
 * in a child of a recorded process it is the registry's (wire/registry.h), with ":c" behind. The
 * agent takes it, and its own entry in LD_PRELOAD, out of the environment before the program's
 * first instruction. */
#define LS_ENV_AGENT "LUASAMPLE_AGENT_MEMORY"

/* The tick's signal. Unused by kernel and libraries, and of the classic kind: a second one merges
 * with a pending one, so a blocked signal cannot pile up, and RLIMIT_SIGPENDING cannot make the
 * kernel send SIGIO in its place, as it does for realtime signals of perf events. */
#define LS_TICK_SIGNAL 16               /* SIGSTKFLT */

#define LS_CHILD_SLOTS 8
#define LS_CHILD_PATH  240

struct ls_child_exec {                  /* a child process of the program ran this file: agent
                                         * writes, recorder reads */
        _Atomic uint32_t pid;           /* stored last; 0 = free */
        uint32_t pad;
        char path[LS_CHILD_PATH];       /* as given to exec, found in PATH by the reader;
                                         * zero-terminated */
};
_Static_assert(sizeof(struct ls_child_exec) == 248, "child slot is 248 bytes");

/* Why the agent records nothing in a process (agent_state LS_AGENT_REFUSED). */
#define LS_AGENT_NONE     0u            /* no agent has come up */
#define LS_AGENT_LOADED   1u            /* loaded, no Lua VM yet */
#define LS_AGENT_SAMPLING 2u            /* a VM is being sampled */
#define LS_AGENT_REFUSED  3u            /* a VM came up, but cannot be sampled: a NOTICE says why */
#define LS_AGENT_DONE     4u            /* the VM was closed or the process ended normally */

/* How the watcher gets at the stacks of blocked threads (outside.h): its word to the recorder. */
enum ls_watching {
        LS_WATCH_NONE,
        LS_WATCH_STACKS,
        LS_WATCH_FORBIDDEN,
        LS_WATCH_UNREADABLE,
        LS_WATCH_CLASH,
        LS_WATCH_NO_TIMES,
        LS_WATCH_NO_FILES
};

/* Attached: before the agent puts jumps at entries of functions the recorder sees to it that no
 * thread is in the middle of what the jumps replace. The agent wants that, and the recorder, which
 * may be busy, is ready for it; then the agent closes the entries and asks, the recorder answers,
 * the agent claims what it was given, and lets go. */
enum ls_hold {
        LS_HOLD_NONE,
        LS_HOLD_WANTED,
        LS_HOLD_READY,
        LS_HOLD_ASKED,
        LS_HOLD_HELD,
        LS_HOLD_CLAIMED,
        LS_HOLD_REFUSED
};
#define LS_HOLD_RANGES 8u
struct ls_hold_range {                  /* no thread may be behind at, and before its end */
        uint64_t at;
        uint32_t size;
        uint8_t closed;                 /* 1 = none can get there any more: at is a jump to
                                         * itself */
        uint8_t first[2], pad;          /* that it has replaced */
};

#define LS_FORK_SLOTS 32u

struct ls_shm {
        /* set by the recorder before the program starts, then constant */
        uint32_t magic;
        uint32_t version;
        uint64_t generation;            /* random, not 0: what a forked child cannot have */
        uint64_t total_size;            /* bytes of the whole memory */
        uint64_t ring_stride;           /* bytes from ring to ring, but for the first, which is
                                         * larger */
        uint32_t ring_size;             /* bytes of records in ring 0; struct ls_ring has that of
                                         * each other */
        uint32_t ring_count;            /* rings that follow */
        uint64_t interval_ns;
        uint32_t depth;                 /* most frames of a stack, 0 = no limit */
        uint8_t scope;                  /* enum ls_scope */
        uint8_t timer;                  /* enum ls_timer */
        uint8_t want_text;              /* 0 = --no-source: send no text of loaded chunks */
        uint8_t bare_tick;              /* 1 = bench: the handler only returns, 2 = no ticks
                                         * at all, 3 = they only find VMs for -e alloc */
        uint8_t engine;                 /* enum ls_engine_kind */
        uint8_t jit_leaf;               /* enum ls_jit_leaf */
        uint8_t native;                 /* 1 = native stacks are wanted */
        uint8_t exact;                  /* enum ls_exact_want */
        uint64_t alloc_interval;        /* bytes allocated from sample to sample, on average; 0 =
                                         * none are wanted */
        uint32_t native_bytes;          /* most of a native stack that is copied */
        _Atomic uint32_t root_pid;      /* the process to record; 0 = any that takes it from the
                                         * registry, and puts itself here when all that it says
                                         * below is there */
        uint32_t recorder_pid;          /* 0 = of another pid namespace */
        int32_t registry_fd;            /* the recorder's descriptor of the registry, -1 = children
                                         * are not followed */
        uint64_t registry_generation;
        uint32_t small_size;            /* bytes of records in each ring but the first */
        uint32_t live;                  /* 1 = what is not freed of the sampled allocations is asked
                                         * for */
        int32_t exact_fd;               /* the recorder's descriptor of the memory of counts
                                         * (wire/exact.h); -1 = there is none */

        /* recorder writes */
        _Atomic uint64_t heartbeat_ns;  /* CLOCK_MONOTONIC, at least every 500 ms */
        _Atomic uint32_t recording;     /* 1 while samples are wanted; 0 after -d: the agent goes
                                         * quiet */
        _Atomic uint32_t detach;        /* 1 = an attached process is to be left; futex (shared) */
        _Atomic uint32_t paused;        /* 1 while no ticks are counted, for now: all else goes
                                         * on */
        _Atomic uint32_t traced;        /* odd while a debugger holds the program and no tick is
                                         * sent; counts its comings and goings */
        _Atomic uint32_t recorder_thread;       /* attached: the recorder's first thread, as it
                                                 * knows itself; the kernel adds FUTEX_OWNER_DIED
                                                 * when that ends; 0 = it does not */

        /* agent writes */
        _Atomic uint32_t request;       /* counts changes of any ring's armed, tid and closing, and
                                         * of filling to 1; futex (shared) to wake the recorder's
                                         * ticker and the watcher; the recorder adds to it to end
                                         * them */
        _Atomic uint32_t filling;       /* 1 = a ring fills faster than it is emptied, or few rings
                                         * are free: the recorder is to look at once, and stores 0
                                         * before it does */
        _Atomic uint32_t agent_state;   /* LS_AGENT_* */
        _Atomic uint32_t execs;         /* times that the recorded process came up with an agent */
        _Atomic uint64_t own_handler_ns;  /* time spent in the tick handler */
        _Atomic uint64_t own_hook_ns;     /* time spent in the VM hook, ring writes included */
        _Atomic uint64_t own_start_ns;    /* time spent to start */
        _Atomic uint64_t app_profiler_ns; /* CPU time during which the program's own profiler ran */
        _Atomic uint64_t lost[LS_NLOSSES];/* by reason (losses.def) */
        _Atomic uint64_t samples;       /* SAMPLE records committed */
        _Atomic uint64_t sample_ticks;  /* weight in them */
        _Atomic uint32_t nthreads_seen; /* threads that got a ring */
        _Atomic uint32_t nthreads_unrecorded;   /* threads that got none, since all were taken */
        _Atomic uint32_t nvms;          /* VMs created */
        _Atomic uint32_t nvms_walk;     /* of them read by the walk engine */
        _Atomic uint32_t child_next;    /* next of children[], taken modulo LS_CHILD_SLOTS */
        _Atomic uint32_t forks;         /* children made by fork */
        _Atomic uint32_t watching;      /* watcher: LS_WATCH_*, how it reads blocked threads */
        _Atomic uint64_t suspended_looks;       /* watcher: looks at all coroutines */
        _Atomic uint64_t view;          /* address of the agent's struct ls_view in the program, for
                                         * the watcher; 0 = none */
        _Atomic uint32_t rings_used;    /* rings from 0 that have had a thread */
        _Atomic uint32_t agent_tid;     /* attached: the agent's own thread, as the process knows
                                         * it */
        _Atomic uint32_t attach_looks;  /* attached: 1 = libraries and VMs were looked for */
        _Atomic uint32_t hold;          /* attached, both: enum ls_hold; futex (shared) */
        uint32_t n_hold;                /* agent: ranges */
        struct ls_hold_range hold_ranges[LS_HOLD_RANGES];
        _Atomic uint32_t forked[LS_FORK_SLOTS]; /* attached: children with VMs, each by itself and
                                                 * as it knows itself, to be attached to; the
                                                 * recorder takes them; 0 = free */
        _Atomic uint32_t forks_untold;  /* attached: children that found no place there */
        _Atomic int32_t forks_coming;   /* attached: forks that have begun and whose child has not
                                         * run yet */
        _Atomic uint32_t counters;      /* counters from 0 that are or were about to be named */
        uint64_t parent_generation;     /* of the memory of the process that forked this one, 0 = it
                                         * was not forked */
        uint32_t parent_jit_ids;        /* ids of JIT traces up to this one are the parent's, and so
                                         * are their definitions */
        uint32_t pad2;
        _Atomic uint64_t jit_attempts;  /* that LuaJIT has begun to compile, of all VMs that are
                                         * watched */
        _Atomic uint64_t jit_aborts;    /* of these, given up */
        _Atomic uint64_t jit_untold;    /* of those that have ended, not described: too many at a
                                         * time */
        _Atomic uint64_t jit_flushes[LS_JIT_FLUSHES];
        _Atomic uint64_t jit_off_ticks; /* ticks in VMs whose compiler is off */
        /* LuaJIT's -O parameters, 0 = not known */
        _Atomic uint32_t jit_maxtrace, jit_maxmcode, jit_hotloop, jit_hotexit;
        char command[32];               /* short name of the process, zero-terminated; "" = it was
                                         * launched by the recorder */
        char runtime[64];               /* version of the Lua runtime, zero-terminated */
        char runtime_path[256];         /* file that holds it */
        struct ls_child_exec children[LS_CHILD_SLOTS];
};
_Static_assert(sizeof(struct ls_shm) <= LS_SHM_COUNTERS, "the control page is one page");
_Static_assert(LS_SHM_RINGS % 4096 == 0, "rings begin at a page");

/* Attached: 1 = the recorder has ended, and with it, some ms later, all that it had open. One that
 * is stopped has not. */
static inline int ls_shm_recorder_has_ended(const struct ls_shm *s)
{
        return (atomic_load(&s->recorder_thread) & FUTEX_OWNER_DIED) != 0;
}

/* Of ring i; of as many as there are: the end of the last. */
static inline uint64_t ls_ring_offset(uint32_t first_size, uint64_t stride, uint32_t i)
{
        return LS_SHM_RINGS + (i ? LS_RING_DATA + first_size + (i - 1) * stride : 0);
}

static inline struct ls_counter *ls_shm_counters(struct ls_shm *shm)
{
        return (struct ls_counter *)(void *)((char *)shm + LS_SHM_COUNTERS);
}

#endif
