/* Byte ring between one sampled thread and the drainer, and the records in it. The writer side may
 * run in a signal handler and may interrupt itself; the reader is another process and trusts
 * nothing in here.
 *
 * Positions grow without bound; position & (size - 1) is the offset. A record is 8-aligned, starts
 * with struct ls_ring_rec and never wraps (a PAD record fills the end). The writer puts the header
 * before it moves head, and marks it done after the body; so what lies between tail and head always
 * has a valid header, and an unfinished record can be skipped once in_write is 0 (its writer is
 * gone).
 *
 * The header is one 64-bit word that holds the record's position: no two records ever have the same
 * one. So a writer that was interrupted by a handler between its look at head and its header finds,
 * by compare-and-exchange, that the place was taken, even when the handler's record looks like one
 * of the lap before. */
#ifndef LS_WIRE_RING_H
#define LS_WIRE_RING_H

#include <stdatomic.h>
#include <stdint.h>

#include "formats/wire/kinds.h"

#define LS_RING_DONE 1u                 /* committed */
#define LS_RING_OPEN 2u                 /* reserved, being filled */
/* The state of the record at this position; anything else there is damage. */
#define LS_RING_STATE(position, how) ((uint32_t)(position) | (how))

struct ls_ring_rec {                    /* header of every record in a ring */
        _Atomic uint32_t state;         /* LS_RING_STATE of its position */
        uint32_t size_kind;             /* bytes of the record with this header (multiple of 8) << 8
                                         * | kind */
};
_Static_assert(sizeof(struct ls_ring_rec) == 8, "ring record header is 8 bytes");

#define LS_RING_SIZE(sk) ((sk) >> 8)
#define LS_RING_KIND(sk) ((sk) & 0xff)
#define LS_RING_SIZE_KIND(size, kind) (((uint32_t)(size) << 8) | (uint32_t)(kind))

struct ls_ring {                        /* head of a ring; size bytes of records follow at offset
                                         * LS_RING_DATA */
        _Atomic uint64_t head;          /* writer's: end of the last reservation */
        uint64_t pad0[7];
        _Atomic uint64_t tail;          /* reader's: all before it is consumed */
        uint64_t pad1[7];
        uint32_t size;                  /* bytes, a power of two, set by the recorder; the writer
                                         * checks it once */
        _Atomic uint32_t tid;           /* thread that owns the ring, 0 = free */
        _Atomic uint32_t in_write;      /* nesting of unfinished writes on that thread */
        uint32_t pad2;
        _Atomic uint64_t last_cpu_ns;   /* thread's CPU clock at its last tick */
        _Atomic uint64_t ticks;         /* ticks of interval seen (weight), lost ones too */
        _Atomic uint64_t signals;       /* tick signals handled */
        _Atomic uint64_t armed_cpu_ns;  /* CPU time of the thread while armed, added up at each
                                         * disarm */
        /* The thread's ticks: what the agent wants, and what the recorder does about it. */
        _Atomic uint32_t armed;         /* agent: 1 while ticks are wanted on tid */
        _Atomic uint32_t claim;         /* agent: counts the threads that have had this ring */
        _Atomic uint32_t closing;       /* agent: 1 when its thread has ended; the recorder, when it
                                         * has drained the ring and holds nothing for it, stores 0
                                         * here and in tid: the ring is free again */
        _Atomic uint32_t sending;       /* recorder: 1 while it may be between its check of armed
                                         * and the signal */
        _Atomic uint32_t ticks_handled; /* agent: counts handled signals; none is sent while one is
                                         * outstanding */
        _Atomic uint32_t ticked;        /* recorder: 1 from before its first tick to the ring's
                                         * thread until after the last */
        _Atomic uint64_t disarmed_ns;   /* agent: CLOCK_MONOTONIC when ticks were last given up */
        _Atomic uint64_t paused_cpu_ns; /* of armed_cpu_ns, whole intervals that passed while the
                                         * recorder wanted no ticks */
        _Atomic uint64_t thread;        /* agent: where its struct ls_thread is in the program, for
                                         * the watcher; 0 = none */
        _Atomic uint64_t armed_at_cpu_ns;       /* agent: the thread's CPU clock when it was
                                                 * armed */
        _Atomic uint64_t sent_ns;       /* recorder: CLOCK_MONOTONIC of the last tick that it sent
                                         * itself */
        _Atomic uint64_t sent_cpu_ns;   /* recorder: the thread's CPU clock then, exact when it did
                                         * not run; 0 = not known */
};
#define LS_RING_DATA 4096u              /* offset of the records from struct ls_ring */
_Static_assert(sizeof(struct ls_ring) <= LS_RING_DATA, "ring head fits its page");

