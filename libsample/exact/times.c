/* Exact time of calls: for each path of calls a node in the log, with how often it was called, its
 * own time, its longest call and how long its calls took, in powers of two. Called by the stubs of
 * headers, returns and tail calls, and of coroutine.resume, yield and wrap (stubs.c), in the VM's
 * own thread. One reading of the clock an event.
 *
 * Each coroutine has a stack of the calls that it is in. A frame that is not there any more has no
 * event when an error, or a tail call, ended it: the next event says so by the place of its own
 * frame. A function that calls itself, through others or not, stays in its first node. */
#include <cpuid.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

#include "libsample/agent.h"
#include "libsample/exact/private.h"
#include "libsample/handler/clock.h"
#include "libsample/handler/walk.h"
#include "libsample/lua_debug.h"
#include "libsample/pages.h"

#define DEEPEST 200000u  /* calls of a coroutine; LuaJIT's stacks have fewer frames */
#define STACKS 1024u     /* chains of coroutines: 2^(64 - 54) */
#define TRIAL_CALLS 2000 /* short beside a time slice: some rounds have one of their own */
#define TRIAL_ROUNDS 50

struct frame {
        uint32_t node, slot; /* slot: its base, from the stack's bottom */
        const char *pt;
        uint64_t begin, inner; /* inner: calls of the VM before it */
};

struct stack {
        const lua_State *L;
        struct stack *next; /* in its chain */
        struct frame *frames;
        size_t n, room;
        uint64_t last; /* time of its last event */
};

struct node {
        struct ls_exact_node *rec;
        uint32_t parent, proto;
        uint32_t last_proto, last_node; /* the call that was made last */
};

struct edge {
        uint32_t from, proto, to;
}; /* to 0 = free */

struct ls_exact_times {
        struct stack *stacks[STACKS], *unused; /* chains by lua_State */
        struct stack *now;
        struct node *nodes; /* from 1 */
        size_t nnodes, nodes_room;
        struct edge *edges;
        size_t nedges, edges_room; /* edges_room: a power of two */
        uint64_t last, calls;
        uint64_t in_callee, in_caller; /* see LS_EXACT_COST */
        int full, trial;
};

static uint64_t cost_in_callee, cost_in_caller;
static int reads_tsc;
uint8_t ls_exact_switch_ops[3];

static uint64_t now(void)
{
        return reads_tsc ? __rdtsc() : ls_now_ns();
}

static void choose_clock(void)
{
        unsigned a, b, c, d;

        /* "invariant TSC" */
        reads_tsc = __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8;
}

struct ls_exact_times *ls_exact_times_new(int trial)
{
        struct ls_exact_times *t = ls_pages_new(sizeof *t);

        if (!t)
                return NULL;
        t->trial = trial;
        t->in_callee = cost_in_callee;
        t->in_caller = cost_in_caller;
        t->edges_room = 1024;
        t->edges = ls_pages_new(t->edges_room * sizeof *t->edges);
        if (t->edges && !ls_pages_grow((void **)&t->nodes, &t->nodes_room, 64, sizeof *t->nodes))
                return t;
        ls_exact_times_free(t);
        return NULL;
}

static void free_stacks(struct stack *s)
{
        for (struct stack *next; s; s = next) {
                next = s->next;
                ls_pages_free(s->frames, s->room * sizeof *s->frames);
                ls_pages_free(s, sizeof *s);
        }
}

void ls_exact_times_free(struct ls_exact_times *t)
{
        if (!t)
                return;
        for (size_t i = 0; i <= STACKS; i++)
                free_stacks(i < STACKS ? t->stacks[i] : t->unused);
        for (size_t i = 1; t->trial && i <= t->nnodes; i++)
                ls_pages_free(t->nodes[i].rec, sizeof(struct ls_exact_node));
        ls_pages_free(t->edges, t->edges_room * sizeof *t->edges);
        ls_pages_free(t->nodes, t->nodes_room * sizeof *t->nodes);
        ls_pages_free(t, sizeof *t);
}

