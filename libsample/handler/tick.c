/* The tick: counts the CPU time that passed and takes the sample, or asks LuaJIT for its profile
 * hook. Runs in the handler of LS_TICK_SIGNAL on the sampled thread. */

#include "libsample/handler/tick.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "libsample/agent.h"
#include "libsample/handler/clock.h"
#include "libsample/handler/jit_find.h"
#include "libsample/handler/jit_locate.h"
#include "libsample/handler/ring_writer.h"
#include "libsample/handler/sample.h"

/* No heartbeat for so long: the recorder is gone or stopped. */
#define RECORDER_SILENT_NS UINT64_C(2000000000)

LS_HANDLER enum ls_vmstate ls_tick_vmstate(int32_t vmstate)
{
        static const uint8_t map[] = { LS_VMSTATE_INTERPRETED, LS_VMSTATE_C, LS_VMSTATE_GC };

        if (vmstate >= 0)
                return LS_VMSTATE_NATIVE;
        return (uint32_t)~vmstate < sizeof map ? map[~vmstate] : LS_VMSTATE_JIT;
}

/* The cputime timer is the one source of ticks that outlives the recorder and the recording.
 * Without them it is stretched to one tick a CPU second, not stopped, so that a recorder that was
 * only stopped gets its rate back. */
LS_HANDLER static void watch_recorder(struct ls_sampler *s, uint64_t now)
{
        uint64_t beat;
        int silent;

        if (!s->has_timer)
                return;
        beat = atomic_load_explicit(&ls_agent.shm->heartbeat_ns, memory_order_relaxed);
        silent = (now > beat && now - beat > RECORDER_SILENT_NS) ||
                 !atomic_load_explicit(&ls_agent.shm->recording, memory_order_relaxed);
        if (silent == s->slowed)
                return;
        uint64_t period = silent ? 1000000000u : ls_agent.shm->interval_ns;
        struct timespec t = { (time_t)(period / 1000000000u), (long)(period % 1000000000u) };
        struct itimerspec spec = { t, t };

        s->slowed = silent;
        syscall(SYS_timer_settime, s->timer, 0, &spec, NULL);
}

/* LuaJIT's hookmask and dispatchmode. */
enum {
        HOOK_VMEVENT = 0x20,
        HOOK_GC = 0x40,
        HOOK_PROFILE = 0x80,
        DISPMODE_INS = 0x04,
        DISPMODE_PROF = 0x40
};

/* LuaJIT's handler asks for the hook in hookmask and then in the dispatch table. When a signal
 * meets the VM at work on that table, the VM overwrites the second with what it decided before the
 * signal. LuaJIT never tries again, since the first still stands; compiled code leaves at each of
 * its checks because of it, and may do nothing else for ever. So a request that a tick finds
 * unanswered is taken back: LuaJIT's handler then makes all of it anew. It does so only outside of
 * finalizers and VM events. */
LS_HANDLER static void renew_request(const char *global)
{
        volatile uint8_t *hookmask = (volatile uint8_t *)(uintptr_t)global +
                                     ls_vm_facts.hookmask_offset;
        uint8_t mask = *hookmask;

        if (!(mask & HOOK_PROFILE) || mask & (HOOK_VMEVENT | HOOK_GC))
                return;
        hookmask[1] &= (uint8_t)~(DISPMODE_INS | DISPMODE_PROF);
        *hookmask = (uint8_t)(mask & ~HOOK_PROFILE);
}

static void add_pending(struct ls_sampler *s, enum ls_vmstate state, uint32_t n, uint32_t delayed)
{
        atomic_fetch_add_explicit(&s->pending[state], n, memory_order_relaxed);
        if (delayed)
                atomic_fetch_add_explicit(&s->delayed, delayed, memory_order_relaxed);
}

/* Asks for the hook, which will find the ticks; not while the last one is being paid for. */
static void ask_for_hook(struct ls_sampler *s, const char *global, enum ls_vmstate state,
                         uint32_t n, uint64_t cpu)
{
        add_pending(s, state, n, n - 1);
        if (!ls_profiler.trigger)
                return;
        if (cpu < s->rest_until_ns) {
                ls_lose(LS_LOSS_BUSY, n);
                return;
        }
        if (ls_vm_facts.hookmask_offset)
                renew_request(global);
        ls_profiler.trigger(SIGPROF);
}

