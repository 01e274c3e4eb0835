/* The traces of a VM as LuaJIT records them: the bytecodes in their order, and for each exit how
 * many of them were done when the trace is left there. What an exit does not do is done by the
 * interpreter, which goes on at the exit's bytecode. */
#include <string.h>

#include "libsample/agent.h"
#include "libsample/exact/private.h"
#include "libsample/handler/walk.h"
#include "libsample/jit/facts.h"
#include "libsample/lock.h"
#include "libsample/pages.h"

enum { LINK_ROOT = 1 };
#define NUMBERS 65536u

static _Atomic uint32_t last_id;

static const char *state_of(const struct ls_exact *x)
{
        return x->global + ls_jit_facts.at.state;
}

static const char *trace_of(const struct ls_exact *x, uint32_t number)
{
        const char *state = state_of(x);

        return number && number < LS_READ(uint32_t, state, ls_jit_facts.at.ntraces)
                       ? LS_READ(const char *, LS_READ(const char *, state, ls_jit_facts.at.traces),
                                 8 * (size_t)number)
                       : NULL;
}

static const char *snap_at(const char *trace, size_t i)
{
        return LS_READ(const char *, trace, LS_TR_SNAP) + LS_SNAP_SIZE * i;
}

/* The word behind a snapshot's entries: the bytecode that it goes on with, and the frame's
 * place. */
static uint64_t snap_pc(const char *trace, size_t i)
{
        const char *snap = snap_at(trace, i);
        size_t entry = LS_READ(uint32_t, snap, LS_SNAP_MAPOFS) +
                       LS_READ(uint8_t, snap, LS_SNAP_NENT);
        uint64_t pc;

        memcpy(&pc, LS_READ(const char *, trace, LS_TR_SNAPMAP) + 4 * entry, sizeof pc);
        return pc;
}

static const uint32_t *entries_of(const char *trace, size_t i, unsigned *ret_n)
{
        const char *snap = snap_at(trace, i);

        *ret_n = LS_READ(uint8_t, snap, LS_SNAP_NENT);
        return LS_READ(const uint32_t *, trace, LS_TR_SNAPMAP) +
               LS_READ(uint32_t, snap, LS_SNAP_MAPOFS);
}

/* How a snapshot is now. */
static struct ls_exact_snap look_at_snap(const char *trace, size_t i)
{
        struct ls_exact_snap snap = { snap_pc(trace, i),
                                      LS_READ(uint16_t, snap_at(trace, i), LS_SNAP_REF), 0, 5381 };
        unsigned n;
        const uint32_t *entries = entries_of(trace, i, &n);

        for (unsigned k = 0; k < n; k++)
                snap.entries = snap.entries * 33 + entries[k];
        return snap;
}

/* Snapshots that were made or changed while the last bytecode was recorded: before it, or behind
 * it. LuaJIT overwrites the newest one while nothing was emitted behind it, by one that differs in
 * its entries alone, as in an inner loop that is unrolled. */
static void note_snaps(struct ls_exact *x, const char *trace)
{
        size_t n = LS_READ(uint16_t, trace, LS_TR_NSNAP), from = x->nsnaps < n ? x->nsnaps : n;

        if (ls_pages_grow((void **)&x->snaps, &x->snaps_room, n, sizeof *x->snaps)) {
                x->incomplete = 1;
                return;
        }
        for (size_t i = from ? from - 1 : 0; i < n; i++) {
                struct ls_exact_snap snap = look_at_snap(trace, i), *old = &x->snaps[i];

                if (i < x->nsnaps && old->pc == snap.pc && old->ref == snap.ref &&
                    old->entries == snap.entries)
                        continue;
                snap.before = (uint32_t)x->nevents;
                if (x->nevents && snap.pc >> 8 == x->last_pc)
                        snap.before--;
                *old = snap;
        }
        x->nsnaps = n;
}

static void forget(struct ls_exact *x)
{
        x->nevents = x->nsnaps = 0;
        x->incomplete = 0;
}

