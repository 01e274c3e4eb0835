/* Exact counts of a process, in one piece of shared memory: the agent writes it (libsample/exact),
 * formats/exact/flow.c works out from it how often each bytecode was executed. It outlives the
 * process, and is not shared with a forked child.
 *
 * Four areas, each of them sparse: this head; the log, records one behind the other; the counters
 * of compiled code, 8 bytes each; and the cells of the interpreter: 8 bytes for each 4 bytes of the
 * addresses from head.low on. An instruction at address a has the cell at LS_EXACT_CELLS + 2 * (a +
 * 4 - low). */
#ifndef LS_FORMATS_WIRE_EXACT_H
#define LS_FORMATS_WIRE_EXACT_H

#include <stdatomic.h>
#include <stdint.h>

#define LS_EXACT_WINDOW_BITS 36         /* bytes of addresses that have cells, as a power of two */
#define LS_EXACT_WINDOW   (UINT64_C(1) << LS_EXACT_WINDOW_BITS)
#define LS_EXACT_LOG      UINT64_C(4096)
#define LS_EXACT_LOG_SIZE (UINT64_C(1) << 28)
#define LS_EXACT_COUNTERS (LS_EXACT_LOG + LS_EXACT_LOG_SIZE)
#define LS_EXACT_COUNTERS_MOST (UINT64_C(1) << 23)
#define LS_EXACT_CELLS    (LS_EXACT_COUNTERS + 8 * LS_EXACT_COUNTERS_MOST)
#define LS_EXACT_SIZE     (LS_EXACT_CELLS + 2 * LS_EXACT_WINDOW)

/* What is wanted: which bytecodes are executed, or how often, in compiled code too; or the time of
 * calls, with nothing compiled. */
enum ls_exact_want { LS_EXACT_NOTHING, LS_EXACT_COVERAGE, LS_EXACT_ALL, LS_EXACT_TIME };

struct ls_exact_head {
        uint64_t low;                   /* address that the first cell belongs to */
        _Atomic uint64_t log_used;      /* bytes of whole records */
        _Atomic uint64_t counters_used; /* counter 0 is none */
        uint64_t outside;               /* instructions at addresses that have no cell: not
                                         * counted */
        _Atomic uint64_t lost;          /* traces and functions that are not in the log, for want of
                                         * memory */
        /* LS_EXACT_TIME: times are in units of its clock, the processor's time stamp counter, or
         * ns where that does not run evenly. */
        uint64_t clock_begin;           /* 0 = they are ns */
        uint64_t clock_begin_ns;        /* the same instant, CLOCK_MONOTONIC */
        uint64_t in_callee, in_caller;  /* what watching a call costs, that its own time and its
                                         * caller's have, in 1/LS_EXACT_COST of a unit */
        _Atomic uint32_t nodes;
};

enum ls_exact_kind {
        LS_EXACT_PROTO = 1,             /* struct ls_exact_proto, then the chunk's name, lines and
                                         * instructions */
        LS_EXACT_GONE,                  /* struct ls_exact_gone, then a count for each
                                         * instruction */
        LS_EXACT_TRACE,                 /* struct ls_exact_trace, then its arrays */
        LS_EXACT_CALLS,                 /* struct ls_exact_calls */
        LS_EXACT_NODE,                  /* struct ls_exact_node */
};

struct ls_exact_rec {
        uint32_t size;                  /* whole, a multiple of 8 */
        uint32_t kind;                  /* enum ls_exact_kind */
};

/* A prototype, when it is met first: at its first call, or with the function that it is written
 * in. */
