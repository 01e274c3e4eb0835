/* What the agent keeps for each thread that it samples: its ring, its ticks, and all tables that a
 * sample needs. A thread's own code is the only one that touches it: the tick handler on that
 * thread, and normal code of that thread between ls_thread_enter and ls_thread_leave, when the
 * handler keeps its hands off. So nothing in here is locked. Ids in it are the ring's own. */
#ifndef LS_THREAD_H
#define LS_THREAD_H

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/wire/shm.h"

#define LS_THREADS_MOST                                                                            \
        257u /* rings that the agent uses at most, and that of the suspended coroutines */

struct ls_functions;
struct ls_sources;
struct ls_coroutines;
struct ls_zones;
struct ls_label_cache;
struct ls_names;
struct ls_sampler;
struct ls_vm;

struct ls_thread {
        struct ls_ring *ring;
        unsigned index;                 /* of the ring */
        int tid;
        uint32_t thread_id;             /* in ring records */
        uintptr_t stack_low, stack_high;/* its C stack; 0, 0 = not known */
        uintptr_t data;                 /* attached: address of its thread data, once seen to be its
                                         * own */
        int quiet;                      /* the agent's own: gets no ticks */
        volatile sig_atomic_t busy;     /* nesting of ls_thread_enter: the handler only adds up
                                         * ticks */
        /* tables, each made by the file that owns it */
        struct ls_functions *functions;
        struct ls_sources *sources;
        struct ls_coroutines *coroutines;
        struct ls_zones *zones;
        struct ls_label_cache *labels;
        struct ls_names *names;
        struct ls_sampler *sampler;     /* ticks that wait for a sample, last stack
                                         * (handler/tick.h) */
};

/* The calling thread's, NULL = it is not sampled. Any context; in a forked child it is what the
 * parent had: look at ls_agent_live first. */
extern __thread struct ls_thread *ls_thread_own __attribute__((tls_model("initial-exec")));
/* The generation of the recording that it belongs to: a thread keeps the one of an attachment that
 * has ended. */
extern __thread uint64_t ls_thread_own_generation __attribute__((tls_model("initial-exec")));

/* The calling thread's, NULL = it is not sampled, or this is a forked child. Any context. */
struct ls_thread *ls_thread_self(void);

/* Begins and ends a use of the thread's tables by normal code. May nest. Between them a tick of
 * this thread adds its time to the next sample. */
static inline void ls_thread_enter(struct ls_thread *t)
{
        t->busy++;
        atomic_signal_fence(memory_order_seq_cst);
}

static inline void ls_thread_leave(struct ls_thread *t)
{
        atomic_signal_fence(memory_order_seq_cst);
        t->busy--;
}

#endif
