/* The JIT traces of a VM, in LuaJIT's memory and in the table of live ones that the tick handler
 * reads. jit/events.c hears LuaJIT's events, jit_find.c finds traces that nobody told of,
 * jit_send.c writes a trace's definition, jit_locate.c looks a place up. */
#ifndef LS_LIBSAMPLE_HANDLER_JIT_TRACES_H
#define LS_LIBSAMPLE_HANDLER_JIT_TRACES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "libsample/handler/vms.h"
#include "libsample/seen.h"

/* Byte offsets in a GCtrace, a snapshot and an IR instruction; the same in all builds of 2.1 for
 * x86-64 with GC64, and compared with jit.util's answers by the probe. jit_State begins with a
 * GCtrace: the one being recorded. */
enum {
        LS_TR_NSNAP = 10,
        LS_TR_NINS = 12,
        LS_TR_IR = 32,
        LS_TR_NK = 40,
        LS_TR_SNAP = 48,
        LS_TR_SNAPMAP = 56,
        LS_TR_STARTPT = 64,
        LS_TR_STARTPC = 72,
        LS_TR_MCODE_SIZE = 84,
        LS_TR_MCODE = 88,
        LS_TR_MCLOOP = 96,
        LS_TR_SPADJUST = 102,
        LS_TR_NUMBER = 104,
        LS_TR_LINK = 106,
        LS_TR_ROOT = 108,
        LS_TR_LINKTYPE = 116,
        LS_TR_SIZE = 120,
        LS_SNAP_MAPOFS = 0,
        LS_SNAP_REF = 4,
        LS_SNAP_MCOFS = 6,
        LS_SNAP_NSLOTS = 8,
        LS_SNAP_NENT = 10,
        LS_SNAP_SIZE = 12,
        LS_IR_OP1 = 0,
        LS_IR_OP2 = 2,
        LS_IR_TYPE = 4,
        LS_IR_OP = 5,
        LS_IR_SIZE = 8,
};
#define LS_REF_BIAS 0x8000u /* reference of the first instruction; constants lie below */
#define LS_SNAP_SLOT(entry) ((entry) >> 24)
#define LS_SNAP_FRAMES 0x30000u /* an entry that begins an inlined frame or is a continuation */

/* Exit stubs: a group of 32, each a push of the exit's low byte and a jump to the group's end,
 * which pushes the high byte and jumps to the exit handler. */
enum {
        LS_STUBS_PER_GROUP = 32,
        LS_STUB_SIZE = 4,
        LS_STUB_HIGH = 126,
        LS_STUB_JUMP = 128,
        LS_STUBS_SIZE = 133,
        LS_STUB_GROUPS = 16
};

/* The C stack in compiled code: two saved registers below the interpreter's C frame, the trace's
 * own bytes, and the return address when it has called out. */
#define LS_TRACE_SAVED 16u

struct ls_jit_places {                  /* offsets from global_State */
        unsigned vmstate, jit_base;
        unsigned state;                 /* jit_State */
        unsigned pc;                    /* in it: pc, fn, pt of the bytecode being recorded */
        unsigned traces, ntraces;       /* in it: array of traces by number, and its length */
        unsigned stubs;                 /* in it: addresses of the groups of exit stubs; 0 = not
                                         * known */
        uintptr_t exit_handler;         /* address of what the stubs jump to */
        /* in it, 32 bits each, 0 = not known: whether the compiler is on (bit 0), and the -O
         * parameters */
        unsigned flags, maxtrace, maxmcode, hotloop, hotexit;
};

enum { LS_JIT_FUNCTIONS_MOST = 256 };  /* different ones in a trace; more are sent as not known */

struct ls_jit_functions {               /* of the trace that is being sent */
        uint64_t key[LS_JIT_FUNCTIONS_MOST];
        uint32_t id[LS_JIT_FUNCTIONS_MOST];
        unsigned n;
};

struct ls_jit_entry {                   /* a live trace, by number */
        _Atomic uint32_t jit_id;        /* 0 = none. Stored last, cleared first */
        uint32_t mcode_size;
        uintptr_t mcode;
        uint32_t spadjust;
        uint32_t falls_out;             /* 1 = ends with a jump to the interpreter */
        uint32_t calls_c;               /* 1 = it calls C functions through the FFI */
        uintptr_t start;                /* the bytecode that it starts with */
};
struct ls_jit_range {                   /* the same by address */
        uintptr_t mcode;
        uint32_t number;
};

enum { LS_JIT_CHUNK = 256, LS_JIT_CHUNKS = 256 };       /* trace numbers have 16 bits */

enum ls_jit_event_kind { LS_JIT_RECORD, LS_JIT_TRACE, LS_JIT_NEVENTS };

