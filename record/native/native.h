/* Native stacks of one process: puts the agent's copies of stacks together, finds the frames in
 * them with unwind.c and gives each its location in the trace. Called by translate/translate.c for
 * samples that hold a native stack. */
#ifndef LS_RECORD_NATIVE_NATIVE_H
#define LS_RECORD_NATIVE_NATIVE_H

#include <stddef.h>
#include <stdint.h>

#include "formats/wire/ring.h"
#include "record/native/mappings.h"
#include "record/native/unwind.h"

#define LS_NATIVE_FRAMES_MAX 512u       /* of one stack */

struct ls_native_modules;

struct ls_native_process {
        struct ls_mappings *mappings;   /* its owner's; outlives this */
        struct ls_unwinder *unwinder;
        struct ls_native_modules *modules;
        struct ls_native_frame *frames; /* of the latest stack */
        uint32_t *mixed;                /* locations of the latest mixed stack, innermost first */
        size_t mixed_room;
        uint32_t machine_code;          /* location for code of no file and no Lua; 0 = not used
                                         * yet */
        uint64_t ends[LS_UNWIND_NENDS]; /* stacks by how they ended */
        uint64_t bad;                   /* records that made no sense */
};

struct ls_native_ring {                 /* what a ring's next stack may build on; zeroed at first */
        uint8_t *bytes;                 /* the latest native stack's */
        size_t len, cap;
        uint32_t *locations, *stacks;   /* of the latest mixed stack, from the root: the trace's
                                         * ids */
        uint32_t depth, room;
};

struct ls_native_lua {                  /* a frame of the Lua stack */
        uint64_t addr;                  /* C functions and builtins: of their C code; 0 = none or
                                         * not known */
        uint32_t location;              /* in the trace; 0 = the frame below stands for this one
                                         * too */
};

int ls_native_init(struct ls_native_process *p, struct ls_mappings *mappings);
void ls_native_done(struct ls_native_process *p);

/* The wire's native stack: size bytes from the record, as they came. On success *ret_frames (until
 * the next call) has *ret_n frames, innermost first, each with its location in the trace as label
 * (0 for machine code of no file). Lua stands where a frame has LS_NATIVE_LUA_VM or LS_NATIVE_JIT;
 * its cframe is an address of the record's C frames. Returns 0, or -EINVAL: then the sample has no
 * native stack. */
int ls_native_stack(struct ls_native_process *p, struct ls_native_ring *ring, const void *record,
                    size_t size, const struct ls_native_frame **ret_frames, size_t *ret_n,
                    enum ls_unwind_end *ret_end);

/* The whole for one sample: finds the native frames and puts them around the Lua frames that they
 * belong to. lua: all of the sample's Lua frames, from the root; jit: location of the place in
 * compiled code that stands above them, 0 = none. *ret_stack is the mixed stack's id in the trace.
 * A C function that is in both stacks appears once, as Lua's frame. Where native frames are missing
 * the Lua frames follow alone; they are all there in any case, in their order. Returns 0 with
 * *ret_end, or -EINVAL or -ENOMEM: then the sample has its Lua stack only. */
int ls_native_sample(struct ls_native_process *p, struct ls_native_ring *ring, const void *record,
                     size_t size, const struct ls_native_lua *lua, uint32_t n_lua, uint32_t jit,
                     uint32_t *ret_stack, enum ls_unwind_end *ret_end);

/* A part of it: the locations of the mixed stack, innermost first, into p->mixed. cframes: struct
 * ls_native_cframe without alignment, innermost first. Returns 0 or -ENOMEM. */
int ls_native_mix(struct ls_native_process *p, const struct ls_native_frame *frames, size_t n,
                  const void *cframes, uint32_t n_cframes, const struct ls_native_lua *lua,
                  uint32_t n_lua, uint32_t jit, uint32_t *ret_n);

/* After records of the ring were lost. */
void ls_native_gap(struct ls_native_ring *ring);
void ls_native_ring_done(struct ls_native_ring *ring);

#endif