struct running {                        /* a VM that has a C frame on this thread's stack */
        const struct ls_vm *vm;
        const char *global;
        const lua_State *L;
        uintptr_t cframe;
};

/* On a stack that is none of those that the thread was made with a C frame is taken to be no
 * further away: beyond may be another such stack, whose code waits. */
#define OTHER_STACK (64u << 10)

static int is_on_stack(const struct ls_thread *t, uintptr_t p)
{
        return p >= t->stack_low && p < t->stack_high;
}

/* How near a C frame is: 0 = it is not of the code that was interrupted. */
static int is_here(const struct ls_thread *t, uintptr_t sp, uintptr_t cframe)
{
        int sp_in = is_on_stack(t, sp), cf_in = is_on_stack(t, cframe);

        if (cframe >= sp && (sp_in ? cf_in : cframe - sp < OTHER_STACK))
                return 2;
        return cf_in && !sp_in;         /* a handler of the program's, on a stack of its own, over
                                         * code on this one */
}

#define NEAR_WORDS 256u /* of the stack, in which the VM's C frame lies at most ticks */

/* A C frame holds the lua_State that runs in it. */
__attribute__((no_sanitize_address)) /* other functions' frames */
static int
has_word(const struct ls_thread *t, struct ls_guard *g, uintptr_t sp, const void *a, const void *b)
{
        const void *const *word = (const void *const *)(sp & ~(uintptr_t)7), *const *end =
                                                                                     word +
                                                                                     NEAR_WORDS;
        uintptr_t high = is_on_stack(t, sp) ? t->stack_high : (sp | 4095) + 1;

        if ((uintptr_t)end > high)
                end = (const void *const *)high;
        for (int readable = ls_guard_reads_wild(g, word, 8); readable && word < end; word++)
                if (*word == a || *word == b)
                        return 1;
        return 0;
}

/* Of a VM that another thread has run last cur_L is not read: that thread may free it at any time,
 * also between a question whether it can be read and the reading. The main lua_State goes with the
 * VM alone. Returns 0 when the VM does not run on this thread, or lies too deep in its stack to
 * tell. */
static int may_run_here(const struct ls_thread *t, struct ls_guard *g, uintptr_t sp,
                        const struct running *r)
{
        uintptr_t cframe;

        if (!ls_guard_reads(g, r->vm->main, LS_L_CFRAME + 8))
                return 0;
        cframe = (uintptr_t)ls_cframe_of(r->vm->main);
        if (is_on_stack(t, cframe))
                return 1;
        if (is_on_stack(t, sp) && (cframe || r->L == r->vm->main))
                return 0;
        return has_word(t, g, sp, r->L, r->vm->main);
}

/* The VM of this slot, if it runs on this thread: 0 = no, 2 = just here. */
static int runs_here(const struct ls_thread *t, struct ls_guard *g, uint32_t slot, uintptr_t sp,
                     struct running *ret)
{
        const struct ls_thread *closing;

        ret->vm = &ls_vms[slot];
        atomic_store_explicit(&ls_vm_readers[t->index], ret->vm, memory_order_seq_cst);
        ret->global = atomic_load_explicit(&ret->vm->global, memory_order_seq_cst);
        if (!ret->global)
                return 0;
        /* lua_close frees it; finalizers run before */
        closing = atomic_load_explicit(&ret->vm->closing, memory_order_seq_cst);
        /* and a host may drop the memory of a VM that it never closed */
        if ((closing && closing != t) ||
            !ls_guard_reads(g, ret->global + ls_vm_facts.main_offset - 8, 8) ||
            !ls_guard_reads(g, ret->global + ls_vm_facts.cur_L_offset, 16))
                return 0;
        ret->L = LS_READ(const lua_State *const volatile, ret->global, ls_vm_facts.cur_L_offset);
        if (!ret->L || ((uintptr_t)ret->L & 7))
                return 0;
        if (LS_ITSELF &&
            atomic_load_explicit(&ret->vm->runner, memory_order_relaxed) != t->thread_id &&
            !may_run_here(t, g, sp, ret))
                return 0;
        if (!ls_guard_reads(g, ret->L, LS_L_CFRAME + 8))
                return 0;
        ret->cframe = (uintptr_t)ls_cframe_of(ret->L);
        /* A C function that has run a coroutine with lua_resume or lua_call: until it returns,
         * cur_L is that coroutine. */
        if (!ret->cframe && ret->L != ret->vm->main &&
            ls_guard_reads(g, ret->vm->main, LS_L_CFRAME + 8)) {
                ret->L = ret->vm->main;
                ret->cframe = (uintptr_t)ls_cframe_of(ret->L);
        }
        return ret->cframe ? is_here(t, sp, ret->cframe) : 0;
}

