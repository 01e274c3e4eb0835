/* The Lua VMs that live in this process: made and removed by vm/vms.c in normal context, looked up
 * by the tick handler of any thread. */
#ifndef LS_LIBSAMPLE_HANDLER_VMS_H
#define LS_LIBSAMPLE_HANDLER_VMS_H

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/wire/kinds.h"
#include "libsample/thread.h"

typedef struct lua_State lua_State;

#define LS_VMS_MOST                                                                                \
        4096u /* VMs at a time; the time of more is that of no VM, and a notice says so */

struct ls_exact;
struct ls_jit;
struct ls_thread;
struct ls_vm_labels;
struct ls_vm_ready;
struct ls_vm_zones;

struct ls_vm {
        _Atomic(const char *) global;   /* its global_State, NULL = the slot is free. Stored last,
                                         * cleared first */
        _Atomic uint32_t taken;         /* 1 = the slot is not free: it is being filled, used or
                                         * left */
        lua_State *main;
        uint32_t vm_id;                 /* of the process, from 1; not used again */
        uint8_t engine;                 /* LS_ENGINE_WALK or LS_ENGINE_HOOK */
        uint8_t jit_leaf;               /* enum ls_jit_leaf */
        struct ls_jit *jit;             /* its traces, NULL = not watched (jit/jit.h) */
        struct ls_exact *exact;         /* counts its bytecodes, NULL = nobody does
                                         * (exact/exact.h) */
        struct ls_vm_labels *labels;    /* NULL until it gives the first label (handler/labels.h) */
        struct ls_vm_ready *ready;      /* NULL until a coroutine is marked (handler/ready.h) */
        struct ls_vm_zones *zones;      /* NULL until it requires jit.zone (handler/zones.h) */
        const void *own_alloc;          /* stub in place of LuaJIT's own allocator (alloc/), NULL =
                                         * none is */
        uint8_t lent;                   /* 1 = labels and zones are in memory of the VM
                                         * (api/lend.c) */
        _Atomic uint32_t runner;        /* thread_id of the thread that ran it last, as far as is
                                         * known; 0 = none is */
        _Atomic(const struct ls_thread *) closing;      /* thread that is in lua_close of it, NULL =
                                                         * none */
        uint64_t heap_key;              /* of the recording that has had the heap's state, 0 = none;
                                         * by its thread's handler, as the next two */
        uint64_t heap_total;            /* as it was sent last */
        uint16_t heap_state;
        volatile sig_atomic_t paused;   /* not 0 = no samples: LS_PAUSED_* (api/control.h) */
        volatile sig_atomic_t in_region;
};

extern struct ls_vm ls_vms[LS_VMS_MOST];
extern _Atomic uint32_t ls_vms_used;    /* slots below this may be in use */
extern _Atomic uint32_t ls_vms_closed;  /* how many were closed: addresses in them mean nothing any
                                         * more */

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

/* Addresses of our functions that LuaJIT calls while it compiles: never frames of the program's. */
extern uintptr_t ls_jit_functions[2];

/* The VM that is known by this address (ls_vm_identity), NULL = none of those. Any context. */
static inline struct ls_vm *ls_vm_at(const char *global)
{
        uint32_t n = atomic_load_explicit(&ls_vms_used, memory_order_acquire);

        for (uint32_t i = 0; i < n; i++)
                if (atomic_load_explicit(&ls_vms[i].global, memory_order_acquire) == global)
                        return &ls_vms[i];
        return NULL;
}

/* The VM of a lua_State, NULL = none of those. Where global_State is not known VMs are known by
 * their main lua_State. Any context. */
static inline struct ls_vm *ls_vm_of(const lua_State *L)
{
        struct ls_vm *vm = ls_vm_at(*(const char *const *)((const char *)L + 16));

        return vm ? vm : ls_vm_at((const char *)L);
}

#endif
