/* Byte ring between one sampled thread and the drainer, and the records in it. The writer side may run in a signal
 * handler and may interrupt itself; the reader is another process and trusts nothing in here.
 *
 * Positions grow without bound; position & (size - 1) is the offset. A record is 8-aligned, starts with struct
 * ls_ring_rec and never wraps (a PAD record fills the end). The writer puts the header before it moves head, and marks
 * it done after the body; so what lies between tail and head always has a valid header, and an unfinished record can
 * be skipped once in_write is 0 (its writer is gone).
 *
 * The header is one 64-bit word that holds the record's position: no two records ever have the same one. So a writer
 * that was interrupted by a handler between its look at head and its header finds, by compare-and-exchange, that the
 * place was taken, even when the handler's record looks like one of the lap before. */
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
        uint32_t size_kind;             /* bytes of the record with this header (multiple of 8) << 8 | kind */
};
_Static_assert(sizeof(struct ls_ring_rec) == 8, "ring record header is 8 bytes");

#define LS_RING_SIZE(sk) ((sk) >> 8)
#define LS_RING_KIND(sk) ((sk) & 0xff)
#define LS_RING_SIZE_KIND(size, kind) (((uint32_t)(size) << 8) | (uint32_t)(kind))

struct ls_ring {                        /* head of a ring; size bytes of records follow at offset LS_RING_DATA */
        _Atomic uint64_t head;          /* writer's: end of the last reservation */
        uint64_t pad0[7];
        _Atomic uint64_t tail;          /* reader's: all before it is consumed */
        uint64_t pad1[7];
        uint32_t size;                  /* bytes, a power of two, set by the recorder; the writer checks it once */
        _Atomic uint32_t tid;           /* thread that owns the ring, 0 = free */
        _Atomic uint32_t in_write;      /* nesting of unfinished writes on that thread */
        uint32_t pad2;
        _Atomic uint64_t last_cpu_ns;   /* thread's CPU clock at its last tick */
        _Atomic uint64_t ticks;         /* ticks of interval seen (weight), lost ones too */
        _Atomic uint64_t signals;       /* tick signals handled */
        uint64_t pad3[3];
};
#define LS_RING_DATA 4096u              /* offset of the records from struct ls_ring */
_Static_assert(sizeof(struct ls_ring) <= LS_RING_DATA, "ring head fits its page");

/* Bodies. Strings follow the fixed part without terminator, padded with zeros to 8. Ids are dense from 1 within
 * the recording (one agent process); 0 = none. */

struct ls_rec_source {                  /* SOURCE, before the first function of the chunk */
        uint32_t source_id;
        uint32_t name_len;              /* name: Lua's chunk name ('@file', '=name', or the text itself, cut to 4 KiB) */
        uint64_t text_hash;             /* of the whole chunk name: tells texts apart within the recording */
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
        uint64_t hash;                  /* LUA: of bytecode and constants, not changed by the JIT compiler */
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
#define LS_VMF_PROBED 0x01              /* its layout was probed and verified: stacks are read raw */
#define LS_VMF_JIT    0x02              /* has a JIT compiler */

struct ls_rec_coroutine {               /* COROUTINE: 0 is the main one, sent for others before first use */
        uint32_t coroutine_id;
        uint32_t func_id;               /* body */
        uint32_t generation;            /* 1, 2, ... per body; 0 = one of many short ones, not told apart */
        uint32_t vm_id;
};
_Static_assert(sizeof(struct ls_rec_coroutine) == 16, "COROUTINE is 16 bytes");

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
        uint64_t cpu_ns;                /* thread's CPU clock at that tick */
        uint32_t weight[LS_NVMSTATES];  /* ticks by VM state; their sum is the sample's weight */
        uint32_t kernel_delayed;        /* of these, ticks that were seen late */
        uint32_t event;                 /* enum ls_event_kind */
        uint32_t flags;                 /* LS_SAMPLE_* */
        uint32_t vm_id;
        uint32_t coroutine_id;
        uint32_t zone_id;
        uint32_t keep;                  /* root frames that equal those of the SAMPLE before it in this ring */
        uint32_t nframes;               /* frames that follow, leaf first; the kept root part comes after them */
        uint32_t cut;                   /* frames left out between those that follow and the kept ones */
};
_Static_assert(sizeof(struct ls_rec_sample) == 72, "SAMPLE is 72 bytes");

#endif