/* Bodies. Strings follow the fixed part without terminator, padded with zeros to 8. Ids are dense
 * from 1 within the recording (one agent process); 0 = none. */

struct ls_rec_source {                  /* SOURCE, before the first function of the chunk */
        uint32_t source_id;
        uint32_t name_len;              /* name: Lua's chunk name ('@file', '=name', or the text
                                         * itself, cut to 4 KiB) */
        uint64_t text_hash;             /* of the whole chunk name: tells texts apart within the
                                         * recording */
        uint32_t text_len;              /* bytes of text that TEXT records will carry; 0 = none */
        uint32_t pad;
};
_Static_assert(sizeof(struct ls_rec_source) == 24, "SOURCE is 24 bytes");

struct ls_rec_text {                    /* TEXT: a piece of a source's text */
        uint32_t source_id;
        uint32_t offset;
        uint32_t len;                   /* bytes that follow */
        uint32_t total;
};
_Static_assert(sizeof(struct ls_rec_text) == 16, "TEXT is 16 bytes");

struct ls_rec_function {                /* FUNCTION, before its first use in a frame */
        uint32_t func_id;
        uint8_t kind;                   /* enum ls_function_kind */
        uint8_t flags;                  /* LS_FUNCF_* */
        uint16_t name_len;              /* PSEUDO and BUILTIN: the name follows; else 0 */
        uint32_t source_id;             /* LUA */
        uint32_t first_line;            /* 0 for a main chunk */
        uint32_t last_line;
        uint32_t ffid;                  /* BUILTIN: number of the fast function in this build */
        uint64_t hash;                  /* LUA: of bytecode and constants, not changed by the JIT
                                         * compiler */
        uint64_t addr;                  /* C: address in the process */
};
_Static_assert(sizeof(struct ls_rec_function) == 40, "FUNCTION is 40 bytes");

struct ls_rec_name {                    /* NAME: replaces a name of lower rank */
        uint32_t func_id;
        uint16_t rank;                  /* enum ls_name_rank */
        uint16_t name_len;
};
_Static_assert(sizeof(struct ls_rec_name) == 8, "NAME is 8 bytes");

struct ls_rec_zone {                    /* ZONE: sent before its first use */
        uint32_t zone_id;
        uint32_t parent_id;             /* enclosing zone, 0 = outermost; always sent before */
        uint32_t name_len;
        uint32_t pad;
};
_Static_assert(sizeof(struct ls_rec_zone) == 16, "ZONE is 16 bytes");

struct ls_rec_label {                   /* LABEL: sent before its first use; replaces one of the
                                         * same id */
        uint32_t label_id;
        uint32_t parent_id;             /* label that holds too, 0 = none; always sent before */
        uint32_t key_len, value_len;    /* key, then value */
};
_Static_assert(sizeof(struct ls_rec_label) == 16, "LABEL is 16 bytes");

struct ls_rec_thread {                  /* THREAD */
        uint32_t thread_id;
        uint32_t tid;
        uint32_t name_len;
        uint32_t pad;
};
_Static_assert(sizeof(struct ls_rec_thread) == 16, "THREAD is 16 bytes");

