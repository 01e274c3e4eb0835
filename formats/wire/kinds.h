/* Numbers of record kinds, VM states, events and losses, made from the .def tables. Used by
 * everything. */
#ifndef LS_WIRE_KINDS_H
#define LS_WIRE_KINDS_H

#include <stdint.h>

enum ls_record_kind {
#define LS_RECORD(number, NAME, name, where, help) LS_REC_##NAME = number,
#include "formats/wire/records.def"
#undef LS_RECORD
};

enum ls_vmstate {
#define LS_VMSTATE(letter, NAME, name, label) LS_VMSTATE_##NAME,
#include "formats/wire/vmstates.def"
#undef LS_VMSTATE
        LS_NVMSTATES
};

enum ls_objtype {
#define LS_OBJTYPE(NAME, name, gct) LS_OBJTYPE_##NAME,
#include "formats/wire/objtypes.def"
#undef LS_OBJTYPE
        LS_NOBJTYPES
};

enum ls_event_kind {
        LS_EVENT_NONE,
#define LS_EVENT(number, NAME, name, unit, sampled, clock, asked, overlaps, help)                  \
        LS_EVENT_##NAME = number,
#include "formats/wire/events.def"
#undef LS_EVENT
        LS_EVENT_NEXT                   /* one more than the last */
};

enum ls_loss {
#define LS_LOSS(NAME, key, unit, counted, part, label) LS_LOSS_##NAME,
#include "formats/wire/losses.def"
#undef LS_LOSS
        LS_NLOSSES
};

/* The columns of losses.def as bits by enum ls_loss. */
enum ls_loss_is {
        LS_LOSS_IS_ticks = 1,
        LS_LOSS_IS_note = 0,
        LS_LOSS_IN_ticks = 1,
        LS_LOSS_IN_things = 0,
        LS_LOSS_OF_stack = 1,
        LS_LOSS_OF_none = 0
};
enum ls_losses {
        /* weight that is missing from the samples */
#define LS_LOSS(NAME, key, unit, counted, part, label) | LS_LOSS_IS_##unit << LS_LOSS_##NAME
        LS_LOSSES_OF_TICKS = 0
#include "formats/wire/losses.def"
        ,
#undef LS_LOSS
        /* numbers of ticks, missing or not */
#define LS_LOSS(NAME, key, unit, counted, part, label) | LS_LOSS_IN_##counted << LS_LOSS_##NAME
        LS_LOSSES_IN_TICKS = 0
#include "formats/wire/losses.def"
        ,
#undef LS_LOSS
        /* of parts of stacks, whose ticks are kept */
#define LS_LOSS(NAME, key, unit, counted, part, label) | LS_LOSS_OF_##part << LS_LOSS_##NAME
        LS_LOSSES_OF_STACKS = 0
#include "formats/wire/losses.def"
#undef LS_LOSS
};

/* Kinds of function: what a frame is. */
enum ls_function_kind {
        LS_FUNC_LUA = 1,        /* a Lua function, identified by its definition */
        LS_FUNC_C = 2,          /* a C function, identified by its address in a mapping */
        LS_FUNC_BUILTIN = 3,    /* a fast function of LuaJIT, identified by its name */
        LS_FUNC_PSEUDO = 4,     /* not a function: "[resumed by C]", "[middle cut]", "[definition
                                 * lost]" */
        LS_FUNC_NATIVE = 5,     /* a native function, by its address in a mapping: a frame of the C
                                 * stack */
        LS_FUNC_TRACE = 6,      /* machine code of a JIT trace; a frame of it is a place in that
                                 * code (the offset is the frame's line), which the trace's map
                                 * turns into the frames that stand there */
};

/* Flags of a function. */
#define LS_FUNCF_MAIN   0x01    /* the main chunk of its source */
#define LS_FUNCF_VARARG 0x02
#define LS_FUNCF_LOADED 0x04    /* of a chunk that came from a string, not from a file */
#define LS_FUNCF_INLINED                                                                           \
        0x80 /* a builtin that compiled code has as instructions of its own; of readers, in no
              * file */
