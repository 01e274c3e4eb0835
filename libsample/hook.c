/* One sample: LuaJIT's profile hook calls here at a safe point after a tick. Reads the stack, sends what of it is
 * new, and gives it the ticks that passed. Normal context of the sampled thread; may be interrupted by the tick. */
#include <errno.h>

#include "libsample/coroutines.h"
#include "libsample/engine.h"
#include "libsample/lua_debug.h"
#include "libsample/names.h"
#include "libsample/sources.h"
#include "libsample/zones.h"

#define SEARCH_STEP_NS   UINT64_C(80000)        /* most of a search for names in one hook */
#define SEARCH_FREE_NS   UINT64_C(300000)       /* searches may take so much at once, */
#define SEARCH_SHARE     250                    /* and one part in so many of the program's CPU time */
#define BUILTINS_NS      UINT64_C(100000000)    /* between two looks at the libraries */
#define API_LEVELS       200                    /* lua_getstack counts from the top */

struct ticks {                          /* what the handler added up */
        uint32_t weight[LS_NVMSTATES];
        uint32_t sum, delayed;
        uint64_t time_ns, cpu_ns;
};

static struct ls_walk walks[2];         /* the sample at hand and the last one that was sent */
static unsigned current;
static size_t last_n;                   /* frames of the last one, 0 = the next one stands alone */

static void lose(enum ls_loss reason, uint64_t n)
{
        atomic_fetch_add_explicit(&ls_agent.shm->lost[reason], n, memory_order_relaxed);
}

static void take(struct ticks *t)
{
        t->sum = 0;
        for (int i = 0; i < LS_NVMSTATES; i++) {
                t->weight[i] = atomic_exchange_explicit(&ls_tick.pending[i], 0, memory_order_relaxed);
                t->sum += t->weight[i];
        }
        t->delayed = atomic_exchange_explicit(&ls_tick.delayed, 0, memory_order_relaxed);
        t->time_ns = atomic_load_explicit(&ls_tick.last_time_ns, memory_order_relaxed);
        t->cpu_ns = atomic_load_explicit(&ls_tick.last_cpu_ns, memory_order_relaxed);
}

/* Addresses are not enough: another function may be at that of a collected one. The line of a Lua frame without pc is
 * not known to be the same. */
static int same(const struct ls_wframe *a, const struct ls_wframe *b)
{
        if (a->fn != b->fn || a->pc != b->pc)
                return 0;
        if (a->fn == LS_WFN_RESUMED_BY_C || !ls_fn_is_lua(a->fn))
                return 1;
        return a->pc && LS_READ(const char *, ls_fn_proto(a->fn), LS_PT_CHUNKNAME) == b->chunkname &&
               ls_pt_shape(ls_fn_proto(a->fn)) == b->shape;
}

/* Root frames that equal those of the last sample sent. */
static size_t kept(const struct ls_walk *w, const struct ls_walk *last)
{
        size_t most = w->n < last_n ? w->n : last_n, n = 0;

        while (n < most && same(&w->frames[w->n - 1 - n], &last->frames[last_n - 1 - n]))
                n++;
        return n;
}

/* The line of a Lua frame whose pc could not be read: by Lua's own means. */
static uint32_t api_line(lua_State *L, const struct ls_walk *w, size_t i)
{
        struct lua_Debug ar;

        if (i > w->body || i >= API_LEVELS || !ls_lua.lua_getstack(L, (int)i, &ar) ||
            !ls_lua.lua_getinfo(L, "l", &ar) || ar.currentline < 0)
                return 0;
        return (uint32_t)ar.currentline;
}

/* Gives frame i its function id and line. Returns 0, or -1 when a definition did not fit. */
static int resolve(struct ls_ring *ring, lua_State *L, struct ls_walk *w, size_t i, uint64_t now)
{
        struct ls_wframe *f = &w->frames[i];
        uint32_t known = ls_functions_count();

        if (f->fn == LS_WFN_RESUMED_BY_C) {
                f->func_id = ls_function_pseudo(ring, "[resumed by C]");
                return f->func_id ? 0 : -1;
        }
        uint8_t ffid = LS_READ(uint8_t, f->fn, LS_FN_FFID);

        if (ffid > LS_FFID_C && !ls_builtin_name(ffid) && now - ls_engine.builtins_ns > BUILTINS_NS) {
                ls_engine.builtins_ns = now;
                ls_names_builtins(L);
        }
        f->func_id = ls_function_id(ring, f->fn, now);
        if (!f->func_id)
                return -1;
        if (ls_functions_count() != known)
                ls_names_from_stack(ring, L, w, i, ls_function_last());
        if (ffid == LS_FFID_LUA) {
                f->chunkname = LS_READ(const char *, ls_fn_proto(f->fn), LS_PT_CHUNKNAME);
                f->shape = ls_pt_shape(ls_fn_proto(f->fn));
                f->line = f->pc ? ls_pt_line(ls_fn_proto(f->fn), f->pc) : api_line(L, w, i);
        }
        return 0;
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

/* The interpreter calls the hook before the next instruction; what took the time is the one before. For time in C
 * code and in the collector that is the instruction above it; for time in the interpreter itself (some builtins run
 * there) this is known only behind a call that nothing jumps over. Compiled code has its own checks. */
static void step_back(struct ls_walk *w, const struct ticks *t)
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
        if (2 * in_c > t->sum ? op > OP_ITERC || op == OP_CALLMT || op == OP_CALLT
                              : (op != OP_CALLM && op != OP_CALL && op != OP_ITERC) || is_jumped_to(pt, pos))
                return;
        w->frames[0].pc = pc - 4;
}