struct ls_rec_vm {                      /* VM */
        uint32_t vm_id;
        uint32_t flags;                 /* LS_VMF_* */
        uint32_t name_len;              /* runtime and version, "LuaJIT 2.1.0-beta3" */
        uint32_t pad;
};
_Static_assert(sizeof(struct ls_rec_vm) == 16, "VM is 16 bytes");
#define LS_VMF_PROBED 0x01 /* its layout was probed and verified: stacks are read raw */
#define LS_VMF_JIT    0x02              /* has a JIT compiler */

struct ls_rec_coroutine {               /* COROUTINE: 0 is the main one, sent for others before
                                         * first use */
        uint32_t coroutine_id;
        uint32_t func_id;               /* body */
        uint32_t generation;            /* 1, 2, ... per body; 0 = one of many short ones, not told
                                         * apart */
        uint32_t vm_id;
        uint64_t address;               /* of its lua_State: the watcher and the agent may both
                                         * describe it; 0 = many */
};
_Static_assert(sizeof(struct ls_rec_coroutine) == 24, "COROUTINE is 24 bytes");

struct ls_rec_mapping {                 /* MAPPING: an executable segment */
        uint64_t start;                 /* addresses in the process */
        uint64_t end;
        uint64_t file_offset;
        uint32_t path_len;              /* path, then build id */
        uint32_t build_id_len;
};
_Static_assert(sizeof(struct ls_rec_mapping) == 32, "MAPPING is 32 bytes");

struct ls_rec_region {                  /* REGION: the program's luasample.start and stop */
        uint64_t time_ns;
        uint64_t cpu_ns;
        uint32_t begin;                 /* 1 = start, 0 = stop */
        uint32_t name_len;
};
_Static_assert(sizeof(struct ls_rec_region) == 24, "REGION is 24 bytes");

struct ls_rec_span {                    /* SPAN: the program's luasample.mark */
        uint64_t time_ns;
        uint32_t phase;                 /* LS_SPAN_INSTANT */
        uint32_t name_len;
};
_Static_assert(sizeof(struct ls_rec_span) == 16, "SPAN is 16 bytes");

struct ls_rec_count {                   /* COUNT: the program's luasample.counter */
        uint64_t time_ns;
        uint64_t value;                 /* bits of a double */
        uint32_t counter;               /* index in the memory's table (counters.h) */
        uint32_t pad;
};
_Static_assert(sizeof(struct ls_rec_count) == 24, "COUNT is 24 bytes");

/* HEAP: sent when it has changed by more than a little since the VM's last. */
struct ls_rec_heap {
        uint64_t time_ns;               /* of the tick that read it, as its sample has it */
        uint64_t total;                 /* bytes of all objects */
        uint64_t threshold;             /* bytes at which the collector goes on */
        uint32_t vm_id;
        uint8_t phase;                  /* enum ls_gc_phase */
        uint8_t white;                  /* of new objects: 1 or 2, the other one after each cycle's
                                         * atomic phase */
        uint8_t pad[2];
};
_Static_assert(sizeof(struct ls_rec_heap) == 32, "HEAP is 32 bytes");

struct ls_rec_notice {                  /* NOTICE: one sentence */
        uint32_t len;
        uint32_t pad;
};
_Static_assert(sizeof(struct ls_rec_notice) == 8, "NOTICE is 8 bytes");

struct ls_frame {                       /* one frame of a stack in a ring */
        uint32_t func_id;
        uint32_t line;                  /* current line, 0 = none or not known */
};
_Static_assert(sizeof(struct ls_frame) == 8, "a frame is 8 bytes");