static void add_event(struct ls_exact *x, const char *pt, uintptr_t pc)
{
        struct ls_exact_event *event;

        if (ls_pages_grow((void **)&x->events, &x->events_room, x->nevents + 1,
                          sizeof *x->events)) {
                x->incomplete = 1;
                return;
        }
        event = &x->events[x->nevents++];
        event->proto = pt ? ls_exact_proto_id(pt) : LS_EXACT_UNKNOWN;
        event->pos = pt ? (uint32_t)((pc - (uintptr_t)(pt + LS_PT_SIZE)) / 4) : 0;
        x->incomplete |= !event->proto;
        x->last_pc = pc;
}

void ls_exact_on_record(struct ls_exact *x, lua_State *L)
{
        const char *trace = state_of(x), *at = trace + ls_jit_facts.at.pc;
        const char *fn = LS_READ(const char *, at, 8), *pt = LS_READ(const char *, at, 16);

        (void)L;
        note_snaps(x, trace);
        add_event(x, ls_fn_is_lua(fn) ? pt : NULL, LS_READ(uintptr_t, at, 0));
}

/* Arguments: what, number, function, position, and for a side trace its parent and exit. */
static void on_start(struct ls_exact *x, lua_State *L)
{
        const char *fn = ls_lua.lua_topointer(L, 3),
                   *pt = ls_fn_is_lua(fn) ? ls_fn_proto(fn) : NULL;
        uint32_t pos = (uint32_t)ls_lua.lua_tonumber(L, 4);
        int stitched = ls_lua.lua_gettop(L) >= 6 && ls_lua.lua_tonumber(L, 6) < 0;
        uint64_t *cell;

        forget(x);
        x->parent = x->exit = 0;
        if (ls_lua.lua_gettop(L) >= 6 && !stitched) {
                x->parent = (uint32_t)ls_lua.lua_tonumber(L, 5);
                x->exit = (uint32_t)ls_lua.lua_tonumber(L, 6);
        }
        x->start = (struct ls_exact_event){ pt ? ls_exact_proto_id(pt) : LS_EXACT_UNKNOWN, pos };
        x->start_pc = pt ? (uintptr_t)pt + LS_PT_SIZE + 4 * (uintptr_t)pos : 0;
        if (!pt || x->parent || stitched)
                return;
        cell = ls_exact_cell(x->start_pc + 4);
        if (cell && LS_READ(uint8_t, (const char *)x->start_pc, 0) ==
                            (uint8_t)(ls_vm_facts.op_fori + LS_OP_ITERN))
                --*cell;                /* it is dispatched once more */
}

/* A return that a trace stands for is done by the interpreter from the trace's own copy, in some
 * LuaJITs. */
static void take_return(struct ls_exact *x, uint32_t number)
{
        uint64_t *counter = x->returns[number], *cell;

        x->returns[number] = NULL;
        if (!counter)
                return;
        cell = ls_exact_cell((uintptr_t)counter[0]);
        counter[1] += *cell;
        counter[0] = *cell = 0;
}

void ls_exact_take_returns(struct ls_exact *x, uintptr_t from, uintptr_t to)
{
        size_t kept = 0;

        for (size_t i = 0; i < x->nreturning; i++) {
                uint32_t number = x->returning[i];
                const uint64_t *counter = x->returns[number];

                if (counter && counter[0] - from >= to - from)
                        x->returning[kept++] = (uint16_t)number;
                else
                        take_return(x, number);
        }
        x->nreturning = kept;
}

static int is_itself(uint8_t number)
{
        int op = number - ls_vm_facts.op_fori;

        return op == LS_OP_ITERN || (op >= LS_OP_RETM && op <= LS_OP_RET1);
}

/* A side trace too many only does the ITERN that it starts with, of which no event tells, and goes
 * to the interpreter. */
static void note_lone_iterator(struct ls_exact *x)
{
        const char *root;

        if (x->nevents || !x->parent || !x->start_pc ||
            LS_READ(uint8_t, (const char *)x->start_pc, 0) !=
                    (uint8_t)(ls_vm_facts.op_fori + LS_OP_JLOOP))
                return;
        root = trace_of(x, LS_READ(uint16_t, (const char *)x->start_pc, 2));
        if (!root ||
            LS_READ(uint8_t, root, LS_TR_STARTINS) != (uint8_t)(ls_vm_facts.op_fori + LS_OP_ITERN))
                return;
        add_event(x, NULL, x->start_pc);
        if (x->nevents)
                x->events[0] = x->start;
}

