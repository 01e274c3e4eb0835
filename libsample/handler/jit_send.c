/* The definition of a trace as a record in a ring: what was recorded, the intermediate code,
 * snapshots and machine code. Called by jit/events.c between ls_thread_enter and _leave, in the
 * thread that compiled it, and by jit_find.c in the tick handler. */

#include "libsample/handler/jit_send.h"

#include <string.h>

#include "libsample/agent.h"
#include "libsample/handler/builtins.h"
#include "libsample/handler/clock.h"
#include "libsample/handler/functions.h"
#include "libsample/handler/ring_writer.h"
#include "libsample/handler/sampler.h"
#include "libsample/layout.h"

#define NO_FUNCTION 0xffffu
static _Atomic uint32_t last_jit_id;    /* of the process */

/* One that is always inlined is never in a frame: the next stack is asked for its definition,
 * once. */
static void want_name(struct ls_thread *t, struct ls_fn *fn)
{
        if (fn->rank != LS_NAME_NONE || fn->tried)
                return;
        fn->tried = LS_TRIED_ENCLOSING;
        t->sampler->inlined = 1;
}

/* Id of what a key stands for, 0 = none: a builtin without a name says nothing. ls_function_id
 * wants a function object; of that it reads the two fields that are filled in here, and the object
 * that was recorded may have been collected meanwhile (its prototype not: the trace refers to
 * it). */
uint32_t ls_jit_function(struct ls_thread *t, uint64_t key, uint64_t now_ns)
{
        _Alignas(8) char fn[LS_FN_ADDR + 8] = { 0 };
        uint64_t value = key & ~(LS_JIT_C | LS_JIT_BUILTIN);
        uint32_t id;

        if (key & LS_JIT_BUILTIN) {
                if (!ls_builtin_name((uint8_t)value))
                        return 0;
                fn[LS_FN_FFID] = (char)value;
        } else if (key & LS_JIT_C) {
                fn[LS_FN_FFID] = LS_FFID_C;
                memcpy(fn + LS_FN_ADDR, &value, 8);
        } else {
                value += LS_PT_SIZE;
                memcpy(fn + LS_FN_PC, &value, 8);
        }
        id = ls_function_id(t, fn, now_ns);
        if (id && !(key & (LS_JIT_C | LS_JIT_BUILTIN)))
                want_name(t, ls_function_last(t));
        return id;
}

uint64_t ls_jit_key(const char *fn, const char *pt)
{
        uint8_t ffid = LS_READ(uint8_t, fn, LS_FN_FFID);

        if (ffid == LS_FFID_LUA)
                return (uint64_t)(uintptr_t)pt;
        return ffid == LS_FFID_C ? LS_READ(uint64_t, fn, LS_FN_ADDR) | LS_JIT_C
                                 : ffid | LS_JIT_BUILTIN;
}

/* Index of a key in the trace's functions. */
static unsigned index_of(struct ls_jit_functions *f, struct ls_thread *t, uint64_t key,
                         uint64_t now_ns)
{
        uint32_t id;

        for (unsigned i = f->n; i-- > 0;)
                if (f->key[i] == key)
                        return i;
        if (f->n == LS_JIT_FUNCTIONS_MOST || !(id = ls_jit_function(t, key, now_ns)))
                return NO_FUNCTION;
        f->key[f->n] = key;
        f->id[f->n] = id;
        return f->n++;
}

uint32_t ls_jit_line(const char *pt, uint32_t pos)
{
        return pos < LS_READ(uint32_t, pt, LS_PT_SIZEBC)
                       ? ls_pt_line(pt, pt + LS_PT_SIZE + 4 * ((size_t)pos + 1))
                       : 0;
}

static int is_lua(uint64_t key)
{
        return !(key & (LS_JIT_C | LS_JIT_BUILTIN));
}

static void put_event(struct ls_jit_event *to, const struct ls_jit_raw *raw)
{
        to->ref = (uint16_t)(raw->ref - LS_REF_BIAS);
        to->function = raw->function;
        to->depth = raw->depth;
        to->pad = 0;
        to->pos = raw->pos;
        to->line = is_lua(raw->key) ? ls_jit_line((const char *)(uintptr_t)raw->key, raw->pos) : 0;
}