struct ls_jit_raw {                     /* a bytecode as it was recorded, and what was recorded of
                                         * it */
        uint64_t key;                   /* GCproto, or a C function: LS_JIT_C | address, or
                                         * LS_JIT_BUILTIN | ffid */
        uint32_t pos;
        uint16_t ref, depth;
        uint16_t function;              /* index in the record, when it is sent */
};
#define LS_JIT_C       (UINT64_C(1) << 63)
#define LS_JIT_BUILTIN (UINT64_C(1) << 62)

struct ls_jit_attempt {                 /* what is being compiled */
        uint64_t start;                 /* key of the function, 0 = nothing is */
        uint64_t begin_ns;
        const char *pc;                 /* bytecode; NULL = not one of a Lua function */
        uint32_t line, first_line, last_line, flags;
        uint32_t bytecodes;
};

struct ls_jit_ops {                     /* numbers of IR instructions; 0 = not known */
        uint8_t callxs, carg, fload, sload, retf;
};

struct ls_jit {
        /* read by the tick handler */
        _Atomic(const char *) global;   /* NULL = its VM is closing or closed */
        struct ls_jit_places at;
        _Atomic uint32_t changing;      /* odd while the tables below change */
        _Atomic(struct ls_jit_entry *) chunks[LS_JIT_CHUNKS];
        struct ls_jit_range *ranges;    /* sorted */
        uint32_t nranges, deepest;      /* largest spadjust of a live trace */
        uintptr_t exit_interp;          /* where traces go that end in the interpreter, 0 = not seen
                                         * yet */
        struct ls_jit_ops ops;
        uint8_t kgc;                    /* numbers of IR instructions: a constant that is an
                                         * object, */
        uint8_t wide[4];                /* and other constants of two words; 0 = there is none */
        /* normal context, the VM's thread */
        size_t ranges_room;
        struct ls_vm *vm;
        int map;                        /* 1 = events are recorded, or made of what is found */
        int finds;                      /* 1 = nobody tells of traces: jit_find.c; then all of this
                                         * is the handler's */
        const char *irnames;
        uint32_t nirnames;              /* bytes */
        struct ls_jit_functions functions;
        uint8_t chained[LS_JIT_NEVENTS];/* the program has a handler of its own */
        int sent_irnames;
        struct ls_jit_raw *events;      /* of the trace that is being recorded */
        size_t nevents, events_room;
        uint32_t number;                /* of that trace, 0 = none */
        int incomplete;                 /* 1 = an event of it is missing */
        uint32_t parent, exit;          /* of that trace */
        struct ls_jit_attempt attempt;
        int code_full;                  /* 1 = the last one was given up since there is no more room
                                         * for code */
        uint64_t told_ns;               /* attempts that may be described: one for each TELL_NS
                                         * (jit/attempts.c) that this is before now */
        uint32_t timed;                 /* events since one was timed */
        uint64_t own_ns;                /* spent on events, not yet accounted */
        struct ls_jit *next;            /* in the list of unused ones */
};

/* The entry of a trace number, NULL = none yet. Any context. */
static inline struct ls_jit_entry *ls_jit_entry(const struct ls_jit *jit, uint32_t number)
{
        struct ls_jit_entry *chunk;

        if (number >= LS_JIT_CHUNK * LS_JIT_CHUNKS)
                return NULL;
        chunk = LS_LOAD(jit, chunks[number / LS_JIT_CHUNK], memory_order_acquire);
        return chunk ? chunk + number % LS_JIT_CHUNK : NULL;
}

/* 1 when the IR of a trace (a GCtrace) has an instruction of this number; 0 for number 0. Any
 * context. */
static inline int ls_jit_has_op(const char *trace, uint8_t op)
{
        uint32_t n = LS_READ(uint32_t, trace, LS_TR_NINS);
        const char *ir = LS_READ(const char *, trace, LS_TR_IR);

        for (uint32_t ref = LS_REF_BIAS; op && ref < n; ref++)
                if (LS_READ(uint8_t, ir + (size_t)ref * LS_IR_SIZE, LS_IR_OP) == op)
                        return 1;
        return 0;
}

/* Normal context, or the handler where nobody tells of traces: */

/* Adds a trace (a GCtrace), in place of one with its number; jit_id 0 = only that one goes. Returns
 * 0 or -ENOMEM: then it is not there. */
int ls_jit_add(struct ls_jit *jit, uint32_t number, uint32_t jit_id, const char *trace);
/* All traces are gone. */
void ls_jit_flush(struct ls_jit *jit);
void ls_jit_free_tables(struct ls_jit *jit);

#endif