#define LOOK_AT_ALL 64u /* with more VMs the one that ran last is taken when it runs still */

/* The VM that the interrupted code runs in: of several the innermost. The thread is noted as its
 * reader. */
static int find_vm(struct ls_thread *t, struct ls_guard *g, uintptr_t sp, struct running *ret)
{
        uint32_t n = atomic_load_explicit(&ls_vms_used, memory_order_acquire);
        const struct ls_vm *last = t->sampler->last_vm;
        struct running r;
        int best = 0, how;

        if (n > LOOK_AT_ALL && last && runs_here(t, g, (uint32_t)(last - ls_vms), sp, ret) == 2)
                return 1;
        for (uint32_t i = 0; i < n; i++) {
                if (!atomic_load_explicit(&ls_vms[i].global, memory_order_relaxed))
                        continue;
                how = runs_here(t, g, i, sp, &r);
                if (how > best || (how && how == best && r.cframe < ret->cframe)) {
                        best = how;
                        *ret = r;
                }
        }
        if (!best)
                return 0;
        /* the slot may have been left meanwhile: then its VM is gone */
        atomic_store_explicit(&ls_vm_readers[t->index], ret->vm, memory_order_seq_cst);
        return atomic_load_explicit(&ret->vm->global, memory_order_seq_cst) == ret->global;
}

static void regs_of(const ucontext_t *uc, struct ls_regs *r)
{
        const greg_t *g = uc->uc_mcontext.gregs;

        *r = (struct ls_regs){
                (uintptr_t)g[REG_RIP], (uintptr_t)g[REG_RSP], (uintptr_t)g[REG_RBP],
                (uintptr_t)g[REG_RBX], (uintptr_t)g[REG_RDX], (uintptr_t)g[REG_R12],
                (uintptr_t)g[REG_R13], (uintptr_t)g[REG_R14], (uintptr_t)g[REG_R15],
        };
}

/* Time that the VM's state calls that of C functions or of the interpreter, and is the
 * compiler's. */
static void to_jit(struct ls_ticks *ticks)
{
        ticks->weight[LS_VMSTATE_JIT] += ticks->weight[LS_VMSTATE_C] +
                                         ticks->weight[LS_VMSTATE_INTERPRETED];
        ticks->weight[LS_VMSTATE_C] = ticks->weight[LS_VMSTATE_INTERPRETED] = 0;
}

int ls_is_own_function(const char *fn)
{
        uintptr_t addr;

        if (fn == LS_WFN_RESUMED_BY_C || LS_READ(uint8_t, fn, LS_FN_FFID) != LS_FFID_C)
                return 0;
        addr = LS_READ(uintptr_t, fn, LS_FN_ADDR);
        return addr && (addr == ls_jit_functions[0] || addr == ls_jit_functions[1]);
}

/* 1 when a blocked thread, seen from outside, waits in a C function or in a function that compiled
 * code has called: then no object of the VM is half made. */
static int is_whole_blocked(const struct ls_ticks *ticks, const struct ls_top *top,
                            enum ls_vmstate state, int place)
{
        if (ticks->event != LS_EVENT_WALL || !top->exact)
                return 0;
        return place == LS_JIT_CALLED_OUT || (state == LS_VMSTATE_C && !top->in_trace &&
                                              !ls_fn_is_lua(ls_gcptr(LS_GET(top->base[-2]))));
}

