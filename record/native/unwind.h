/* Native frames from a copy of a stack: the agent's handler copies registers and the top of the
 * stack, this finds the callers with tables read from the mapped files. Keeps a row for each
 * address it has seen, so that a known stack costs some tens of nanoseconds a frame. Everything in
 * a sample is hostile: no read outside the copied bytes, each frame lies above the one before, the
 * number of frames is bounded by the caller's room. Called by native.c. */
#ifndef LS_RECORD_NATIVE_UNWIND_H
#define LS_RECORD_NATIVE_UNWIND_H

#include <stddef.h>
#include <stdint.h>

#include "record/worker/cfi.h"

enum ls_unwind_end {                    /* why there are no more frames */
        LS_UNWIND_COMPLETE,             /* the thread's first function */
        LS_UNWIND_TRUNCATED,            /* the copied bytes ended */
        LS_UNWIND_NO_TABLE,             /* a function without call frame information */
        LS_UNWIND_UNMAPPED,             /* an address in no file, and no C frame of LuaJIT above
                                         * it */
        LS_UNWIND_BAD_STACK,            /* what was found cannot be a caller */
        LS_UNWIND_TOO_DEEP,             /* more frames than there was room for */
        LS_UNWIND_NENDS
};

/* Flags of a frame. */
#define LS_NATIVE_JIT 0x01 /* machine code of no file; sp and cframe tell where it stands */
#define LS_NATIVE_LUA_VM                                                                           \
        0x02 /* LuaJIT's interpreter: Lua frames of the C frame cframe belong here */
#define LS_NATIVE_SIGNAL  0x04          /* returns from a signal's handler */
#define LS_NATIVE_GUESSED 0x08 /* its caller comes from a frame pointer, not from a table */

struct ls_native_frame {
        uint64_t ip;                    /* exact for the first; else where the callee returns to */
        uint64_t sp;                    /* grows with each frame */
        uint64_t function;              /* where its function starts, as far as the table tells; 0 =
                                         * in no file */
        uint64_t cframe;                /* LUA_VM and JIT: the C frame (L->cframe) that it belongs
                                         * to; 0 = not known */
        uint32_t label;                 /* of the place's owner, 0 = none */
        uint8_t flags;                  /* LS_NATIVE_* */
};

struct ls_unwind_input {
        uint64_t reg[LS_NREGS];         /* by DWARF number */
        uint32_t
                known; /* bit mask: rip and rsp must be; rbp, rbx, r12 to r15 should; the rest helps
                                           in functions that align their stack */
        const uint8_t *stack;           /* bytes from stack_start on; any alignment */
        uint64_t stack_start;           /* an address at or below rsp */
        size_t stack_len;
        const uint64_t *cframes;        /* C frames of LuaJIT (L->cframe without its low bits) on
                                         * this stack; any order */
        size_t n_cframes;
};

struct ls_unwind_place {                /* what an address belongs to */
        void *file;                     /* the owner's; NULL = one that cannot be read */
        uint64_t file_offset;
        uint32_t module;                /* the owner's word for it */
};

struct ls_unwind_owner {
        /* The file at pc. Returns 0, -ENOENT when it is in none that is known now (asked again for
         * each sample), or -ENOEXEC when it is memory of no file. May call ls_unwind_forget. */
        int (*find)(void *ctx, uint64_t pc, struct ls_unwind_place *ret_place);
        /* The row for a place whose file is not NULL, as ls_cfi_row. */
        int (*row)(void *ctx, const struct ls_unwind_place *place, struct ls_cfi_row *ret_row,
                   uint64_t *ret_function);
        /* A word to keep with frames at this pc, asked once; function: file offset where the
         * function starts. */
        uint32_t (*label)(void *ctx, uint64_t pc, const struct ls_unwind_place *place,
                          uint64_t function);
        void *ctx;
};

struct ls_unwinder;

struct ls_unwinder *ls_unwinder_new(const struct ls_unwind_owner *owner);
void ls_unwinder_free(struct ls_unwinder *u);   /* takes NULL */
/* Drops what is known of these addresses: something else is mapped there now. */
void ls_unwind_forget(struct ls_unwinder *u, uint64_t start, uint64_t end);

/* Frames from the innermost to the root. Returns their number (at least 1 with room, 0 for an input
 * without rip and rsp), and in *ret_end why it ended there. */
size_t ls_unwind(struct ls_unwinder *u, const struct ls_unwind_input *in,
                 struct ls_native_frame *ret_frames, size_t room, enum ls_unwind_end *ret_end);

#endif
