/* Sends one sample: gives its frames the ids that the ring knows, sends what of it is new, and the
 * rest as reference to the sample before. Called by the tick handler (walk engine) and by the VM
 * hook, on the thread that owns the ring. */
#ifndef LS_HANDLER_SAMPLE_H
#define LS_HANDLER_SAMPLE_H

#include "libsample/agent.h"
#include "libsample/handler/clock.h"
#include "libsample/handler/sampler.h"

struct ls_moment {                      /* what a sample shows, beside the stack in
                                         * sampler->walks[current] */
        const struct ls_vm *vm;
        const lua_State *L;
        int whole;                      /* no code of the VM is at work on its objects: names may be
                                         * searched for */
        int whole_stack;                /* nor, at least, on this stack: names may be taken from the
                                         * calls in it */
        uint32_t flags;                 /* LS_SAMPLE_* */
        uint32_t jit_id, jit_offset;
        uintptr_t jit_callee;           /* C function that the code there has called, 0 = none is
                                         * known */
        const struct ls_regs *regs;     /* for the native stack, NULL = without */
        /* Line of a Lua frame whose pc is not known; may be NULL. */
        uint32_t (*line_of)(const struct ls_moment *m, const struct ls_walk *walk, size_t i);
};

/* Sends the stack in sampler->walks[current] with these ticks. What does not fit is counted as
 * lost. Returns 0, or -1: it was not sent. */
LS_HANDLER int ls_sample_send(struct ls_thread *t, const struct ls_moment *m,
                              const struct ls_ticks *ticks);
/* Sends the THREAD record: first of all records of a thread, and again when its name has changed
 * since. */
LS_HANDLER void ls_sample_describe_thread(struct ls_thread *t);
/* A sample of one pseudo frame, with the native stack above it. vm: may be NULL. name: a string
 * constant. regs: NULL = without a native stack. Returns 0, or -1: it was not sent. */
LS_HANDLER int ls_sample_send_pseudo(struct ls_thread *t, const struct ls_vm *vm, const char *name,
                                     const struct ls_regs *regs, const struct ls_ticks *ticks);
/* A sample of frames that have their ids. */
LS_HANDLER void ls_sample_send_frames(struct ls_thread *t, const struct ls_vm *vm,
                                      const struct ls_frame *frames, uint32_t n, uint32_t flags,
                                      const struct ls_ticks *ticks);
/* The ticks that came while no VM ran become a sample. regs: as above, of the last one. */
LS_HANDLER void ls_sample_flush_outside(struct ls_thread *t, const struct ls_regs *regs);
/* The next sample refers to none before it. */
LS_HANDLER void ls_sample_alone(struct ls_thread *t);
/* Names and texts that wait, as far as time allows. L: of a VM whose objects are whole. */
LS_HANDLER void ls_sample_background(struct ls_thread *t, const lua_State *L, uint64_t cpu_ns);

static inline void ls_lose(enum ls_loss reason, uint64_t n)
{
        atomic_fetch_add_explicit(&ls_agent.shm->lost[reason], n, memory_order_relaxed);
}

#endif