/* Reads the stack at this instant and sends it. Returns 0, or -1 when it was not sent. */
static int walk(struct ls_thread *t, const struct running *r, const struct ls_regs *regs,
                enum ls_vmstate state, struct ls_ticks *ticks)
{
        struct ls_sampler *s = t->sampler;
        struct ls_walk *w = &s->walks[s->current];
        struct ls_moment m = { .vm = r->vm,
                               .L = r->L,
                               .regs = s->native ? regs : NULL,
                               .jit_offset = LS_JIT_NO_OFFSET };
        const uint64_t *jit_base = NULL;
        struct ls_top top;
        int error, place = 0, in_code;

        s->at_hand = *ticks;
        w->trusted = 0;
        if (ls_vm_facts.jit_base_offset)
                jit_base = LS_READ(const uint64_t *const volatile, r->global,
                                   ls_vm_facts.jit_base_offset);
        if (jit_base && r->vm->jit && ls_jit_find(r->vm, t, &w->guard, r->global, regs->ip))
                place = ls_jit_locate(r->vm, r->L, regs->ip, regs->sp, &m.jit_id, &m.jit_offset);
        if (place == LS_JIT_CALLED_OUT && m.jit_offset != LS_JIT_NO_OFFSET)
                m.jit_callee = ls_jit_callee(r->vm->jit, &w->guard, r->global, jit_base, m.jit_id,
                                             m.jit_offset);
        in_code = place == LS_JIT_IN_TRACE ||
                  (jit_base && !place && ls_jit_in_running(&w->guard, r->global, regs->ip));
        if (in_code)
                top = (struct ls_top){ .base = jit_base, .exact = 1, .in_trace = 1 };
        else
                ls_walk_top(w, r->L, jit_base, state == LS_VMSTATE_C, regs, &top);
        /* LuaJIT leaves the state at C when it has told our handler of a recorded bytecode, and
         * goes on compiling. */
        if (state == LS_VMSTATE_C && top.base && !top.in_asm && !top.in_trace &&
            ls_fn_is_lua(ls_gcptr(LS_GET(top.base[-2]))))
                to_jit(ticks);
        m.whole = top.in_asm || in_code || is_whole_blocked(ticks, &top, state, place);
        if (top.in_trace && (!place || m.jit_offset == LS_JIT_NO_OFFSET)) {
                ls_lose(LS_LOSS_TRACE_UNKNOWN, ticks->sum);
                m.flags |= LS_SAMPLE_NO_LINE;
        }
        w->trusted = LS_ITSELF && m.whole;
        error = top.base ? ls_walk_from(w, r->L, &top) : -EBADMSG;
        if (error == -EBADMSG) {        /* a frame that is half made: from the last one that was
                                         * saved, then */
                w->trusted = 0;
                top.exact = 0;
                error = ls_walk_saved(w, r->L);
        }
        w->trusted = LS_ITSELF && m.whole;
        if (error) {
                ls_lose(LS_LOSS_BAD_STACK, ticks->sum);
                return -1;
        }
        if (w->n > 1 && ls_is_own_function(w->frames[0].fn)) {
                to_jit(ticks);
                ls_walk_drop_top(w);
        }
        if (!w->n)
                return ls_sample_send_pseudo(t, r->vm, "[no Lua function]", m.regs, ticks);
        if (!top.exact)
                ls_lose(LS_LOSS_TOP_GUESSED, 1);
        error = ls_sample_send(t, &m, ticks);
        s->at_hand.sum = 0;
        ls_sample_background(t, m.whole ? r->L : NULL, ticks->cpu_ns);
        return error;
}

