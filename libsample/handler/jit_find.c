/* Traces that nobody told of, as in a process that was attached to: when one is first seen to run
 * it is described as it lies in the VM, with those that it leaves. What was recorded is no longer
 * there; the bytecodes that its snapshots go back to stand for that. Called by the tick handler.
 *
 * The thread was interrupted in the trace's own code. So it stays where it is, and so do its
 * prototypes: LuaJIT gives them up in the collector and in a flush, which compiled code has called
 * when they run. */

#include "libsample/handler/jit_find.h"

#include <string.h>

#include "libsample/handler/guard.h"
#include "libsample/handler/jit_locate.h"
#include "libsample/handler/jit_send.h"
#include "libsample/handler/walk.h"
#include "libsample/layout.h"
#include "libsample/pages.h"

#define MOST_ANCESTORS                                                                             \
        32 /* that a side trace is followed to; LuaJIT allows more, and rarely has them */
#define MOST_PROTOS 64                  /* in which the bytecodes of its snapshots are looked for */
#define MOST_BYTES (256u << 10)         /* of a trace: LuaJIT's own limits are far below */

struct protos {
        const char *pt[MOST_PROTOS];
        unsigned n;
};

/* 1 when all parts of the trace can be read, and are of a size that makes sense. */
static int is_sound(const char *trace)
{
        uint32_t nins = LS_READ(uint32_t, trace, LS_TR_NINS),
                 nk = LS_READ(uint32_t, trace, LS_TR_NK);
        uint32_t nsnap = LS_READ(uint16_t, trace, LS_TR_NSNAP),
                 size = LS_READ(uint32_t, trace, LS_TR_MCODE_SIZE);
        const char *ir = LS_READ(const char *, trace, LS_TR_IR),
                   *pt = LS_READ(const char *, trace, LS_TR_STARTPT);
        const char *snap = LS_READ(const char *, trace, LS_TR_SNAP),
                   *map = LS_READ(const char *, trace, LS_TR_SNAPMAP);
        const char *last = snap + (size_t)LS_SNAP_SIZE * (nsnap - 1);

        return nins > LS_REF_BIAS && nins < 2 * LS_REF_BIAS && nk < LS_REF_BIAS && nsnap && size &&
               size < MOST_BYTES &&
               ls_readable(ir + (size_t)nk * LS_IR_SIZE, (size_t)(nins - nk) * LS_IR_SIZE) &&
               ls_readable(snap, (size_t)LS_SNAP_SIZE * nsnap) &&
               ls_readable(map, 4 * ((size_t)LS_READ(uint32_t, last, LS_SNAP_MAPOFS) +
                                     LS_READ(uint8_t, last, LS_SNAP_NENT) + 2)) &&
               ls_readable(LS_READ(const char *, trace, LS_TR_MCODE), size) &&
               ls_readable(pt, LS_PT_SIZE);
}

static const char *ir_at(const char *trace, uint32_t ref)
{
        return LS_READ(const char *, trace, LS_TR_IR) + (size_t)ref * LS_IR_SIZE;
}

static void add_proto(struct protos *p, const char *pt)
{
        for (unsigned i = 0; i < p->n; i++)
                if (p->pt[i] == pt)
                        return;
        if (p->n < MOST_PROTOS && ls_readable(pt, LS_PT_SIZE) &&
            ls_readable(pt + LS_PT_SIZE, 4 * ((size_t)LS_READ(uint32_t, pt, LS_PT_SIZEBC) + 1)))
                p->pt[p->n++] = pt;
}

/* Those of the functions that are constants of the trace: what it was specialised to, and so what
 * it inlines. */
static void collect_protos(const struct ls_jit *jit, const char *trace, struct protos *p)
{
        add_proto(p, LS_READ(const char *, trace, LS_TR_STARTPT));
        for (uint32_t ref = LS_READ(uint32_t, trace, LS_TR_NK); ref + 1 < LS_REF_BIAS; ref++) {
                const char *ir = ir_at(trace, ref), *object;
                uint8_t op = LS_READ(uint8_t, ir, LS_IR_OP);

                if (op != jit->kgc) {
                        ref += op && memchr(jit->wide, op, sizeof jit->wide) != NULL;
                        continue;
                }
                object = ls_gcptr(LS_READ(uint64_t, ir_at(trace, ++ref), 0));
                if (!((uintptr_t)object & 7) && ls_readable(object, LS_FN_ADDR) &&
                    LS_READ(uint8_t, object, LS_GC_TYPE) == LS_T_FUNC && ls_fn_is_lua(object))
                        add_proto(p, ls_fn_proto(object));
        }
}

/* What is left of the recording: the bytecodes that the snapshots go back to, in the order of the
 * code; those of the loop are copies. */
