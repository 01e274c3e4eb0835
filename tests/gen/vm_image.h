/* A picture of a process with a VM in it: what gen_vm.c writes and tests/fuzz/fuzz_outside.c reads.
 * The file: the head, the ranges, the places, then the bytes of each range. */
#ifndef LS_TESTS_VM_IMAGE_H
#define LS_TESTS_VM_IMAGE_H

#include <stdint.h>

enum place_kind {             /* what a fuzz input may change */
                  PLACE_REGS, /* the thread's registers and its stack's limits: not in the
                                         * image */
                  PLACE_VIEW,
                  PLACE_FACTS,
                  PLACE_VM,
                  PLACE_THREAD,
                  PLACE_BUILTINS,
                  PLACE_INTERPOSED,
                  PLACE_JIT,
                  PLACE_JIT_ENTRIES,
                  PLACE_JIT_RANGES,
                  PLACE_LABELS,
                  PLACE_ZONES,
                  PLACE_READY,
                  PLACE_GLOBAL,
                  PLACE_STR,
                  PLACE_STATE,
                  PLACE_PROTO,
                  PLACE_FUNC,
                  PLACE_TRACE,
                  PLACE_CDATA,
                  PLACE_TAB,
                  PLACE_UDATA,
                  PLACE_UPVALUE,
                  PLACE_LUA_STACK,
                  PLACE_NODES,
                  PLACE_ARRAY,
                  PLACE_CSTACK,
                  PLACE_CFRAME,
                  PLACE_KINDS
};

struct image_range { uint64_t start, end; char rights[8]; };
struct image_place { uint64_t at; uint32_t kind, size; };

struct image_head {
        uint64_t magic;
        uint64_t view, thread, lua_base;/* addresses of struct ls_view, struct ls_thread */
        uint64_t ip, sp, stack_low, stack_high;
        uint32_t n_ranges, n_places;
};
#define IMAGE_MAGIC UINT64_C(0x316d6d6976736c)

#endif