/* Nothing of the VM can be read: on its thread the hook is asked for, which may come or not. */
static void through_api(struct ls_thread *t, uint32_t n, uint64_t now, uint64_t cpu)
{
        struct ls_sampler *s = t->sampler;

        atomic_store_explicit(&s->last_time_ns, now, memory_order_relaxed);
        atomic_fetch_add_explicit(&t->ring->ticks, n, memory_order_relaxed);
        if (atomic_load_explicit(&ls_profiler.taken, memory_order_relaxed))
                ls_lose(LS_LOSS_APP_PROFILER, n);
        else if (atomic_load_explicit(&ls_profiler.vm, memory_order_relaxed) &&
                 ls_profiler.thread_id == t->thread_id)
                ask_for_hook(s, NULL, LS_VMSTATE_INTERPRETED, n, cpu);
        else
                atomic_fetch_add_explicit(&s->outside, n, memory_order_relaxed);
}

#define HEAP_STEP 16u                   /* of the heap: a smaller change is not sent */

void ls_tick_heap(struct ls_thread *t, struct ls_guard *guard, struct ls_vm *vm, const char *global,
                  uint64_t now)
{
        struct ls_rec_heap rec = { .time_ns = now, .vm_id = vm->vm_id };
        uint64_t moved;
        uint16_t state;
        char *body;

        if (!ls_vm_facts.collector ||
            !ls_guard_reads(guard, global + LS_G_TOTAL, LS_G_COLLECTOR_END - LS_G_TOTAL))
                return;
        state = LS_READ(const volatile uint16_t, global, LS_G_WHITE);
        rec.total = LS_READ(const volatile uint64_t, global, LS_G_TOTAL);
        moved = rec.total > vm->heap_total ? rec.total - vm->heap_total
                                           : vm->heap_total - rec.total;
        if (vm->heap_key == ls_agent.shm->generation && state == vm->heap_state &&
            moved <= vm->heap_total / HEAP_STEP)
                return;
        rec.threshold = LS_READ(const volatile uint64_t, global, LS_G_THRESHOLD);
        rec.white = (uint8_t)(state & LS_GC_WHITES);
        rec.phase = (uint8_t)(state >> 8);
        body = ls_ring_reserve(t->ring, LS_REC_HEAP, sizeof rec, 0);
        if (!body)
                return;
        memcpy(body, &rec, sizeof rec);
        ls_ring_commit(t->ring, body);
        vm->heap_key = ls_agent.shm->generation;
        vm->heap_total = rec.total;
        vm->heap_state = state;
}

LS_HANDLER int ls_tick_has_own_heap(const struct ls_vm *vm, const char *global)
{
        const void *allocf = LS_READ(const void *, global, LS_G_ALLOCF);

        if (allocf == ls_vm_facts.heap_alloc || (allocf && allocf == vm->own_alloc))
                return 1;
        atomic_store(&ls_heap_is_watched, 0);
        return 0;
}

/* Begins to look at memory: what lies on the thread's stack is there. The guard of the walk at hand
 * is that of the code which the tick has met, while it is busy: it may stand between a question
 * and the reading. */
static struct ls_guard *begin_guard(struct ls_thread *t, const struct ls_regs *regs)
{
        struct ls_sampler *s = t->sampler;
        struct ls_guard *guard = t->busy ? &s->aside : &s->walks[s->current].guard;

        ls_guard_begin(guard);
        if (regs->sp >= t->stack_low && regs->sp < t->stack_high) {
                guard->sure[0].low = regs->sp;
                guard->sure[0].high = t->stack_high;
        }
        return guard;
}

static void say_that_it_runs(const struct ls_thread *t, const struct running *r)
{
        if (ls_tick_vm_runs && !t->busy)
                ls_tick_vm_runs(&ls_vms[r->vm - ls_vms], r->global);
}

/* A tick that is no sample. */
LS_HANDLER static void only_look(struct ls_thread *t, const ucontext_t *uc)
{
        struct running r;
        struct ls_regs regs;

        if (!ls_vm_facts.ok || t->busy)
                return;
        regs_of(uc, &regs);
        if (find_vm(t, begin_guard(t, &regs), regs.sp, &r))
                say_that_it_runs(t, &r);
        atomic_store_explicit(&ls_vm_readers[t->index], NULL, memory_order_release);
}