struct ls_jit_exit ls_jit_exit_at(const char *trace, uint32_t number)
{
        const char *snap = LS_READ(const char *, trace, LS_TR_SNAP) + (size_t)number * LS_SNAP_SIZE;
        const uint32_t *map = LS_READ(const uint32_t *, trace, LS_TR_SNAPMAP) +
                              LS_READ(uint32_t, snap, LS_SNAP_MAPOFS);
        unsigned n = LS_READ(uint8_t, snap, LS_SNAP_NENT);
        struct ls_jit_exit e = { .ref = LS_READ(uint16_t, snap, LS_SNAP_REF),
                                 .mcofs = LS_READ(uint16_t, snap, LS_SNAP_MCOFS) };
        uint64_t pc;

        memcpy(&pc, map + n, 8);
        e.pc = (const char *)(uintptr_t)(pc >> 8);
        for (unsigned k = 0; k < n; k++)
                e.nframes += (map[k] & LS_SNAP_FRAMES) && LS_SNAP_SLOT(map[k]) > 1;
        return e;
}

uint32_t ls_jit_pos(const char *pt, const char *pc)
{
        return ls_pt_has_pc(pt, pc + 4) ? (uint32_t)((pc - (pt + LS_PT_SIZE)) / 4) : UINT32_MAX;
}

/* A snapshot, and the function that its bytecode is in: one of those recorded. *hint: where the
 * last one was found. */
static void put_snapshot(struct ls_jit_snapshot *to, const char *trace, uint32_t i,
                         const struct ls_jit_functions *f, unsigned *hint)
{
        const struct ls_jit_exit e = ls_jit_exit_at(trace, i);

        *to = (struct ls_jit_snapshot){ .ref = (uint16_t)(e.ref - LS_REF_BIAS),
                                        .mcofs = e.mcofs,
                                        .function = NO_FUNCTION,
                                        .nframes = e.nframes };
        for (unsigned k = 0, at = *hint; k < f->n; k++, at++) {
                const char *pt;

                at %= f->n;
                pt = (const char *)(uintptr_t)f->key[at];
                if (!is_lua(f->key[at]) || ls_jit_pos(pt, e.pc) == UINT32_MAX)
                        continue;
                to->function = (uint16_t)at;
                to->pos = ls_jit_pos(pt, e.pc);
                to->line = ls_jit_line(pt, to->pos);
                *hint = at;
                break;
        }
}

static size_t pad8(size_t n)
{
        return (n + 7) & ~(size_t)7;
}

static size_t size_of(const struct ls_rec_jittrace *rec)
{
        return sizeof *rec + pad8((size_t)rec->nfunctions * 4) +
               (size_t)rec->nevents * sizeof(struct ls_jit_event) +
               (size_t)rec->nsnapshots * sizeof(struct ls_jit_snapshot) +
               (size_t)rec->nir * LS_IR_SIZE + pad8(rec->mcode_size);
}

/* What is known of any trace. */
static void describe(struct ls_rec_jittrace *rec, struct ls_jit *jit, const char *trace,
                     unsigned start)
{
        const char *pt = LS_READ(const char *, trace, LS_TR_STARTPT),
                   *pc = LS_READ(const char *, trace, LS_TR_STARTPC);
        struct ls_jit_entry *parent = jit->parent ? ls_jit_entry(jit, jit->parent) : NULL;

        *rec = (struct ls_rec_jittrace){ 0 };
        rec->vm_id = jit->vm->vm_id;
        rec->number = LS_READ(uint16_t, trace, LS_TR_NUMBER);
        rec->root = LS_READ(uint16_t, trace, LS_TR_ROOT);
        rec->link = LS_READ(uint16_t, trace, LS_TR_LINK);
        rec->link_kind = LS_READ(uint8_t, trace, LS_TR_LINKTYPE);
        if (parent)
                rec->parent_id = atomic_load(&parent->jit_id);
        if (rec->parent_id)
                rec->parent_exit = jit->exit;
        rec->start_function = start == NO_FUNCTION ? UINT32_MAX : start;
        if (ls_jit_pos(pt, pc) != UINT32_MAX) {
                rec->start_pos = ls_jit_pos(pt, pc);
                rec->start_line = ls_jit_line(pt, rec->start_pos);
        }
        rec->mcode = LS_READ(uint64_t, trace, LS_TR_MCODE);
        rec->spadjust = LS_READ(uint16_t, trace, LS_TR_SPADJUST);
}

