/* Who calls whom in the interpreter: for each instruction that calls and each function that it
 * calls a number, in a record of the log that is counted on. The stub of a function's header
 * (stubs.c) finds it in a cache; called by it when that does not have it, in the VM's own thread.
 *
 * The caller is the instruction of the innermost Lua function below the one that is called: where C
 * functions lie between, such as pcall, the one that called those. Compiled code needs none of
 * this: there the bytecode before a header is known (formats/exact/flow.c). */
#include <string.h>

#include "libsample/exact/private.h"
#include "libsample/handler/walk.h"
#include "libsample/pages.h"

#define DEEPEST 64u                     /* frames that are no Lua function's, one on the other */

struct edge { uint32_t caller, pos, callee; uint64_t *times; };

struct ls_exact_callers {
        struct ls_exact_cached cache[LS_EXACT_CACHE];
        struct edge *edges;             /* open addressing; times NULL = free */
        size_t n, room;                 /* room: a power of two */
        int full;                       /* the log is, or a fork's child has none */
        uint64_t unknown;               /* what has no record is counted here, and not read */
        unsigned protos_gone;           /* when the cache began */
};

struct ls_exact_callers *ls_exact_callers_new(void)
{
        struct ls_exact_callers *c = ls_pages_new(sizeof *c);

        if (!c)
                return NULL;
        c->room = 1024;
        c->edges = ls_pages_new(c->room * sizeof *c->edges);
        if (c->edges)
                return c;
        ls_pages_free(c, sizeof *c);
        return NULL;
}

void ls_exact_callers_free(struct ls_exact_callers *c)
{
        if (!c)
                return;
        ls_pages_free(c->edges, c->room * sizeof *c->edges);
        ls_pages_free(c, sizeof *c);
}

struct ls_exact_cached *ls_exact_cache(struct ls_exact_callers *c)
{
        return c->cache;
}

static struct edge *slot_of(struct edge *edges, size_t room, uint32_t caller, uint32_t pos,
                            uint32_t callee)
{
        uint64_t hash = ((uint64_t)caller << 32 | callee) * UINT64_C(0x9e3779b97f4a7c15) +
                        pos * UINT64_C(0xc2b2ae3d27d4eb4f);

        for (size_t i = (size_t)(hash ^ hash >> 32);; i++) {
                struct edge *e = &edges[i & (room - 1)];

                if (!e->times || (e->caller == caller && e->pos == pos && e->callee == callee))
                        return e;
        }
}

static int make_room(struct ls_exact_callers *c)
{
        struct edge *bigger;

        if (2 * c->n < c->room)
                return 0;
        bigger = ls_pages_new(2 * c->room * sizeof *bigger);
        if (!bigger)
                return -1;
        for (size_t i = 0; i < c->room; i++) {
                const struct edge *e = &c->edges[i];

                if (e->times)
                        *slot_of(bigger, 2 * c->room, e->caller, e->pos, e->callee) = *e;
        }
        ls_pages_free(c->edges, c->room * sizeof *c->edges);
        c->edges = bigger;
        c->room *= 2;
        return 0;
}

/* Its counter, in a record of the log. NULL = there is no room. */
static uint64_t *begin_record(uint32_t caller, uint32_t pos, uint32_t callee)
{
        struct ls_exact_calls *rec = ls_exact_log_begin(sizeof *rec);

        if (!rec)
                return NULL;
        rec->rec.kind = LS_EXACT_CALLS;
        rec->caller = caller;
        rec->pos = pos;
        rec->callee = callee;
        rec->times = 0;
        ls_exact_log_end();
        return &rec->times;
}

