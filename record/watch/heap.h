/* The objects of a VM, read from outside: one list, the newest first, the main lua_State last, in
 * which the coroutines are found. The process may run meanwhile. Called by now.c and
 * suspended.c. */
#ifndef LS_RECORD_WATCH_HEAP_H
#define LS_RECORD_WATCH_HEAP_H

#include "libsample/handler/vms.h"

#define LS_L_STATUS 11                  /* offset in a lua_State: uint8_t */
#define LS_YIELDED  1                   /* its value while the coroutine is suspended in yield */

struct ls_heap {
        uint64_t newest;
        uint8_t white, phase;           /* of the garbage collector: what it calls white now, and
                                         * what it does */
};
#define LS_HEAP_SWEEPS 4u /* the phase in which objects are freed; no other frees any of the list */

/* Returns 0 or -1. A collector that is not as expected sweeps all the time. */
int ls_heap_read(const struct ls_vm *vm, struct ls_heap *ret);
/* 1 when nothing of the list can have been freed between the two looks; or a whole cycle passed,
 * and then another one. */
int ls_heap_is_kept(const struct ls_heap *before, const struct ls_heap *now);

/* 1 when an object with these marks was freed, as far as marks tell. */
int ls_heap_is_dead(const struct ls_heap *heap, uint8_t marked);

/* A look begins: memory is read anew. */
void ls_heap_begin(void);
/* n bytes of the program's memory that were read in this look, or NULL. */
const char *ls_heap_have(uint64_t at, uint64_t n);
/* Calls fn for each coroutine from the object at from on, to that at to or, 0, to the end. o: its
 * first 16 bytes. Non-zero from fn ends it. Returns 0 when it came to the end; else it would have
 * taken more CPU time than most_ns, or the list changed under our hands. */
int ls_heap_coroutines(const struct ls_vm *vm, uint64_t from, uint64_t to, uint64_t most_ns,
                       int (*fn)(void *ctx, uint64_t at, const char *o), void *ctx);

#endif