static void describe_map(struct ls_rec_jittrace *rec, const struct ls_jit *jit, const char *trace)
{
        rec->flags = LS_JITF_MAP | (jit->finds ? LS_JITF_SNAPSHOTS : 0);
        rec->mcode_size = LS_READ(uint32_t, trace, LS_TR_MCODE_SIZE);
        rec->mcode_loop = LS_READ(uint32_t, trace, LS_TR_MCLOOP);
        rec->nir = LS_READ(uint32_t, trace, LS_TR_NINS) - LS_REF_BIAS;
        rec->nsnapshots = LS_READ(uint16_t, trace, LS_TR_NSNAP);
        rec->nevents = (uint32_t)jit->nevents;
}

/* Fills the arrays behind the head, as many as it says. */
static void put_arrays(char *at, const struct ls_rec_jittrace *rec,
                       const struct ls_jit_functions *f, const struct ls_jit *jit,
                       const char *trace)
{
        unsigned hint = 0;

        memcpy(at, f->id, (size_t)rec->nfunctions * 4);
        memset(at + (size_t)rec->nfunctions * 4, 0,
               pad8((size_t)rec->nfunctions * 4) - (size_t)rec->nfunctions * 4);
        at += pad8((size_t)rec->nfunctions * 4);
        for (uint32_t i = 0; i < rec->nevents; i++, at += sizeof(struct ls_jit_event))
                put_event((struct ls_jit_event *)at, &jit->events[i]);
        for (uint32_t i = 0; i < rec->nsnapshots; i++, at += sizeof(struct ls_jit_snapshot))
                put_snapshot((struct ls_jit_snapshot *)at, trace, i, f, &hint);
        memcpy(at, LS_READ(const char *, trace, LS_TR_IR) + (size_t)LS_REF_BIAS * LS_IR_SIZE,
               (size_t)rec->nir * LS_IR_SIZE);
        at += (size_t)rec->nir * LS_IR_SIZE;
        memcpy(at, (const void *)(uintptr_t)rec->mcode, rec->mcode_size);
}

static void send_irnames(struct ls_jit *jit, struct ls_thread *t)
{
        struct ls_rec_irnames rec = { jit->vm->vm_id, jit->nirnames };
        char *body = ls_ring_reserve(t->ring, LS_REC_IRNAMES, sizeof rec + rec.len,
                                     LS_RESERVE_DEFINITION);

        if (!body)
                return;
        memcpy(body, &rec, sizeof rec);
        memcpy(body + sizeof rec, jit->irnames, rec.len);
        ls_ring_commit(t->ring, body);
        jit->sent_irnames = 1;
}

uint32_t ls_jit_send(struct ls_jit *jit, struct ls_thread *t, const char *trace)
{
        struct ls_jit_functions *f = &jit->functions;
        struct ls_rec_jittrace rec;
        uint64_t now_ns = ls_now_ns();
        uint64_t pt = LS_READ(uint64_t, trace, LS_TR_STARTPT);
        unsigned start;
        int complete = jit->map && !jit->incomplete &&
                       jit->number == LS_READ(uint16_t, trace, LS_TR_NUMBER);
        char *body = NULL;

        f->n = 0;
        start = index_of(f, t, pt, now_ns);
        describe(&rec, jit, trace, start);
        if (complete) {
                for (size_t i = 0; i < jit->nevents; i++)
                        jit->events[i].function =
                                (uint16_t)index_of(f, t, jit->events[i].key, now_ns);
                describe_map(&rec, jit, trace);
                rec.nfunctions = f->n;
                if (!jit->sent_irnames)
                        send_irnames(jit, t);
                body = ls_ring_reserve(t->ring, LS_REC_JITTRACE, size_of(&rec),
                                       LS_RESERVE_DEFINITION);
                if (body)
                        put_arrays(body + sizeof rec, &rec, f, jit, trace);
        }
        if (!body) {
                if (jit->map)
                        atomic_fetch_add(&ls_agent.shm->lost[LS_LOSS_MAP_MISSING], 1);
                rec.flags = rec.nevents = rec.nsnapshots = rec.nir = rec.mcode_size =
                        rec.mcode_loop = 0;
                rec.nfunctions = start == NO_FUNCTION ? 0 : 1;
                body = ls_ring_reserve(t->ring, LS_REC_JITTRACE, size_of(&rec),
                                       LS_RESERVE_DEFINITION);
                if (!body)
                        return 0;
                put_arrays(body + sizeof rec, &rec, f, jit, trace);
        }
        rec.jit_id = atomic_fetch_add(&last_jit_id, 1) + 1;
        memcpy(body, &rec, sizeof rec);
        ls_ring_commit(t->ring, body);
        return rec.jit_id;
}

uint32_t ls_jit_last_id(void)
{
        return atomic_load(&last_jit_id);
}