struct ls_exact_proto {
        struct ls_exact_rec rec;
        uint32_t id;                    /* from 1 in the process */
        uint32_t vm_id;
        uint64_t code;                  /* address of its first instruction, the header */
        uint32_t n;                     /* instructions */
        int32_t first_line, last_line;
        uint32_t name_len;              /* of its chunk; padded to 4 bytes */
        uint32_t has_lines;             /* 1 = a line for each instruction follows, else it was
                                         * stripped */
        _Atomic uint32_t lost;          /* 1 = its cells are another's, and there was no room to say
                                         * what it had counted */
        uint64_t hash;                  /* of its definition, as in FUNCTION records */
        uint64_t name_hash;             /* of its chunk's name, as in SOURCE records */
        uint32_t flags;                 /* LS_FUNCF_* */
        uint8_t op_fori;                /* number of the instruction FORI, by which the others are
                                         * known */
        uint8_t pad;
        uint16_t function_len;          /* of the name that its definition gives it, 0 = none;
                                         * padded to 4 bytes */
        /* char name[]; char function[]; uint32_t lines[n]; uint32_t instructions[n] */
};

/* Another prototype is where one was: the cells of that one, which are its no longer. */
struct ls_exact_gone {
        struct ls_exact_rec rec;
        uint32_t id, n;
        /* uint64_t counts[n] */
};

/* Calls of a function that the interpreter did from one instruction. The agent goes on counting in
 * the record. */
struct ls_exact_calls {
        struct ls_exact_rec rec;
        uint32_t caller, pos;           /* prototype's id, and which instruction of it */
        uint32_t callee, pad;
        uint64_t times;
};

#define LS_EXACT_COST 256

/* Calls of a function on one path of callers. The agent goes on counting in the record. */
#define LS_EXACT_TOOK 64u
struct ls_exact_node {
        struct ls_exact_rec rec;
        uint32_t id;                    /* from 1 in the process: greater than its parent's */
        uint32_t parent;                /* 0 = no function of Lua's called it */
        uint32_t proto, pad;
        uint64_t calls, made;           /* of it; and by it, of other nodes or of itself */
        uint64_t self;                  /* its own time, with what watching costs */
        uint64_t longest;               /* call, with what it called, less what watching costs */
        uint64_t took[LS_EXACT_TOOK];   /* how many calls took 2^i and less than 2^(i + 1) */
};

/* What is left of an instruction in a trace's code: how often the trace was entered and how often
 * its loop ran is counted, and each exit. The rest follows. */
enum {
        LS_EXACT_LOOP = 1,              /* its code has a loop part */
        LS_EXACT_STARTS_WITH_ITSELF = 2,        /* it does the instruction that it stands for: RET,
                                                 * ITERN */
        LS_EXACT_AT_LEAST = 4,          /* a counter or an event is missing: its instructions are
                                         * not counted */
        LS_EXACT_COUNTS_RETURN = 8,     /* a return that is done from the trace's own copy has a
                                         * counter */
};
#define LS_EXACT_UNKNOWN UINT32_MAX /* in place of a prototype's id: a function that is not Lua's */

struct ls_exact_event { uint32_t proto, pos; };

struct ls_exact_trace {
        struct ls_exact_rec rec;
        uint32_t id;                    /* from 1 in the process: younger ones have greater ids */
        uint32_t vm_id, number;
        uint32_t parent, exit;          /* id of the trace that it leaves, 0 = none */
        uint32_t link;                  /* id of the trace that it goes on to, 0 = none */
        uint8_t link_kind;              /* as LuaJIT numbers them */
        uint8_t flags;                  /* LS_EXACT_* */
        uint16_t nbefore_head;          /* exits that lie before the counter of entries */
        uint16_t nbefore_loop;          /* and before the one of the loop */
        uint16_t nfirst;                /* snapshots before the loop part; all of them where there
                                         * is none */
        uint32_t nevents, nsnapshots;
        uint32_t entries, iterations;   /* counters */
        uint32_t exits;                 /* counter of the first exit; the others follow */
        uint32_t returns;               /* LS_EXACT_COUNTS_RETURN: counter of returns. The one
                                         * before holds the pc of the cell that counts more of them,
                                         * 0 = none any more */
        struct ls_exact_event start;    /* where it starts */
        /* struct ls_exact_event events[nevents]; uint32_t before[nsnapshots]: events that were done
         * when it is left there; uint16_t head[nbefore_head], loop[nbefore_loop] */
};

#endif