static struct ls_rec_sample *reserve(struct ls_ring *ring, size_t nframes)
{
        return ls_ring_reserve(ring, LS_REC_SAMPLE, sizeof(struct ls_rec_sample) + nframes * sizeof(struct ls_frame), 0);
}

static void fill(struct ls_rec_sample *rec, const struct ticks *t)
{
        memset(rec, 0, sizeof *rec);
        rec->time_ns = t->time_ns;
        rec->cpu_ns = t->cpu_ns;
        memcpy(rec->weight, t->weight, sizeof rec->weight);
        rec->kernel_delayed = t->delayed;
        rec->event = LS_EVENT_CPU;
        rec->vm_id = ls_engine.vm_id;
        if (ls_engine.in_region)
                rec->flags |= LS_SAMPLE_IN_REGION;
        if (ls_agent.shm->scope != LS_SCOPE_LINE && t->weight[LS_VMSTATE_NATIVE])
                rec->flags |= LS_SAMPLE_NO_LINE;
}

static void commit(struct ls_ring *ring, struct ls_rec_sample *rec, const struct ticks *t)
{
        struct ls_shm *shm = ls_agent.shm;

        if (t->delayed)
                lose(LS_LOSS_KERNEL_DELAYED, t->delayed);
        atomic_fetch_add_explicit(&shm->samples, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&shm->sample_ticks, t->sum, memory_order_relaxed);
        ls_ring_commit(ring, rec);
}

/* Which frames of the walk are sent: [0, leaf) and, after a pseudo frame, [root, n). leaf == root: all new ones. */
static void choose(const struct ls_ring *ring, size_t n, size_t *keep, size_t *leaf, size_t *root)
{
        size_t fits = (ls_ring_largest(ring) - sizeof(struct ls_rec_sample)) / sizeof(struct ls_frame);
        size_t depth = ls_agent.shm->depth;

        *leaf = *root = n - *keep;
        if (depth && n > depth) {
                *leaf = depth - depth / 4;
                *root = n - depth / 4;
        } else if (n - *keep > fits) {
                *leaf = fits / 2;
                *root = n - fits / 4;
        } else {
                return;
        }
        *keep = 0;
}

static uint32_t coroutine_of(struct ls_ring *ring, lua_State *L, const struct ls_walk *w, uint64_t now)
{
        const char *body = w->frames[w->body].fn;
        uint32_t id;

        if (L == ls_engine.L)
                return 0;
        id = ls_function_id(ring, body, now);
        return id ? ls_coroutine_id(ring, L, body, id, ls_engine.vm_id) : 0;
}

