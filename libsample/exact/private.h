/* What the parts of exact counting share. */
#ifndef LS_LIBSAMPLE_EXACT_PRIVATE_H
#define LS_LIBSAMPLE_EXACT_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "formats/wire/exact.h"
#include "libsample/exact/exact.h"
#include "libsample/layout.h"

/* Numbers of instructions, less that of FORI, which the VM's probe finds; verified by probe.c. */
enum {
        LS_OP_CALLMT = -10,
        LS_OP_CALLT = -9,
        LS_OP_ITERN = -7,
        LS_OP_RETM = -4,
        LS_OP_RET1 = -1,
        LS_OP_FORI = 0,
        LS_OP_FORL = 2,
        LS_OP_ITERL = 5,
        LS_OP_LOOP = 8,
        LS_OP_JLOOP = 10,
        LS_OP_FUNCF = 12,
        LS_OP_FUNCV = 15,
        LS_OP_END = 18,
};
#define LS_OPS_MOST 256u
#define LS_DISPATCH_CALL 1u             /* bits of dispatchmode: hooks of calls, */
#define LS_DISPATCH_RET  2u             /* of returns, */
#define LS_DISPATCH_INS  4u             /* of all instructions, or recording */
#define LS_TR_STARTINS   80             /* in a GCtrace: the instruction that it stands for */

struct ls_exact_facts {
        const char *why;                /* NULL = verified */
        uint32_t table;                 /* bytes from global_State to the dispatch table that the
                                         * interpreter uses */
        uint32_t fixed;                 /* and from there to the one that hooks go on by */
        int code_prot;                  /* protection of compiled code */
        const char *why_interpreter;    /* NULL = compiled code can be counted too */
        uint8_t op_ir_loop;             /* number of the intermediate instruction LOOP */
};
extern struct ls_exact_facts ls_exact_facts;

struct ls_exact_snap {
        uint64_t pc;
        uint32_t ref, before;
        uint32_t entries;               /* hash of its entries */
};

/* The last tail call that is not yet a call: its function's frame is that of the called one. */
struct ls_exact_tail { uint64_t pc, base, link, function; };

struct ls_exact {
        const char *global;
        void **table, **fixed;          /* the VM's dispatch tables */
        uint32_t vm_id;
        uint8_t *stubs;                 /* a page of slots (what a stub goes on to), then code */
        uint8_t *stub[LS_OPS_MOST];
        uint8_t *near, *near_used;      /* code for traces, and for exits at its start */
        struct ls_exact_callers *callers;       /* who calls whom (calls.c); NULL = that is not
                                                 * wanted */
        struct ls_exact_tail tail;
        struct ls_exact_times *times;   /* times.c; not NULL = nothing else is counted, and nothing
                                         * becomes hot */
        uint64_t **exits;               /* by trace number: counters of its exits */
        uint32_t *trace_id;             /* by trace number: id of the trace that has it now */
        uint64_t **returns;             /* by trace number: see LS_EXACT_COUNTS_RETURN */
        uint16_t *returning;            /* the numbers of those that have one */
        size_t nreturning, returning_room;
        uint8_t group_done[16];         /* exit stubs that count */
        void *scratch;                  /* of sites.c */
        /* the trace that is being recorded */
        struct ls_exact_event *events;
        uintptr_t last_pc;
        size_t nevents, events_room;
        struct ls_exact_snap *snaps;
        size_t nsnaps, snaps_room;
        uint32_t parent, exit;          /* number of its parent, 0 = none */
        struct ls_exact_event start;
        uintptr_t start_pc;
        int incomplete;
        struct ls_exact_figures figures;
        struct ls_exact *next;
};

/* stubs.c */
/* NULL, or why there are none; nothing is left then. */
const char *ls_exact_make_stubs(struct ls_exact *x);
void ls_exact_free_stubs(struct ls_exact *x);
/* Puts the stubs where they belong, whatever the VM has there now. Stores only: also in a signal
 * handler, where LuaJIT's own profiler changes the tables. */
void ls_exact_apply(struct ls_exact *x);

/* open.c */
struct ls_exact *ls_exact_of(const char *global);

/* memory.c */
extern struct ls_exact_head *ls_exact_head;     /* NULL = nothing is mapped */
extern char *ls_exact_cells;
extern uint64_t *ls_exact_counters;             /* near the VM's code: compiled code reaches them by
                                                 * a displacement */