/* IR reference of LOOP, 0 = the trace has no loop part. */
static uint32_t loop_of(const char *trace)
{
        const char *ir = LS_READ(const char *, trace, LS_TR_IR);
        uint32_t nins = LS_READ(uint32_t, trace, LS_TR_NINS);

        for (uint32_t ref = nins - 1; ref > LS_REF_BIAS; ref--)
                if (LS_READ(uint8_t, ir + LS_IR_SIZE * (size_t)ref, LS_IR_OP) ==
                    ls_exact_facts.op_ir_loop)
                        return ref;
        return 0;
}

/* 1 when snapshot copy, of the loop part, can be made from the other: it goes back to the same
 * place, and slots that hold a constant hold it still. By these, iterations of an inner loop that
 * was unrolled are told apart. */
static int may_be_copy(const char *trace, size_t original, size_t copy)
{
        unsigned n, m, k;
        const uint32_t *from = entries_of(trace, original, &n), *to = entries_of(trace, copy, &m);

        if (snap_pc(trace, original) != snap_pc(trace, copy) ||
            LS_READ(uint8_t, snap_at(trace, original), LS_SNAP_NSLOTS) !=
                    LS_READ(uint8_t, snap_at(trace, copy), LS_SNAP_NSLOTS))
                return 0;
        for (unsigned i = 0; i < n; i++) {
                if ((uint16_t)from[i] >= LS_REF_BIAS)
                        continue;
                for (k = 0; k < m && LS_SNAP_SLOT(to[k]) != LS_SNAP_SLOT(from[i]); k++)
                        ;
                if (k < m && (uint16_t)to[k] != (uint16_t)from[i])
                        return 0;
        }
        return 1;
}

/* Snapshots of the loop part are copies of those before it, in their order. One with no guard
 * behind it is overwritten by the next: of several that look alike the last ones are left. Returns
 * how many are before the loop part. */
static uint32_t match_loop(struct ls_exact *x, const char *trace, uint32_t loop)
{
        size_t n = LS_READ(uint16_t, trace, LS_TR_NSNAP), first, next;

        for (first = 0; first < n && LS_READ(uint16_t, snap_at(trace, first), LS_SNAP_REF) <= loop;
             first++)
                ;
        if (!first)
                return 0;
        x->snaps[--first].before = 0;   /* the last one is where an iteration begins */
        next = first;
        for (size_t i = n; i-- > first + 1;) {
                size_t k = next;

                while (k > 0 && !may_be_copy(trace, k - 1, i))
                        k--;
                if (k > 0) {
                        x->snaps[i].before = x->snaps[k - 1].before;
                        next = k - 1;
                } else if (snap_pc(trace, i) >> 8 == snap_pc(trace, first) >> 8) {
                        x->snaps[i].before = 0;
                } else {
                        x->incomplete = 1;
                }
        }
        return (uint32_t)first;
}

static void put_arrays(const struct ls_exact *x, struct ls_exact_trace *rec,
                       const struct ls_exact_sites *sites)
{
        char *at = (char *)(rec + 1);
        uint32_t *before;
        uint16_t *exits;

        memcpy(at, x->events, sizeof *x->events * rec->nevents);
        before = (uint32_t *)(at + sizeof *x->events * rec->nevents);
        for (uint32_t i = 0; i < rec->nsnapshots; i++)
                *before++ = x->snaps[i].before;
        exits = (uint16_t *)before;
        memcpy(exits, sites->head, 2 * (size_t)sites->nhead);
        memcpy(exits + sites->nhead, sites->loop, 2 * (size_t)sites->nloop);
}

static uint32_t id_of(const struct ls_exact *x, uint32_t number)
{
        return number < NUMBERS ? x->trace_id[number] : 0;
}

