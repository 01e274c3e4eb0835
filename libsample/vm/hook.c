/* One sample of the hook engine: LuaJIT's profile hook calls here at a safe point after a tick.
 * Reads the stack and gives it the ticks that passed. Normal context of the sampled thread; a
 * tick may interrupt it. */

#include "libsample/vm/hook.h"

#include <errno.h>

#include "libsample/agent.h"
#include "libsample/handler/sample.h"
#include "libsample/handler/tick.h"
#include "libsample/lua_debug.h"
#include "libsample/vm/hook_api.h"

#define API_LEVELS       200                    /* lua_getstack counts from the top */

/* The line of a Lua frame whose pc could not be read: by Lua's own means. */
static uint32_t api_line(const struct ls_moment *m, const struct ls_walk *w, size_t i)
{
        lua_State *L = (lua_State *)(uintptr_t)m->L;
        struct lua_Debug ar;

        if (i > w->body || i >= API_LEVELS || !ls_lua.lua_getstack(L, (int)i, &ar) ||
            !ls_lua.lua_getinfo(L, "l", &ar) || ar.currentline < 0)
                return 0;
        return (uint32_t)ar.currentline;
}

/* Places of instructions in LuaJIT's numbering, from FORI. */
enum { OP_CALLM = -12, OP_CALL = -11, OP_CALLMT = -10, OP_CALLT = -9, OP_ITERC = -8, OP_JMP = 11 };

static int op_of(uint32_t ins)
{
        return (int)(ins & 0xff) - ls_vm_facts.op_fori;
}

#define LONG_FUNCTION 4096u             /* instructions; a longer one is not searched for jumps */

/* 1 when a jump leads to the instruction at pos. */
static int is_jumped_to(const char *pt, uint32_t pos)
{
        const uint32_t *bc = (const uint32_t *)(const void *)(pt + LS_PT_SIZE);
        uint32_t n = LS_READ(uint32_t, pt, LS_PT_SIZEBC);

        for (uint32_t i = 1; n <= LONG_FUNCTION && i < n; i++)
                if (op_of(bc[i]) == OP_JMP && i + 1 + (bc[i] >> 16) - 0x8000 == pos)
                        return 1;
        return 0;
}

/* The interpreter calls the hook before the next instruction; what took the time is the one
 * before. For time in C code and in the collector that is the instruction above it; for time in
 * the interpreter itself (some builtins run there) this is known only behind a call that nothing
 * jumps over. Compiled code has its own checks. */
static void step_back(struct ls_walk *w, const struct ls_ticks *t)
{
        const char *pt, *pc = w->frames[0].pc;
        uint32_t in_c = t->weight[LS_VMSTATE_C] + t->weight[LS_VMSTATE_GC], pos;
        int op;

        if (!pc || 2 * t->weight[LS_VMSTATE_NATIVE] >= t->sum)
                return;
        pt = ls_fn_proto(w->frames[0].fn);
        pos = (uint32_t)((pc - (pt + LS_PT_SIZE)) / 4) - 1;
        if (pos < 2)
                return;
        op = op_of(LS_READ(uint32_t, pc, -8));
        if (2 * in_c > t->sum
                    ? op > OP_ITERC || op == OP_CALLMT || op == OP_CALLT
                    : (op != OP_CALLM && op != OP_CALL && op != OP_ITERC) || is_jumped_to(pt, pos))
                return;
        w->frames[0].pc = pc - 4;
}

static void sample(struct ls_thread *t, const struct ls_vm *vm, lua_State *L)
{
        struct ls_sampler *s = t->sampler;
        struct ls_walk *w = &s->walks[s->current];
        struct ls_moment m = {
                .vm = vm, .L = L, .whole = 1, .line_of = api_line, .jit_offset = LS_JIT_NO_OFFSET
        };
        struct ls_ticks ticks;
        int error;

        ls_sample_flush_outside(t, NULL);
        ls_ticks_take(s, &ticks);
        if (!ticks.sum || !atomic_load_explicit(&ls_agent.shm->recording, memory_order_relaxed))
                return;
        error = ls_walk_stack(w, L);
        if (error || !w->n) {
                ls_lose(error ? LS_LOSS_BAD_STACK : LS_LOSS_NO_STACK, ticks.sum);
        } else {
                step_back(w, &ticks);
                if (ls_agent.shm->scope != LS_SCOPE_LINE && ticks.weight[LS_VMSTATE_NATIVE])
                        m.flags |= LS_SAMPLE_NO_LINE;
                ls_sample_send(t, &m, &ticks);
        }
        ls_sample_background(t, L, ticks.cpu_ns);
}

void ls_hook(void *data, lua_State *L, int samples, int vmstate)
{
        int saved = errno;
        struct ls_thread *t = ls_thread_self();
        const struct ls_vm *vm = ls_vm_facts.ok ? ls_vm_of(L) : atomic_load(&ls_profiler.vm);
        uint64_t now, tick_cpu, took;

        (void)data, (void)samples;
        if (!t || !vm || !t->sampler->ready || t->busy)
                return;
        now = ls_now_ns();
        tick_cpu = atomic_load_explicit(&t->sampler->last_cpu_ns, memory_order_relaxed);
        atomic_store_explicit(&t->ring->in_write, 0, memory_order_relaxed);
        ls_thread_enter(t);
        if (ls_vm_facts.ok)
                sample(t, vm, L);
        else
                ls_hook_api(t, vm, L, vmstate);
        ls_thread_leave(t);
        took = ls_own_ns(now, tick_cpu);
        ls_tick_rest(t->sampler, took, tick_cpu);
        atomic_fetch_add_explicit(&ls_agent.shm->own_hook_ns, took, memory_order_relaxed);
        errno = saved;
}