/* n counters in a row: their first number, 0 = there are no more. */
uint32_t ls_exact_new_counters(uint32_t n);
/* Room for a record of size bytes in the log, which ls_exact_log_end makes part of it. NULL = there
 * is none. The log is locked in between. */
void *ls_exact_log_begin(uint32_t size);
void ls_exact_log_end(void);

/* The cell of the instruction before pc; NULL = it has none. */
static inline uint64_t *ls_exact_cell(uintptr_t pc)
{
        uint64_t at = pc - ls_exact_head->low;

        return at >> LS_EXACT_WINDOW_BITS ? NULL : (uint64_t *)(ls_exact_cells + 2 * at);
}

/* protos.c */

/* Called by the stub of a function's header when the function is not the one that was there before.
 * pc is behind the header, base the frame's. */
void ls_exact_meet(struct ls_exact *x, const char *pc, const uint64_t *base, lua_State *L);
/* Describes a prototype that was not met, or is not the one that was there. Returns its id, 0 = it
 * has none. */
uint32_t ls_exact_describe(struct ls_exact *x, const char *pt);
/* Id of a prototype that was met; 0 = it was not. */
uint32_t ls_exact_proto_id(const char *pt);
/* How many are gone: what was known by their addresses before is not true any more, in any VM. */
extern _Atomic unsigned ls_exact_protos_gone;
/* What is in [from, to) is no prototype. */
void ls_exact_no_proto(uintptr_t from, uintptr_t to);
void ls_exact_protos_after_fork(void);

/* calls.c */

/* What the stub of a header looks into, by the link of the frame and the pc behind the header:
 * entry ((link + 2 * pc) / 4) % LS_EXACT_CACHE. */
#define LS_EXACT_CACHE 1024u
struct ls_exact_cached { uint64_t link, pc; uint64_t *times; uint64_t pad; };

struct ls_exact_callers *ls_exact_callers_new(void);
void ls_exact_callers_free(struct ls_exact_callers *c);
/* Of LS_EXACT_CACHE entries. */
struct ls_exact_cached *ls_exact_cache(struct ls_exact_callers *c);
/* Called by the stub of a header whose call is not in the cache. */
void ls_exact_called(struct ls_exact *x, const char *pc, const uint64_t *base, lua_State *L);

/* times.c */

#define LS_EXACT_TIME_TRIAL 100u /* in place of LS_EXACT_TIME: in a VM that is no program's */
struct ls_exact_times *ls_exact_times_new(int trial);
void ls_exact_times_free(struct ls_exact_times *t);
/* Numbers of the headers that switch coroutines: resume, yield and what wrap makes. 0 = not
 * known. */
extern uint8_t ls_exact_switch_ops[3];
/* Called by stubs: of headers; of returns and tail calls; of headers that switch. */
void ls_exact_enters(struct ls_exact *x, const char *pc, const uint64_t *base, lua_State *L);
void ls_exact_returns(struct ls_exact *x, const char *pc, const uint64_t *base, lua_State *L);
void ls_exact_switches(struct ls_exact *x, const char *pc, const uint64_t *base, lua_State *L);

/* sites.c */

int ls_exact_code_is_writable(const void *at, size_t n);
/* Lets the exits of all traces count. 0 or -1. */
int ls_exact_count_exits(struct ls_exact *x);
struct ls_exact_sites {
        uint32_t entries, iterations;   /* counters, 0 = none */
        uint16_t nhead, nloop;
        uint16_t head[256], loop[256];  /* exits before them */
};
/* Puts counters into a new trace (a GCtrace). */
void ls_exact_count_trace(struct ls_exact *x, const char *trace, struct ls_exact_sites *ret);
/* All traces are gone, and with them what was put into them. */
void ls_exact_sites_flushed(struct ls_exact *x);

/* traces.c: what LuaJIT tells of its compiler. L: whose stack has the arguments of the event
 * "trace" or "record" */
void ls_exact_on_trace(struct ls_exact *exact, lua_State *L, const char *what);
void ls_exact_on_record(struct ls_exact *exact, lua_State *L);

/* Takes what was counted for traces that lie in [from, to), and not any more. */
void ls_exact_take_returns(struct ls_exact *x, uintptr_t from, uintptr_t to);

#endif
