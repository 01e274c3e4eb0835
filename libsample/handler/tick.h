/* What happens at a tick: the handler adds up the CPU time that passed and takes a sample, or, for
 * a VM of the hook engine, asks LuaJIT for its profile hook, which takes it. */
#ifndef LS_HANDLER_TICK_H
#define LS_HANDLER_TICK_H

#include <signal.h>
#include <time.h>

#include "libsample/handler/sampler.h"

/* What to do with a tick signal that did not come from the timer: the program's own use of it. Set
 * by start/preload.c. */
extern void (*ls_tick_foreign)(int sig, siginfo_t *info, void *context);

/* A thread's first tick in a process that was attached to: what was made for it, NULL = nothing
 * yet. Set by start/attach.c. */
extern struct ls_thread *(*ls_tick_newcomer)(const void *context);
/* Where threads may run that the C library did not make: 1 = this one has thread data of its own.
 * NULL = all have. */
extern int (*ls_tick_has_data)(void);

/* At a tick that finds this VM running on its thread, whose tables nobody uses; NULL = nobody asks.
 * Set by start/attach.c. */
extern void (*ls_tick_vm_runs)(struct ls_vm *vm, const char *global);

/* The recorder, as this process knows it; 0 = it is of another pid namespace. Not read from the
 * shared memory, over which a child may write: a tick of a stranger's would end the program. Set
 * when the memory is mapped. */
extern volatile pid_t ls_tick_recorder;
/* Recorders whose attachments have ended: a thread that had no processor may come to the handler
 * only now, for a tick of theirs. Set by start/attach.c. */
#define LS_PAST_RECORDERS 8u
extern volatile pid_t ls_tick_past_recorders[LS_PAST_RECORDERS];

/* LuaJIT's vmstate: a trace number, or the complement of INTERP, C, GC, EXIT, RECORD, OPT, ASM. */
LS_HANDLER enum ls_vmstate ls_tick_vmstate(int32_t vmstate);
/* 1 for a function of ours that LuaJIT calls while it compiles. */
int ls_is_own_function(const char *fn);

/* The tick signal's handler. Preserves errno. */
LS_HANDLER void ls_tick_handler(int sig, siginfo_t *info, void *context);
/* 1 when the VM's allocator is LuaJIT's own, or stands for it; else the heap is watched no more. It
 * may have been given another since it was made. global: can be read. Any context. */
LS_HANDLER int ls_tick_has_own_heap(const struct ls_vm *vm, const char *global);
/* The VM's heap and what its collector does, when it differs from what the recording has. It lies
 * beside the allocator, which is read at each tick. guard: begun. In the thread that runs the
 * VM. */
LS_HANDLER void ls_tick_heap(struct ls_thread *t, struct ls_guard *guard, struct ls_vm *vm,
                             const char *global, uint64_t now);

/* Sends the stack of a thread that is blocked, read from another process (record/watch): ticks->sum
 * wall ticks, whose VM state is filled in. t: what that process keeps for the thread. regs: ip and
 * sp are known, the others 0. Returns 0; 1 = its VM is outside of the marked regions; -1 = the
 * stack could not be read, or not sent. */
int ls_tick_look(struct ls_thread *t, const struct ls_regs *regs, struct ls_ticks *ticks);

/* Sends the stack of L, a coroutine of vm that nobody runs, read from another process. Returns 0 or
 * -1. */
int ls_tick_look_suspended(struct ls_thread *t, const struct ls_vm *vm, const lua_State *L,
                           struct ls_ticks *ticks);

/* After a sample that took so long, from when the thread's CPU clock was cpu. One that took a large
 * part of the interval, such as of a stack of ten thousand frames at 50 us, is paid for before the
 * next stack is read: the program gets at least three quarters of the time. On the thread. */
LS_HANDLER void ls_tick_rest(struct ls_sampler *s, uint64_t took_ns, uint64_t cpu);

#endif