static uint64_t *times_of(struct ls_exact_callers *c, uint32_t caller, uint32_t pos,
                          uint32_t callee)
{
        struct edge *e;
        uint64_t *times;

        if (!caller || !callee || make_room(c))
                return &c->unknown;
        e = slot_of(c->edges, c->room, caller, pos, callee);
        if (e->times)
                return e->times;
        times = c->full ? NULL : begin_record(caller, pos, callee);
        if (!times) {
                c->full = 1;            /* and it stays so */
                return &c->unknown;
        }
        *e = (struct edge){ caller, pos, callee, times };
        c->n++;
        return times;
}

/* The instruction of a function's that calls. */
struct place { const char *pt, *pc; };

static int is_place(uint64_t function, const char *pc, struct place *ret)
{
        const char *fn = ls_gcptr(function);

        if (!ls_istype(function, LS_T_FUNC) || !ls_fn_is_lua(fn))
                return 0;
        *ret = (struct place){ ls_fn_proto(fn), pc };
        return ls_pt_has_pc(ret->pt, pc);
}

/* The function of a tail call had the frame that the called one has now, or, with a variable number
 * of arguments, the one above. */
static int take_tail_call(struct ls_exact *x, const uint64_t *base, struct place *ret)
{
        struct ls_exact_tail tail = x->tail;
        uint64_t at = tail.base;

        x->tail.pc = 0;
        if (!tail.pc)
                return 0;
        if ((tail.link & LS_FRAME_TYPEP) == LS_FRAME_VARG)
                at -= tail.link & ~(uint64_t)LS_FRAME_TYPEP;
        else if (tail.link != base[-1])
                return 0;
        return at == (uint64_t)(uintptr_t)base &&
               is_place(tail.function, (const char *)(uintptr_t)tail.pc, ret);
}

/* Down to the first Lua function. */
static int find_place(const uint64_t *base, const lua_State *L, struct place *ret)
{
        const uint64_t *bottom = LS_READ(const uint64_t *, L, LS_L_STACK) + 2;

        for (unsigned i = 0; i < DEEPEST && base > bottom; i++) {
                uint64_t link = base[-1];
                const char *pc = (const char *)(uintptr_t)link;

                if ((link & 3) == LS_FRAME_LUA) {
                        base -= 2 + LS_READ(uint8_t, pc - 4, 1);
                        return base >= bottom && is_place(base[-2], pc, ret);
                }
                if ((link & LS_FRAME_TYPEP) == LS_FRAME_CONT)
                        pc = (const char *)(uintptr_t)base[-3];
                base = (const uint64_t *)((const char *)base - (link & ~(uint64_t)LS_FRAME_TYPEP));
                if (base < bottom)
                        return 0;
                if (ls_istype(base[-2], LS_T_FUNC) && ls_fn_is_lua(ls_gcptr(base[-2])))
                        return (link & LS_FRAME_TYPEP) == LS_FRAME_CONT &&
                               is_place(base[-2], pc, ret);
        }
        return 0;
}

void ls_exact_called(struct ls_exact *x, const char *pc, const uint64_t *base, lua_State *L)
{
        struct ls_exact_callers *c = x->callers;
        uint64_t link = base[-1], *times;
        struct place from;
        int tail;

        if (!c)
                return;
        if (c->protos_gone != atomic_load(&ls_exact_protos_gone)) {
                c->protos_gone = atomic_load(&ls_exact_protos_gone);
                memset(c->cache, 0, sizeof c->cache);
        }
        tail = take_tail_call(x, base, &from);
        if (!tail && !find_place(base, L, &from))
                return;
        times = times_of(c, ls_exact_proto_id(from.pt),
                         (uint32_t)((from.pc - (from.pt + LS_PT_SIZE)) / 4 - 1),
                         ls_exact_proto_id(pc - 4 - LS_PT_SIZE));
        ++*times;
        if (!tail && (link & 3) == LS_FRAME_LUA)
                c->cache[(link + 2 * (uintptr_t)pc) / 4 % LS_EXACT_CACHE] =
                        (struct ls_exact_cached){ link, (uint64_t)(uintptr_t)pc, times, 0 };
}