struct ls_rec_sample {                  /* SAMPLE */
        uint64_t time_ns;               /* CLOCK_MONOTONIC of the last tick in it */
        uint64_t cpu_ns;                /* thread's CPU clock at that tick; of an allocation: its
                                         * bytes */
        uint32_t weight[LS_NVMSTATES];  /* ticks by VM state; their sum is the sample's weight. Of
                                         * an allocation: 1 */
        uint32_t kernel_delayed;        /* of these, ticks that were seen late */
        uint32_t event;                 /* enum ls_event_kind */
        uint32_t flags;                 /* LS_SAMPLE_* */
        uint32_t vm_id;
        uint32_t coroutine_id;
        uint32_t zone_id;
        uint32_t keep;                  /* root frames that equal those of the SAMPLE before it in
                                         * this ring */
        uint32_t nframes;               /* frames that follow, leaf first; the kept root part comes
                                         * after them */
        uint32_t cut;                   /* frames left out between those that follow and the kept
                                         * ones */
        uint32_t jit_id;                /* trace that the innermost frame runs in (JITTRACE), 0 =
                                         * none. Then that frame is the function that the trace
                                         * starts in, or for a side trace its root's */
        uint32_t jit_offset;            /* place in the trace's machine code; LS_JIT_NO_OFFSET =
                                         * somewhere in it */
        uint32_t native_size;           /* bytes of struct ls_native and what belongs to it, after
                                         * the frames; 0 = none */
        uint32_t like;                  /* enum ls_like: whose stack it has, when it brings none */
        uint32_t label_id;              /* LABEL, 0 = none */
        uint32_t place;                 /* of a suspended coroutine: with a stack, the number that
                                         * it has from here on; with LS_LIKE_PLACE the stack of that
                                         * number. 0 = none. Of an allocation: its number in the
                                         * process, 0 = its end is not told */
        uint32_t callee_id;             /* FUNCTION of the C function that the code of the trace has
                                         * called through the FFI, 0 = none is known */
        uint32_t type;                  /* enum ls_objtype, of an allocation */
};
_Static_assert(sizeof(struct ls_rec_sample) == 104, "SAMPLE is 104 bytes");
#define LS_JIT_NO_OFFSET UINT32_MAX

/* A sample without a stack of its own, as the watcher of blocked threads sends: it has no frames,
 * and stack, coroutine, zone and VM are those of another. */
enum ls_like {
        LS_LIKE_NONE,
        LS_LIKE_RING,                   /* the SAMPLE with a stack before it in this ring */
        LS_LIKE_THREAD,                 /* the thread's last sample before it in time, in whatever
                                         * ring */
        LS_LIKE_PLACE,                  /* the stack alone: that of the sample with this place
                                         * before it in this ring */
};

/* The native stack of a sample: registers, places where Lua and C alternate, and a copy of the
 * memory. */
struct ls_native {
        uint64_t ip, sp, bp, bx, r12, r13, r14, r15;
        uint32_t ncframes;              /* struct ls_native_cframe follow, innermost first */
        uint32_t nbytes;                /* then so many bytes of the stack, from sp up; multiple of
                                         * 8 */
        uint32_t keep;                  /* then come so many bytes that equal the outermost ones of
                                         * the native stack before it in this ring */
        uint32_t cut;                   /* 1 = the stack goes on beyond these */
};
_Static_assert(sizeof(struct ls_native) == 80, "a native stack's head is 80 bytes");

struct ls_native_cframe {               /* one activation of the Lua interpreter in the C stack */
        uint64_t address;               /* of its C frame: saved registers and return address lie
                                         * above it */
        uint32_t frames;                /* Lua frames of this sample that lie above it, those of
                                         * cframes before included: the native frames between this
                                         * and the one before go above these */
        uint32_t pad;
};
_Static_assert(sizeof(struct ls_native_cframe) == 16, "a C frame is 16 bytes");

/* JITTRACE: what the map of a trace is made from. Ids are the process's own and may be used by
 * samples of any ring, also before this record was read. After the head, each 8-aligned: uint32_t
 * functions[nfunctions] (ids of FUNCTION in this ring; padded to 8), struct ls_jit_event[nevents],
 * struct ls_jit_snapshot[nsnapshots], uint64_t ir[nir], code[mcode_size]. */