static int make_events(struct ls_jit *jit, const char *trace, const struct protos *protos)
{
        uint32_t n = LS_READ(uint16_t, trace, LS_TR_NSNAP),
                 loop = LS_READ(uint32_t, trace, LS_TR_MCLOOP);

        jit->nevents = 0;
        if (ls_pages_grow((void **)&jit->events, &jit->events_room, n, sizeof *jit->events))
                return 0;
        for (uint32_t i = 0; i < n; i++) {
                const struct ls_jit_exit e = ls_jit_exit_at(trace, i);

                if (loop && e.mcofs >= loop)
                        break;
                for (unsigned k = 0; k < protos->n; k++) {
                        uint32_t pos = ls_jit_pos(protos->pt[k], e.pc);

                        if (pos == UINT32_MAX)
                                continue;
                        jit->events[jit->nevents++] =
                                (struct ls_jit_raw){ .key = (uintptr_t)protos->pt[k],
                                                     .pos = pos,
                                                     .ref = e.ref,
                                                     .depth = e.nframes };
                        break;
                }
        }
        return jit->nevents > 0;
}

/* Defines a trace. protos: its own, and those of what it leaves, as far as that is there. */
static void define(struct ls_jit *jit, struct ls_thread *t, const char *trace,
                   const struct protos *protos)
{
        const char *base = ir_at(trace, LS_REF_BIAS);
        uint32_t number = LS_READ(uint16_t, trace, LS_TR_NUMBER);

        jit->number = number;
        jit->incomplete = !make_events(jit, trace, protos);
        jit->parent = LS_READ(uint16_t, base, LS_IR_OP1);
        jit->exit = LS_READ(uint16_t, base, LS_IR_OP2);
        ls_jit_add(jit, number, ls_jit_send(jit, t, trace), trace);
}

/* What stands in the place of this trace since before a flush, of which nobody has told. */
static void drop_former(struct ls_jit *jit, const char *trace)
{
        uint32_t number = LS_READ(uint16_t, trace, LS_TR_NUMBER);
        const struct ls_jit_entry *e = ls_jit_entry(jit, number);

        if (e && e->jit_id)
                ls_jit_add(jit, number, 0, trace);
}

int ls_jit_find(const struct ls_vm *vm, struct ls_thread *t, struct ls_guard *guard,
                const char *global, uintptr_t ip)
{
        const char *lineage[MOST_ANCESTORS], *trace;
        struct ls_jit *jit = vm->jit;
        struct protos protos = { .n = 0 };
        unsigned n = 0;
        uint32_t number;

        if (!jit->finds)
                return 1;
        number = (uint32_t)*(const volatile int32_t *)(global + ls_vm_facts.vmstate_offset);
        trace = (int32_t)number > 0 ? ls_jit_trace_of(guard, global, number) : NULL;
        if (!trace || ls_jit_is_known(jit, trace))
                return 1;
        if (!ls_jit_is_at(trace, ip)) {        /* not seen yet, and it has called out: what had its
                                                * number before is gone */
                drop_former(jit, trace);
                return 1;
        }
        while (trace && n < MOST_ANCESTORS && is_sound(trace)) {
                lineage[n++] = trace;
                number = LS_READ(uint16_t, ir_at(trace, LS_REF_BIAS), LS_IR_OP1);
                trace = number ? ls_jit_trace_of(guard, global, number) : NULL;
        }
        for (unsigned i = n; i-- > 0;) {        /* the oldest first: a trace names the one that it
                                                 * leaves */
                collect_protos(jit, lineage[i], &protos);
                if (protos.n == MOST_PROTOS) {  /* its own at least */
                        protos.n = 0;
                        collect_protos(jit, lineage[i], &protos);
                }
                if (!ls_jit_is_known(jit, lineage[i]))
                        define(jit, t, lineage[i], &protos);
        }
        return 1;
}

/* The VM's state names the trace while what it calls runs, but in the collector: it is in the table
 * of traces still, which a flush clears first. */
void ls_jit_find_caller(const struct ls_vm *vm, struct ls_thread *t, struct ls_guard *guard,
                        const char *global, const lua_State *L, uintptr_t sp)
{
        int32_t number = LS_READ(const volatile int32_t, global, ls_vm_facts.vmstate_offset);
        const char *trace = NULL;
        uintptr_t frame = (uintptr_t)ls_cframe_of(L) - LS_TRACE_SAVED, at;

        if (vm->jit && vm->jit->finds && number > 0)
                trace = ls_jit_trace_of(guard, global, (uint32_t)number);
        if (!trace)
                return;
        at = frame - LS_READ(uint16_t, trace, LS_TR_SPADJUST) - 8;
        if (at >= sp && at < frame && !(at & 7) &&
            ls_jit_is_at(trace, LS_READ(uintptr_t, at, 0) - 1))
                ls_jit_find(vm, t, guard, global, LS_READ(uintptr_t, at, 0) - 1);
}