static void send(struct ls_exact *x, const char *trace, uint32_t number, uint32_t nfirst,
                 uint8_t flags, const struct ls_exact_sites *sites, uint32_t exits,
                 uint32_t returns)
{
        uint32_t nsnaps = (uint32_t)x->nsnaps, link = LS_READ(uint16_t, trace, LS_TR_LINK);
        struct ls_exact_trace *rec =
                ls_exact_log_begin((uint32_t)(sizeof *rec + sizeof *x->events * x->nevents +
                                              4 * nsnaps + 2 * (sites->nhead + sites->nloop)));

        if (!rec)
                return;
        *rec = (struct ls_exact_trace){
                .rec = { rec->rec.size, LS_EXACT_TRACE },
                .id = x->trace_id[number],
                .vm_id = x->vm_id,
                .number = number,
                .parent = x->parent ? id_of(x, x->parent) : 0,
                .exit = x->exit,
                .link = id_of(x, link),
                .link_kind = LS_READ(uint8_t, trace, LS_TR_LINKTYPE),
                .flags = flags,
                .nbefore_head = sites->nhead,
                .nbefore_loop = sites->nloop,
                .nfirst = (uint16_t)nfirst,
                .nevents = (uint32_t)x->nevents,
                .nsnapshots = nsnaps,
                .entries = sites->entries,
                .iterations = sites->iterations,
                .exits = exits,
                .returns = returns,
                .start = x->start,
        };
        put_arrays(x, rec, sites);
        ls_exact_log_end();
}

static uint32_t begin_returns(struct ls_exact *x, const char *trace, uint32_t number)
{
        uint64_t *cell = ls_exact_cell((uintptr_t)trace + LS_TR_STARTINS + 4);
        uint32_t counter = cell ? ls_exact_new_counters(2) : 0;

        if (!counter || ls_pages_grow((void **)&x->returning, &x->returning_room, x->nreturning + 1,
                                      sizeof *x->returning))
                return 0;
        ls_exact_no_proto((uintptr_t)trace, (uintptr_t)trace + LS_TR_SIZE);
        x->returning[x->nreturning++] = (uint16_t)number;
        *cell = 0;
        ls_exact_counters[counter] = (uintptr_t)trace + LS_TR_STARTINS + 4;
        x->returns[number] = &ls_exact_counters[counter];
        return counter + 1;
}

static void on_stop(struct ls_exact *x, uint32_t number)
{
        const char *trace = trace_of(x, number);
        struct ls_exact_sites sites = { 0 };
        uint32_t loop, nfirst, exits, returns = 0;
        uint8_t flags = 0;

        if (!trace || number >= NUMBERS)
                return;
        take_return(x, number);
        note_lone_iterator(x);
        note_snaps(x, trace);
        loop = loop_of(trace);
        nfirst = loop ? match_loop(x, trace, loop) : (uint32_t)x->nsnaps;
        exits = ls_exact_new_counters((uint32_t)x->nsnaps + 1);
        if (ls_exact_count_exits(x) || !exits)
                x->incomplete = 1;
        else
                ls_exact_count_trace(x, trace, &sites);
        x->figures.traces++;
        x->figures.no_head += !sites.entries;
        x->figures.no_loop += loop && !sites.iterations;
        if (is_itself(LS_READ(uint8_t, trace, LS_TR_STARTINS))) {
                flags |= LS_EXACT_STARTS_WITH_ITSELF;
                if (LS_READ(uint8_t, trace, LS_TR_STARTINS) !=
                            (uint8_t)(ls_vm_facts.op_fori + LS_OP_ITERN) &&
                    (returns = begin_returns(x, trace, number)))
                        flags |= LS_EXACT_COUNTS_RETURN;
        }
        flags |= (loop ? LS_EXACT_LOOP : 0);
        if (x->incomplete || !sites.entries || (loop && !sites.iterations))
                flags |= LS_EXACT_AT_LEAST;
        x->exits[number] = exits ? &ls_exact_counters[exits] : NULL;
        x->trace_id[number] = atomic_fetch_add(&last_id, 1) + 1;
        send(x, trace, number, nfirst, flags, &sites, exits, returns);
}

void ls_exact_on_trace(struct ls_exact *x, lua_State *L, const char *what)
{
        if (!strcmp(what, "start")) {
                on_start(x, L);
                return;
        }
        if (!strcmp(what, "stop"))
                on_stop(x, (uint32_t)ls_lua.lua_tonumber(L, 2));
        else if (!strcmp(what, "abort"))
                x->figures.aborts++;
        else if (!strcmp(what, "flush")) {
                x->figures.flushes++;
                ls_exact_take_returns(x, 0, UINTPTR_MAX);
                ls_exact_sites_flushed(x);
        }
        forget(x);
}