struct ls_rec_jittrace {
        uint32_t jit_id;                /* dense from 1 */
        uint32_t vm_id;
        uint32_t number;                /* LuaJIT's number of it, used again after a flush */
        uint32_t root;                  /* number of its root trace, 0 = is a root */
        uint32_t parent_id;             /* jit_id of the trace that it leaves, 0 = none or not
                                         * known */
        uint32_t parent_exit;           /* exit of the parent */
        uint32_t link;                  /* number of the trace that it goes on to, 0 = none */
        uint32_t link_kind;             /* LuaJIT's number of the kind of link */
        uint32_t start_function;        /* index in functions[], 0xffffffff = not known */
        uint32_t start_line;            /* 0 = not known */
        uint32_t start_pos;             /* of the bytecode that it starts with */
        uint32_t flags;                 /* LS_JITF_* */
        uint64_t mcode;                 /* address of its machine code */
        uint32_t mcode_size;            /* bytes */
        uint32_t mcode_loop;            /* offset of its loop, 0 = none */
        uint32_t spadjust;              /* bytes that it takes from the C stack */
        uint32_t nir;                   /* IR instructions from reference 0x8000 (REF_BASE) on */
        uint32_t nsnapshots;
        uint32_t nevents;
        uint32_t nfunctions;
        uint32_t pad;
};
_Static_assert(sizeof(struct ls_rec_jittrace) == 88, "JITTRACE is 88 bytes");
#define LS_JITF_MAP 0x01                /* events were recorded: a map can be made */
#define LS_JITF_SNAPSHOTS                                                                          \
        0x02 /* they are the bytecodes of its snapshots: nobody watched while it was recorded */

struct ls_jit_event {                   /* a bytecode as it was recorded */
        uint16_t ref;                   /* IR reference reached before it, less 0x8000 */
        uint16_t function;              /* index in functions[]; 0xffff = a C function or a builtin
                                         * that is not known */
        uint16_t depth;                 /* inlined calls above the start */
        uint16_t pad;
        uint32_t pos;                   /* of the bytecode in its function */
        uint32_t line;                  /* 0 = not known */
};
_Static_assert(sizeof(struct ls_jit_event) == 16, "a recorded bytecode is 16 bytes");

struct ls_jit_snapshot {
        uint16_t ref;                   /* first IR reference after it, less 0x8000 */
        uint16_t mcofs;                 /* offset in the machine code */
        uint16_t function;              /* of the bytecode that an exit goes on with; index in
                                         * functions[], 0xffff = unknown */
        uint16_t nframes;               /* inlined frames that an exit restores */
        uint32_t pos;                   /* of that bytecode */
        uint32_t line;
};
_Static_assert(sizeof(struct ls_jit_snapshot) == 16, "a snapshot is 16 bytes");

struct ls_rec_free {                    /* FREE: uint32_t numbers of allocations follow */
        uint64_t time_ns;               /* CLOCK_MONOTONIC, a little later than they were freed */
        uint32_t vm_id;                 /* all of this VM are, 0 = of none */
        uint32_t n;
};
_Static_assert(sizeof(struct ls_rec_free) == 16, "FREE is 16 bytes");

struct ls_rec_irnames {                 /* IRNAMES: the text of jit.vmdef.irnames, 6 bytes a name,
                                         * follows */
        uint32_t vm_id;
        uint32_t len;
};
_Static_assert(sizeof(struct ls_rec_irnames) == 8, "IRNAMES is 8 bytes");

struct ls_rec_attempt {                 /* ATTEMPT: LuaJIT tried to compile, and has ended it */
        uint32_t vm_id;
        uint32_t flags;                 /* LS_ATTEMPT_* */
        uint32_t start_function, start_line;    /* where it began; 0 = not known */
        uint32_t first_line, last_line; /* of the loop or function that it began at; 0 = of
                                         * neither */
        uint32_t stop_function, stop_line;      /* where it ended */
        uint32_t about;                 /* FUNCTION that the reason is about, 0 = none */
        uint32_t ns;                    /* that it took */
        uint32_t bytecodes;             /* that it had looked at */
        uint32_t reason_len;            /* LuaJIT's words for why it was given up follow; 0 = it was
                                         * not */
};
_Static_assert(sizeof(struct ls_rec_attempt) == 48, "ATTEMPT is 48 bytes");

#endif
