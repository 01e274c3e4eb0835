/* Turns places in the machine code of a JIT trace into functions and lines. Used by the reader of
 * traces, which keeps the agent's JITTRACE records as they came and asks when samples are in one.
 * The method: docs/jit.md.
 *
 * Only LuaJIT's x86-64 code is understood. What comes in is hostile: input.c checks every count
 * before it is used, and all work is bounded (trace.h); what is too large is interpolated and
 * called approximate. */
#ifndef LS_FORMATS_JIT_MAP_H
#define LS_FORMATS_JIT_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "formats/jit/input.h"

struct ls_jit_map;

struct ls_jit_frame {
        uint32_t function;              /* id of FUNCTION, as in the functions[] of the record or an
                                         * ancestor's */
        uint32_t line;                  /* 0 = not known, or a builtin's */
        uint32_t inlined; /* 1 = a builtin of which there are instructions here, and no
                                         * call */
};

/* Why a map is approximate; 0 = it is not. */
enum ls_jit_doubt {
        LS_JIT_NO_EVENTS = 1,           /* compiled before anybody watched: only what the snapshots
                                         * tell */
        LS_JIT_NO_DISASSEMBLY = 2,      /* no disassembler for it, or code that it does not
                                         * understand */
        LS_JIT_TOO_LARGE = 4,           /* parts were interpolated, to stay within the limits */
        LS_JIT_CHECK_FAILED = 8,        /* guards and jumps, calls and calling instructions do not
                                         * agree */
        LS_JIT_NO_PARENT = 16,          /* the frames that a side trace starts on are not known */
};

/* Makes the map of a trace. irnames: jit.vmdef.irnames of its VM, 6 bytes a name (IRNAMES). parent:
 * of a side trace the map of the trace that it leaves, NULL = not known; only used during the call,
 * as are in and irnames. Costs about a millisecond. 0, -ENOMEM, or -EINVAL. */
int ls_jit_map_new(const struct ls_jit_input *in, const char *irnames, size_t irnames_len,
                   const struct ls_jit_map *parent, struct ls_jit_map **ret);
void ls_jit_map_free(struct ls_jit_map *map);

/* The frames at an offset of the code, outermost first: frames[0] is of the function in which the
 * root trace starts (or of the one that it has returned to); its function is 0 when that is not
 * known, the sample's own frame is the best then. Writes at most room of them and returns how many
 * there are; 0 = nothing is known. An offset behind the code means its end. */
unsigned ls_jit_map_frames(const struct ls_jit_map *map, uint32_t offset, struct ls_jit_frame *ret,
                           unsigned room);
/* Bits of enum ls_jit_doubt, those of its ancestors for the frames that come from there
 * included. */
unsigned ls_jit_map_is_approximate(const struct ls_jit_map *map);

/* For tests/jit: the IR reference (less 0x8000) that the code at an offset is ascribed to,
 * LS_JIT_REF_HEAD or _TAIL, and the reference that this was copied from by the loop optimisation
 * (itself when it was not). */
#define LS_JIT_REF_HEAD 0u
#define LS_JIT_REF_TAIL 0xffffu
uint32_t ls_jit_map_ref(const struct ls_jit_map *map, uint32_t offset, uint32_t *ret_origin);
/* The same frames for a reference that is known, with the copies' origin given. */
unsigned ls_jit_map_ref_frames(const struct ls_jit_map *map, uint32_t ref, uint32_t origin,
                               struct ls_jit_frame *ret, unsigned room);

#endif