/* n ticks have passed on this thread: whose are they? */
static void account(struct ls_thread *t, const ucontext_t *uc, uint32_t n, uint64_t now,
                    uint64_t cpu)
{
        struct ls_sampler *s = t->sampler;
        struct ls_guard *guard;
        struct running r;
        struct ls_regs regs;
        enum ls_vmstate state;

        if (!ls_vm_facts.ok) {
                through_api(t, n, now, cpu);
                return;
        }
        regs_of(uc, &regs);
        guard = begin_guard(t, &regs);
        if (!find_vm(t, guard, regs.sp, &r)) {
                s->last_vm = NULL;
                atomic_fetch_add_explicit(&t->ring->ticks, n, memory_order_relaxed);
                atomic_store_explicit(&s->last_time_ns, now, memory_order_relaxed);
                atomic_fetch_add_explicit(&s->outside, n, memory_order_relaxed);
                if (!t->busy)
                        ls_sample_flush_outside(t, s->native ? &regs : NULL);
                return;
        }
        s->last_vm = r.vm;
        say_that_it_runs(t, &r);
        if (atomic_load_explicit(&r.vm->runner, memory_order_relaxed) != t->thread_id)
                atomic_store_explicit(&ls_vms[r.vm - ls_vms].runner, t->thread_id,
                                      memory_order_relaxed);
        if (r.vm->paused) {
                atomic_fetch_add_explicit(&t->ring->paused_cpu_ns, n * ls_agent.shm->interval_ns,
                                          memory_order_relaxed);
                return;
        }
        /* It may have been given another allocator since it was made. */
        if (guard->as_of && (!ls_guard_reads(guard, r.global + LS_G_ALLOCF, 8) ||
                             !ls_tick_has_own_heap(r.vm, r.global)))
                ls_guard_begin(guard);
        state = ls_tick_vmstate(
                LS_READ(const volatile int32_t, r.global, ls_vm_facts.vmstate_offset));
        atomic_store_explicit(&s->last_time_ns, now, memory_order_relaxed);
        atomic_fetch_add_explicit(&t->ring->ticks, n, memory_order_relaxed);
        ls_tick_heap(t, guard, &ls_vms[r.vm - ls_vms], r.global, now);
        if (r.vm->engine == LS_ENGINE_HOOK &&
            atomic_load_explicit(&ls_profiler.vm, memory_order_relaxed) == r.vm) {
                ask_for_hook(s, r.global, state, n, cpu);
        } else if (r.vm->engine == LS_ENGINE_HOOK) {
                ls_lose(atomic_load_explicit(&ls_profiler.taken, memory_order_relaxed)
                                ? LS_LOSS_APP_PROFILER
                                : LS_LOSS_OTHER_VM,
                        n);
        } else {
                add_pending(s, t->busy && r.vm->jit ? LS_VMSTATE_JIT : state, n, n - 1);
                if (t->busy || cpu < s->rest_until_ns) {
                        ls_lose(LS_LOSS_BUSY, n);
                } else {
                        struct ls_ticks ticks;

                        ls_ticks_take(s, &ticks);
                        walk(t, &r, &regs, state, &ticks);
                }
                s->at_hand.sum = 0;
        }
}

int ls_tick_look(struct ls_thread *t, const struct ls_regs *regs, struct ls_ticks *ticks)
{
        struct ls_guard *guard = &t->sampler->walks[t->sampler->current].guard;
        struct running r;
        enum ls_vmstate state;

        ls_guard_begin(guard);
        if (!find_vm(t, guard, regs->sp, &r)) {
                ticks->weight[LS_VMSTATE_C] = ticks->sum;
                return ls_sample_send_pseudo(t, NULL, "[outside Lua]", NULL, ticks);
        }
        if (r.vm->paused)
                return 1;
        state = ls_tick_vmstate(
                LS_READ(const volatile int32_t, r.global, ls_vm_facts.vmstate_offset));
        ticks->weight[state] = ticks->sum;
        return walk(t, &r, regs, state, ticks);
}

int ls_tick_look_suspended(struct ls_thread *t, const struct ls_vm *vm, const lua_State *L,
                           struct ls_ticks *ticks)
{
        struct ls_sampler *s = t->sampler;
        struct ls_walk *w = &s->walks[s->current];
        struct ls_moment m = { .vm = vm, .L = L, .whole = 1, .jit_offset = LS_JIT_NO_OFFSET };

