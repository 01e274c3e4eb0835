/* What the agent keeps for each thread that it samples: its ring, its ticks, and all tables that a sample needs. A
 * thread's own code is the only one that touches it: the tick handler on that thread, and normal code of that thread
 * between ls_thread_enter and ls_thread_leave, when the handler keeps its hands off. So nothing in here is locked. Ids in
 * it are the ring's own. */
#ifndef LS_THREAD_H
#define LS_THREAD_H

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/wire/shm.h"

#define LS_THREADS_MOST 257u            /* rings that the agent uses at most, and that of the suspended coroutines */

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
        int quiet;                      /* the agent's own: gets no ticks */
        volatile sig_atomic_t busy;     /* nesting of ls_thread_enter: the handler only adds up ticks */
        /* tables, each made by the file that owns it */
        struct ls_functions *functions;
        struct ls_sources *sources;
        struct ls_coroutines *coroutines;
        struct ls_zones *zones;
        struct ls_label_cache *labels;
        struct ls_names *names;
        struct ls_sampler *sampler;     /* ticks that wait for a sample, last stack (handler/tick.h) */
};

/* The calling thread's, NULL = it is not sampled. Any context; in a forked child it is what the parent had: look at
 * ls_agent_live first. */
extern __thread struct ls_thread *ls_thread_own __attribute__((tls_model("initial-exec")));
/* The generation of the recording that it belongs to: a thread keeps the one of an attachment that has ended. */
extern __thread uint64_t ls_thread_own_generation __attribute__((tls_model("initial-exec")));

/* The calling thread's, NULL = it is not sampled, or this is a forked child. Any context. */
struct ls_thread *ls_thread_self(void);

/* Begins and ends a use of the thread's tables by normal code. May nest. Between them a tick of this thread adds its
 * time to the next sample. */
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

/* threads.c, normal context: */

/* Gives the calling thread a ring and ticks. stack_size: of its C stack, 0 = not known. Does nothing when it has them or all rings are taken. */
void ls_thread_begin(size_t stack_size);
/* The same for a thread of the agent's own, which gets no ticks. */
void ls_thread_begin_quiet(void);
/* What is pending on the calling thread t becomes a sample or a loss, and waiting texts are sent. Returns 0 when a handler of
 * the program's has interrupted ours: then nothing is touched. */
int ls_thread_flush(struct ls_thread *t);
/* There is a VM: all threads get ticks, and those that begin from now on. */
void ls_threads_arm_all(void);
/* Begins and ends its ticks, keeps the ring. */
void ls_thread_arm(struct ls_thread *t);
void ls_thread_disarm(struct ls_thread *t);
/* Ends the calling thread's ticks and gives the ring back. */
void ls_thread_end(void);
/* The next recording of an attached process. Nothing is armed. */
void ls_threads_restart(void);
/* In a process that others have started. Of many that live for a tick or less one that ends counts a tick now and then, as
 * one of many such threads does: each begins anywhere in a tick. */
void ls_threads_in_child(void);
/* Ends the ticks of all threads, before exec. */
void ls_threads_stop(void);
/* After that: until the recorder sends no tick any more, to any thread (half a second at most: it may have lost its processor
 * between its last look and the signal). Returns 0, or -1: it may still. Attached, its events are closed then, too. */
int ls_threads_wait_for_recorder(void);
/* When exec failed: installs the handler and begins the ticks again, unless another thread is about to exec. */
void ls_threads_go_on(void);
/* In the child after fork: this process writes nothing. Returns 0 when the fork interrupted our own code, which will go on
 * with the thread's tables and ring: then they must stay as they are. */
int ls_threads_after_fork_child(void);
/* The child has memory of its own. Returns 1 when that of its parent may go. */
int ls_threads_leave_parent(void);

#endif