#define LS_FUNCF_NOJIT  0x08    /* the program forbids that it is compiled: jit.off(function) */

/* How good a name is: a higher rank replaces a lower one. */
enum ls_name_rank {
        LS_NAME_NONE = 0,
        LS_NAME_CALLSITE = 1,   /* the caller's word for it: local, upvalue, field, method */
        LS_NAME_DEFINITION = 2, /* the name that its definition gives it */
        LS_NAME_GLOBAL = 3,     /* its path from the globals or package.loaded */
};

/* Flags of a sample. */
#define LS_SAMPLE_CONT                                                                             \
        0x01 /* in the file: same sample as the row before, another VM state's share */
#define LS_SAMPLE_MIDDLE_CUT  0x02
#define LS_SAMPLE_IN_REGION   0x04 /* between luasample.start() and stop() in the program */
#define LS_SAMPLE_STATE_GUESS 0x08 /* VM states are the first tick's */
#define LS_SAMPLE_NO_LINE                                                                          \
        0x10 /* the leaf's line is not known of compiled ticks (--scope f or none). In rings, and in
              * files of minor version 0; later ones have a location with line 0 */
#define LS_SAMPLE_OFF_CPU                                                                          \
        0x20 /* wall time in which the thread did not run: it was blocked, or waited for a
              * processor */

#define LS_SAMPLE_BLOCKED     0x40 /* luasample stack: the thread was blocked in the kernel */
#define LS_SAMPLE_SUSPENDED   0x80 /* luasample stack: a coroutine that nobody runs */

#define LS_SPAN_INSTANT 0u              /* phase of a span: an instant */

/* Flags of an attempt of the JIT compiler: what came of it, and what it began at. */
#define LS_ATTEMPT_COMPILED    0x01     /* it became a trace */
#define LS_ATTEMPT_BLACKLISTED 0x02     /* it was the last at this place: LuaJIT has given it up */
#define LS_ATTEMPT_LOOP        0x04     /* began at a loop */
#define LS_ATTEMPT_FUNCTION    0x08     /* began at the entry of a function */
#define LS_ATTEMPT_SIDE        0x10     /* began at the exit of a trace */
#define LS_ATTEMPT_STITCHED    0x20     /* compiled as far as a call that cannot be */
#define LS_ATTEMPT_FLAGS       0x3f

/* Why LuaJIT has thrown away all that it had compiled. */
enum ls_jit_flush { LS_JIT_FLUSH_TRACES, LS_JIT_FLUSH_CODE, LS_JIT_FLUSH_PROGRAM,
                    LS_JIT_FLUSH_METATABLE, LS_JIT_FLUSHES };

/* Line checks in compiled code: LuaJIT's modes l and f, or none. */
enum ls_scope { LS_SCOPE_LINE, LS_SCOPE_FUNCTION, LS_SCOPE_NONE };

/* How stacks are read: see docs/capture.md. In files and options by these names, in this
 * order. */
enum ls_engine_kind { LS_ENGINE_AUTO, LS_ENGINE_WALK, LS_ENGINE_HOOK };

/* How the walk engine names the place inside compiled code. */
enum ls_jit_leaf { LS_JIT_LEAF_MAP, LS_JIT_LEAF_ROOT };

/* What a VM's collector does, as LuaJIT numbers it. */
enum ls_gc_phase {
#define LS_GC_PHASE(NAME, name, meaning) LS_GC_##NAME,
#include "formats/wire/gcphases.def"
#undef LS_GC_PHASE
        LS_GC_PHASES
};

/* What a counter of the trace counts: the program's own number, or of a VM. */
enum ls_counter_what {
        LS_COUNTER_OWN,
        LS_COUNTER_HEAP,
        LS_COUNTER_THRESHOLD,
        LS_COUNTER_PHASE,
        LS_COUNTER_CYCLES,
        LS_COUNTER_WHATS
};

enum ls_timer { LS_TIMER_PERF, LS_TIMER_HELPER, LS_TIMER_CPUTIME };

#endif