        ls_guard_begin(&w->guard);
        w->trusted = 0;
        if (ls_walk_saved(w, L) || !w->n)
                return -1;
        ticks->weight[LS_VMSTATE_C] = ticks->sum;
        return ls_sample_send(t, &m, ticks);
}

LS_HANDLER void ls_tick_rest(struct ls_sampler *s, uint64_t took_ns, uint64_t cpu)
{
        if (took_ns > ls_agent.shm->interval_ns / 8)
                s->rest_until_ns = cpu + 4 * took_ns;
}

LS_HANDLER static void tick(struct ls_thread *t, const ucontext_t *uc)
{
        struct ls_shm *shm = ls_agent.shm;
        struct ls_sampler *s = t->sampler;
        uint64_t now = ls_now_ns(), cpu = ls_thread_cpu_ns();
        uint64_t last = atomic_load_explicit(&s->last_cpu_ns, memory_order_relaxed);
        uint64_t passed = s->remainder_ns + (cpu > last ? cpu - last : 0);
        uint64_t ticks = passed / shm->interval_ns, took;
        int paused = ls_sampler_paused(s, shm);

        s->remainder_ns = passed - ticks * shm->interval_ns;
        atomic_store_explicit(&s->last_cpu_ns, cpu, memory_order_relaxed);
        watch_recorder(s, now);
        if (ticks > UINT32_MAX / 2)     /* decades; a broken clock */
                ticks = 0;
        if (ticks && paused) {
                atomic_fetch_add_explicit(&t->ring->paused_cpu_ns, ticks * shm->interval_ns,
                                          memory_order_relaxed);
        } else if (ticks && atomic_load_explicit(&shm->recording, memory_order_relaxed)) {
                account(t, uc, (uint32_t)ticks, now, cpu);
                atomic_store_explicit(&ls_vm_readers[t->index], NULL, memory_order_release);
        }
        atomic_store_explicit(&t->ring->last_cpu_ns, cpu, memory_order_relaxed);
        took = ls_own_ns(now, cpu);
        ls_tick_rest(s, took, cpu);
        atomic_fetch_add_explicit(&shm->own_handler_ns, took, memory_order_relaxed);
}

#define NESTED_MOST 100u

/* A handler of the program's may interrupt this one, and leave it by siglongjmp: the next tick
 * finds it begun and not ended. What it was about to send is sent anew. The other reason is that
 * the handler which interrupted this one lets ticks through: then it lies above this one in the
 * stack, and the tick is left to the next. Returns 0 then. */
LS_HANDLER static int enter(struct ls_thread *t, uintptr_t here)
{
        struct ls_sampler *s = t->sampler;

        if (s->inside) {
                if (here < s->inside && s->nested++ < NESTED_MOST)
                        return 0;
                atomic_store_explicit(&t->ring->in_write, s->in_write, memory_order_release);
                atomic_store_explicit(&ls_vm_readers[t->index], NULL, memory_order_release);
                for (int i = 0; s->at_hand.sum && i < LS_NVMSTATES; i++)
                        add_pending(s, (enum ls_vmstate)i, s->at_hand.weight[i], 0);
                ls_lose(LS_LOSS_BUSY, s->at_hand.sum);
                s->at_hand.sum = 0;
                ls_sample_alone(t);
        }
        s->nested = 0;
        s->in_write = atomic_load_explicit(&t->ring->in_write, memory_order_relaxed);
        s->inside = here;
        return 1;
}

#define RESUMED_NS                                                                                 \
        100000u /* a thread that the recorder's own thread has interrupted goes on sooner */
#define WAITED_MOST 16u                 /* intervals of CPU time that may be left to later ticks */

/* 1 at the end of a system call: the instruction leaves its own end in rcx; one that begins anew is
 * two bytes before it. */
LS_HANDLER static int is_behind_syscall(const ucontext_t *uc)
{
        uint64_t ip = (uint64_t)uc->uc_mcontext.gregs[REG_RIP],
                 cx = (uint64_t)uc->uc_mcontext.gregs[REG_RCX];

        return cx == ip || cx == ip + 2;
}