/* Sends the walk. Returns 0, or -1 when it does not fit. */
static int send(struct ls_ring *ring, lua_State *L, struct ls_walk *w, const struct ticks *t, uint64_t now)
{
        size_t keep = kept(w, &walks[!current]), leaf, root, n = 0;
        uint32_t cut_id = 0, coroutine, zone;
        struct ls_rec_sample *rec;
        struct ls_frame *out;

        choose(ring, w->n, &keep, &leaf, &root);
        for (size_t i = 0; i < w->n - keep; i = i + 1 == leaf && root > leaf ? root : i + 1)
                if (resolve(ring, L, w, i, now))
                        return -1;
        if (root > leaf && !(cut_id = ls_function_pseudo(ring, "[middle cut]")))
                return -1;
        coroutine = coroutine_of(ring, L, w, now);
        zone = ls_zone_id(ring, L);
        rec = reserve(ring, leaf + (root > leaf ? 1 + w->n - root : 0));
        if (!rec)
                return -1;
        fill(rec, t);
        rec->coroutine_id = coroutine;
        rec->zone_id = zone;
        rec->keep = (uint32_t)keep;
        out = (struct ls_frame *)(rec + 1);
        for (size_t i = 0; i < leaf; i++)
                out[n++] = (struct ls_frame){ w->frames[i].func_id, w->frames[i].line };
        if (root > leaf) {
                rec->flags |= LS_SAMPLE_MIDDLE_CUT;
                lose(LS_LOSS_MIDDLE_CUT, 1);
                out[n++] = (struct ls_frame){ cut_id, 0 };
                for (size_t i = root; i < w->n; i++)
                        out[n++] = (struct ls_frame){ w->frames[i].func_id, w->frames[i].line };
        }
        rec->nframes = (uint32_t)n;
        commit(ring, rec, t);
        /* Kept frames were not resolved again: what they are known by is that of the last sample. */
        for (size_t i = 1; i <= keep; i++) {
                w->frames[w->n - i].chunkname = walks[!current].frames[last_n - i].chunkname;
                w->frames[w->n - i].shape = walks[!current].frames[last_n - i].shape;
        }
        last_n = root > leaf ? 0 : w->n;
        current = !current;
        return 0;
}

/* A sample of one pseudo frame. */
static void send_pseudo(struct ls_ring *ring, const char *name, const struct ticks *t)
{
        uint32_t id = ls_function_pseudo(ring, name);
        struct ls_rec_sample *rec = id ? reserve(ring, 1) : NULL;

        if (!rec) {
                lose(LS_LOSS_RING_FULL, t->sum);
                return;
        }
        fill(rec, t);
        rec->nframes = 1;
        *(struct ls_frame *)(rec + 1) = (struct ls_frame){ id, 0 };
        last_n = 0;
        commit(ring, rec, t);
}

static void flush_outside(struct ls_ring *ring)
{
        struct ticks t = { .time_ns = atomic_load(&ls_tick.last_time_ns), .cpu_ns = atomic_load(&ls_tick.last_cpu_ns) };

        t.sum = t.weight[LS_VMSTATE_C] = atomic_exchange_explicit(&ls_tick.outside, 0, memory_order_relaxed);
        if (t.sum)
                send_pseudo(ring, "[outside Lua]", &t);
}

static void search_names(struct ls_ring *ring, const lua_State *L, const struct ticks *t)
{
        uint64_t credit = SEARCH_FREE_NS + (t->cpu_ns - ls_engine.cpu_start) / SEARCH_SHARE, now;

        if (!ls_names_wanted() || ls_engine.names_ns >= credit)
                return;
        credit -= ls_engine.names_ns;
        now = ls_now_ns();
        ls_names_search(ring, L, credit < SEARCH_STEP_NS ? credit : SEARCH_STEP_NS);
        ls_engine.names_ns += ls_now_ns() - now;
}

static void sample(struct ls_ring *ring, lua_State *L, uint64_t now)
{
        struct ls_walk *w = &walks[current];
        struct ticks t;
        int error;

        flush_outside(ring);
        take(&t);
        if (!t.sum)
                return;
        if (!atomic_load_explicit(&ls_agent.shm->recording, memory_order_relaxed))
                return;
        error = ls_walk_stack(w, L);
        if (error || !w->n) {
                lose(error ? LS_LOSS_BAD_STACK : LS_LOSS_NO_STACK, t.sum);
        } else {
                step_back(w, &t);
                if (send(ring, L, w, &t, now))
                        lose(LS_LOSS_RING_FULL, t.sum);
        }
        ls_sources_send_text(ring);
        search_names(ring, L, &t);
}

void ls_hook(void *data, lua_State *L, int samples, int vmstate)
{
        int saved = errno;
        struct ls_ring *ring = ls_ring_of_process();
        uint64_t now, tick_cpu;

        (void)data, (void)samples, (void)vmstate;
        if (!ring || !ls_tick.ready || !ls_tick_thread)
                return;
        now = ls_now_ns();
        tick_cpu = atomic_load_explicit(&ls_tick.last_cpu_ns, memory_order_relaxed);
        atomic_store_explicit(&ring->in_write, 0, memory_order_relaxed);
        sample(ring, L, now);
        atomic_fetch_add_explicit(&ls_agent.shm->own_hook_ns, ls_own_ns(now, tick_cpu), memory_order_relaxed);
        errno = saved;
}

void ls_hook_flush(void)
{
        struct ls_ring *ring = ls_ring_of_process();
        struct ticks t;

        if (!ring)
                return;
        flush_outside(ring);
        take(&t);
        if (t.sum)
                lose(LS_LOSS_NO_SAFE_POINT, t.sum);
}

void ls_hook_reset(void)
{
        last_n = 0;
}