static struct stack **chain_of(struct ls_exact_times *t, const lua_State *L)
{
        return &t->stacks[(uint64_t)(uintptr_t)L * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

static struct stack *stack_of(struct ls_exact_times *t, const lua_State *L)
{
        struct stack **chain = chain_of(t, L), *s;

        for (s = *chain; s; s = s->next)
                if (s->L == L)
                        return s;
        s = t->unused;
        if (s)
                t->unused = s->next;
        else if (!(s = ls_pages_new(sizeof *s)))
                return NULL;
        s->L = L;
        s->next = *chain;
        *chain = s;
        return s;
}

/* Its last function has returned: most likely it is dead. */
static void forget_stack(struct ls_exact_times *t, struct stack *s)
{
        struct stack **at = chain_of(t, s->L);

        while (*at != s)
                at = &(*at)->next;
        *at = s->next;
        s->next = t->unused;
        t->unused = s;
}

static uint32_t top_of(const struct stack *s)
{
        return s && s->n ? s->frames[s->n - 1].node : 0;
}

/* Gives the time since the last event to what ran: the call on top of this coroutine, or, where it
 * has none yet, what resumed it. */
static struct stack *arrive(struct ls_exact_times *t, const lua_State *L, uint64_t at,
                            uint32_t *ret_below)
{
        struct stack *s = t->now && t->now->L == L ? t->now : stack_of(t, L);
        uint32_t top = top_of(s);

        *ret_below = top_of(t->now);
        if (!top)
                top = *ret_below;
        if (top)
                t->nodes[top].rec->self += at - t->last;
        return s;
}

static void end_call(struct ls_exact_times *t, const struct frame *f, uint64_t at)
{
        struct ls_exact_node *rec = t->nodes[f->node].rec;
        uint64_t took = at - f->begin;
        uint64_t cost = (t->in_callee + (t->calls - f->inner) * (t->in_callee + t->in_caller)) /
                        LS_EXACT_COST;

        took = took > cost ? took - cost : 0;
        if (took > rec->longest)
                rec->longest = took;
        rec->took[took ? 63 - __builtin_clzll(took) : 0]++;
}

/* Ends what lies above slot. What another coroutine's events left behind ended with the last of
 * its own. */
static void unwind(struct ls_exact_times *t, struct stack *s, uint32_t slot, uint64_t at)
{
        while (s->n && s->frames[s->n - 1].slot >= slot)
                end_call(t, &s->frames[--s->n], t->now == s ? at : s->last);
}

static struct edge *edge_slot(struct edge *edges, size_t room, uint32_t from, uint32_t proto)
{
        size_t i = (size_t)(((uint64_t)from << 32 | proto) * UINT64_C(0x9e3779b97f4a7c15) >> 32);

        for (;; i++) {
                struct edge *e = &edges[i & (room - 1)];

                if (!e->to || (e->from == from && e->proto == proto))
                        return e;
        }
}

static int more_edges(struct ls_exact_times *t)
{
        struct edge *bigger;

        if (2 * (t->nedges + 1) < t->edges_room)
                return 0;
        bigger = ls_pages_new(2 * t->edges_room * sizeof *bigger);
        if (!bigger)
                return -1;
        for (size_t i = 0; i < t->edges_room; i++)
                if (t->edges[i].to)
                        *edge_slot(bigger, 2 * t->edges_room, t->edges[i].from, t->edges[i].proto) =
                                t->edges[i];
        ls_pages_free(t->edges, t->edges_room * sizeof *t->edges);
        t->edges = bigger;
        t->edges_room *= 2;
        return 0;
}

static struct ls_exact_node *new_record(struct ls_exact_times *t, uint32_t parent, uint32_t proto)
{
        struct ls_exact_node *rec;

        if (t->trial)
                return ls_pages_new(sizeof *rec);
        rec = ls_exact_log_begin(sizeof *rec);
        if (!rec)
                return NULL;
        rec->rec.kind = LS_EXACT_NODE;
        rec->id = atomic_fetch_add(&ls_exact_head->nodes, 1) + 1;
        rec->parent = parent ? t->nodes[parent].rec->id : 0;
        rec->proto = proto;
        ls_exact_log_end();
        return rec;
}

/* The node of this function called from that one. 0 = there is no room for it. */
static uint32_t new_node(struct ls_exact_times *t, uint32_t parent, uint32_t proto)
{
        struct ls_exact_node *rec;

        for (uint32_t up = parent; up; up = t->nodes[up].parent)
                if (t->nodes[up].proto == proto)
                        return up;
        if (ls_pages_grow((void **)&t->nodes, &t->nodes_room, t->nnodes + 2, sizeof *t->nodes))
                return 0;
        rec = new_record(t, parent, proto);
        if (!rec)
                return 0;
        t->nodes[++t->nnodes] = (struct node){ rec, parent, proto, 0, 0 };
        return (uint32_t)t->nnodes;
}

static uint32_t node_of(struct ls_exact_times *t, uint32_t parent, uint32_t proto)
{
        struct edge *e;
        uint32_t to;

        if (t->nodes[parent].last_proto == proto && t->nodes[parent].last_node)
                return t->nodes[parent].last_node;
        e = edge_slot(t->edges, t->edges_room, parent, proto);
        if (!e->to) {
                to = t->full || more_edges(t) ? 0 : new_node(t, parent, proto);
                if (!to) {
                        t->full = 1; /* its time is its caller's */
                        return parent;
                }
                e = edge_slot(t->edges, t->edges_room, parent, proto);
                *e = (struct edge){ parent, proto, to };
                t->nedges++;
        }
        t->nodes[parent].last_proto = proto;
        t->nodes[parent].last_node = e->to;
        return e->to;
}

static void leave_event(struct ls_exact_times *t, struct stack *s, uint64_t at)
{
        t->now = s;
        t->last = at;
        s->last = at;
}

static uint32_t proto_of(struct ls_exact *x, const char *pc)
{
        const char *pt = pc - 4 - LS_PT_SIZE;
        uint32_t id;

        if (x->times->trial)
                return LS_READ(uint32_t, pt, LS_PT_SIZEBC);
        id = ls_exact_proto_id(pt);
        if (!id)
                id = ls_exact_describe(x, pt);
        ls_exact_head->outside += !id;
        return id;
}

/* Base of a frame, from the stack's bottom. */
static uint32_t slot_of(const uint64_t *base, const lua_State *L)
{
        return (uint32_t)(base - LS_READ(const uint64_t *, L, LS_L_STACK));
}

/* Base of the frame below that of a function that is called, from the stack's bottom. */
static uint32_t slot_below(const uint64_t *base, uint32_t slot)
{
        uint64_t link = base[-1], back;

        if ((link & 3) == LS_FRAME_LUA)
                back = 2 + (uint64_t)LS_READ(uint8_t, (const char *)(uintptr_t)link - 4, 1);
        else
                back = (link & ~(uint64_t)LS_FRAME_TYPEP) / 8;
        return back < slot ? slot - (uint32_t)back : 0;
}

void ls_exact_enters(struct ls_exact *x, const char *pc, const uint64_t *base, lua_State *L)
{
        struct ls_exact_times *t = x->times;
        uint32_t slot = slot_of(base, L), below, node, proto;
        uint64_t at = now();
        struct stack *s = arrive(t, L, at, &below);

        if (!s)
                return;
        unwind(t, s, slot_below(base, slot) + 1, at);
        below = s->n ? top_of(s) : t->now != s ? below : 0;
        proto = proto_of(x, pc);
        node = proto ? node_of(t, below, proto) : below;
        if (node && s->n < DEEPEST &&
            !ls_pages_grow((void **)&s->frames, &s->room, s->n + 1, sizeof *s->frames)) {
                s->frames[s->n++] =
                        (struct frame){ node, slot, pc - 4 - LS_PT_SIZE, at, ++t->calls };
                t->nodes[node].rec->calls++;
                if (below)
                        t->nodes[below].rec->made++;
        }
        leave_event(t, s, at);
}

/* An event that is no call: ends what lies above the frame of the one that has it. */
static struct stack *begin_event(struct ls_exact_times *t, const lua_State *L, uint32_t lowest,
                                 uint64_t at)
{
        uint32_t below;
        struct stack *s = arrive(t, L, at, &below);

        if (s)
                unwind(t, s, lowest + 1, at);
        return s;
}

void ls_exact_returns(struct ls_exact *x, const char *pc, const uint64_t *base, lua_State *L)
{
        struct ls_exact_times *t = x->times;
        uint64_t at = now();
        struct stack *s = begin_event(t, L, slot_of(base, L), at);

        (void)pc;
        if (!s)
                return;
        /* A function of any number of arguments is moved behind them. */
        if (s->n && s->frames[s->n - 1].pt == ls_fn_proto(ls_gcptr(base[-2])))
                end_call(t, &s->frames[--s->n], at);
        leave_event(t, s, at);
        if (!s->n) {
                forget_stack(t, s);
                t->now = NULL;
        }
}

void ls_exact_switches(struct ls_exact *x, const char *pc, const uint64_t *base, lua_State *L)
{
        uint64_t at = now();
        struct stack *s = begin_event(x->times, L, slot_below(base, slot_of(base, L)), at);

        (void)pc;
        if (s)
                leave_event(x->times, s, at);
}

/* Own time of the function that was called most. */
static uint64_t own_of_most(const struct ls_exact_times *t)
{
        const struct ls_exact_node *most = NULL;

        for (size_t i = 1; i <= t->nnodes; i++)
                if (!most || t->nodes[i].rec->calls > most->calls)
                        most = t->nodes[i].rec;
        return most ? most->self : 0;
}

static int by_size(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

struct trial {
        uint64_t all, own;
}; /* of a round, in units of the clock */

/* Median of the rounds of a chunk, as a whole; and, where it is timed, of the own time of the
 * function that it calls. Returns 0 or -1. */
static int run_trial(lua_State *L, int calls, const struct ls_exact_times *t, struct trial *ret)
{
        static const char with[] = "local n = ... local function f() end for i = 1, n do f() end";
        static const char without[] = "local n = ... local function f() end for i = 1, n do end";
        uint64_t all[TRIAL_ROUNDS], own[TRIAL_ROUNDS];

        for (int i = 0; i < TRIAL_ROUNDS; i++) {
                uint64_t begin;

                own[i] = t ? own_of_most(t) : 0;
                if (ls_lua.luaL_loadbuffer(L, calls ? with : without,
                                           calls ? sizeof(with) - 1 : sizeof(without) - 1,
                                           "=luasample"))
                        return -1;
                ls_lua.lua_pushnumber(L, TRIAL_CALLS);
                begin = now();
                if (ls_lua.lua_pcall(L, 1, 0, 0))
                        return -1;
                all[i] = now() - begin;
                own[i] = t ? own_of_most(t) - own[i] : 0;
        }
        qsort(all, TRIAL_ROUNDS, sizeof *all, by_size);
        qsort(own, TRIAL_ROUNDS, sizeof *own, by_size);
        *ret = (struct trial){ all[TRIAL_ROUNDS / 2], own[TRIAL_ROUNDS / 2] };
        return 0;
}

static void try_calls(lua_State *L)
{
        struct trial loop, plain, timed;
        uint64_t all, callee, call;
        struct ls_exact *x;
        const char *why;

        if (run_trial(L, 0, NULL, &loop) || run_trial(L, 1, NULL, &plain))
                return;
        x = ls_exact_open(L, 0, LS_EXACT_TIME_TRIAL, &why);
        if (!x)
                return;
        if (!run_trial(L, 1, x->times, &timed) && timed.all > plain.all) {
                /* Half of what a call costs unwatched is its function's. */
                call = plain.all > loop.all ? (plain.all - loop.all) / 2 : 0;
                all = timed.all - plain.all;
                callee = timed.own > call ? timed.own - call : 0;
                if (callee > all)
                        callee = all;
                cost_in_callee = callee * LS_EXACT_COST / TRIAL_CALLS;
                cost_in_caller = (all - callee) * LS_EXACT_COST / TRIAL_CALLS;
        }
        ls_exact_close(x);
}

/* The number of a header: of the function on top of the stack, which is taken away. */
static uint8_t op_of_top(lua_State *L)
{
        const char *fn = ls_lua.lua_topointer(L, -1);
        uint8_t op = fn ? LS_READ(uint8_t, LS_READ(const char *, fn, LS_FN_PC), 0) : 0;

        ls_lua.lua_settop(L, -2);
        return op;
}

static void find_switches(lua_State *L)
{
        static const char wrapped[] = "return coroutine.wrap(function() end)";

        ls_lua.lua_pushcclosure(L, ls_lua.luaopen_base, 0);
        if (ls_lua.lua_pcall(L, 0, 0, 0))
                return;
        ls_lua.lua_getfield(L, LS_LUA_GLOBALSINDEX, "coroutine");
        ls_lua.lua_getfield(L, -1, "resume");
        ls_exact_switch_ops[0] = op_of_top(L);
        ls_lua.lua_getfield(L, -1, "yield");
        ls_exact_switch_ops[1] = op_of_top(L);
        if (!ls_lua.luaL_loadbuffer(L, wrapped, sizeof wrapped - 1, "=luasample") &&
            !ls_lua.lua_pcall(L, 0, 1, 0))
                ls_exact_switch_ops[2] = op_of_top(L);
        ls_lua.lua_settop(L, 0);
}

static int calibrate(lua_State *L)
{
        find_switches(L);
        try_calls(L);
        return 0;
}

void ls_exact_calibrate(lua_State *L)
{
        choose_clock();
        ls_lua.lua_cpcall(L, calibrate, NULL);
        ls_exact_head->clock_begin = reads_tsc ? now() : 0;
        ls_exact_head->clock_begin_ns = ls_now_ns();
        ls_exact_head->in_callee = cost_in_callee;
        ls_exact_head->in_caller = cost_in_caller;
}