/* A tick that the recorder sent while the thread waited for its turn comes when it runs again:
 * where it was made to wait. When that is a system call it is no place like others, since the
 * kernel looks there whether the turn is over; such places would have a share that they did not
 * use. 1 when this is such a tick; its time is the next one's. Those that perf sends come while the
 * thread runs. */
LS_HANDLER static int has_waited(struct ls_thread *t, const siginfo_t *info, const ucontext_t *uc)
{
        struct ls_sampler *s = t->sampler;
        uint64_t sent_cpu = atomic_load_explicit(&t->ring->sent_cpu_ns, memory_order_relaxed), cpu,
                 last, passed;

        if (!sent_cpu ||
            (info->si_code != SI_TKILL && (info->si_code != SI_USER || info->si_pid)) ||
            !is_behind_syscall(uc) ||
            ls_now_ns() - atomic_load_explicit(&t->ring->sent_ns, memory_order_relaxed) <
                    RESUMED_NS)
                return 0;
        /* One that waited then has used since what the way out of the system call takes; one that
         * ran, all that time. getrusage would tell the same, and end programs whose sandbox forbids
         * it. */
        cpu = ls_thread_cpu_ns();
        if (cpu - sent_cpu >= RESUMED_NS)
                return 0;
        last = atomic_load_explicit(&s->last_cpu_ns, memory_order_relaxed);
        passed = s->remainder_ns + cpu - last;
        if (passed >= WAITED_MOST * ls_agent.shm->interval_ns)
                return 0;
        ls_lose(LS_LOSS_WAITED, 1);
        return 1;
}

void (*ls_tick_foreign)(int sig, siginfo_t *info, void *context);
struct ls_thread *(*ls_tick_newcomer)(const void *context);
int (*ls_tick_has_data)(void);
void (*ls_tick_vm_runs)(struct ls_vm *vm, const char *global);
volatile pid_t ls_tick_recorder;
volatile pid_t ls_tick_past_recorders[LS_PAST_RECORDERS];

/* 1 when the program or a stranger sent it. The pid is 0 when the recorder is in another pid
 * namespace, and when the kernel had no room to queue what belongs to the signal (ulimit -i 0):
 * then it looks like kill's. */
LS_HANDLER static int is_foreign(const siginfo_t *info)
{
        if (info->si_code != SI_USER && info->si_code != SI_QUEUE && info->si_code != SI_TKILL)
                return 0;
        for (unsigned i = 0; i < LS_PAST_RECORDERS; i++)
                if (info->si_pid == ls_tick_past_recorders[i])
                        return 0;
        return info->si_pid != 0 && info->si_pid != ls_tick_recorder;
}

/* What a thread with thread data does: errno is there, too. */
LS_HANDLER __attribute__((noinline)) static void handle(int sig, siginfo_t *info, void *context)
{
        int saved = errno;
        struct ls_shm *shm = ls_agent.shm;
        struct ls_thread *t;

        if (ls_tick_foreign && is_foreign(info)) {
                ls_tick_foreign(sig, info, context);
                errno = saved;
                return;
        }
        t = ls_thread_self();
        if (!t && ls_tick_newcomer && ls_agent_live())
                t = ls_tick_newcomer(context);
        if (t && t->sampler->ready) {
                if (shm->bare_tick != 1 && enter(t, (uintptr_t)__builtin_frame_address(0))) {
                        if (shm->bare_tick)
                                only_look(t, context);
                        else if (!has_waited(t, info, context))
                                tick(t, context);
                        t->sampler->inside = 0;
                }
                atomic_fetch_add_explicit(&t->ring->signals, 1, memory_order_relaxed);
                atomic_fetch_add_explicit(&t->ring->ticks_handled, 1, memory_order_release);
        }
        errno = saved;
}

LS_HANDLER void ls_tick_handler(int sig, siginfo_t *info, void *context)
{
        if (!ls_tick_has_data || ls_tick_has_data())
                handle(sig, info, context);
}
