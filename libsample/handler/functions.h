/* The functions, sources and pseudo frames that were sampled, with the ids that ring records name
 * them by. A definition goes into the ring before its first use. Called for each sample, in the
 * tick handler or the VM hook: on the thread whose tables these are. */
#ifndef LS_FUNCTIONS_H
#define LS_FUNCTIONS_H

#include <stdint.h>

#include "libsample/thread.h"

#define LS_TRIED_DEFINITION 1
#define LS_TRIED_CALL_SITE  2
#define LS_TRIED_ENCLOSING                                                                         \
        4 /* only seen in a trace: the next stack was asked whether it defines it */

#define LS_INTERPOSED_MOST 128u

/* Functions of the C library that the agent has its own in place of (libc/real.c). */
struct ls_interposed { uintptr_t ours, real; };
extern struct ls_interposed ls_interposed[LS_INTERPOSED_MOST];  /* what is not used is 0 */

struct ls_fn {                          /* a function that was sampled */
        uint64_t key;                   /* prototype, C function's address or number of a fast
                                         * function, tagged */
        uint64_t hash;                  /* of its bytecode */
        const char *chunkname;          /* GCstr; only compared */
        uint64_t verified_ns;           /* when the hash was last compared */
        uint32_t id;                    /* 0 = free slot */
        uint32_t shape;                 /* lines and sizes, to notice another function at a reused
                                         * address */
        uint32_t name_hash;             /* Lua's of the chunk name */
        uint32_t vms_closed;            /* when the hash was last compared */
        uint8_t rank;                   /* enum ls_name_rank of the name that was sent */
        uint8_t tried;                  /* LS_TRIED_*: ways to a name that were tried */
};

/* Id for a frame of fn (a GCfunc), 0 when its definition did not fit into the ring. now_ns:
 * CLOCK_MONOTONIC. */
uint32_t ls_function_id(struct ls_thread *t, const char *fn, uint64_t now_ns);
/* The same for a function of C that is known by its address. One that the agent interposes is the
 * one behind it. */
uint32_t ls_function_c_id(struct ls_thread *t, uintptr_t address);
/* Sends a definition that the caller keeps track of itself; fills in its id, which it returns: 0 =
 * it did not fit. No search for its name is wanted. */
uint32_t ls_function_define(struct ls_thread *t, struct ls_rec_function *rec, const char *name);
/* Id of a pseudo frame. name: a string constant. */
uint32_t ls_function_pseudo(struct ls_thread *t, const char *name);

/* The entry of a function that was sampled (by its GCfunc or its GCproto), or NULL. Valid until the
 * next ls_function_id. */
struct ls_fn *ls_function_find(const struct ls_thread *t, const char *fn);
struct ls_fn *ls_function_find_proto(const struct ls_thread *t, const char *pt);
/* The entry that ls_function_id gave last. */
struct ls_fn *ls_function_last(const struct ls_thread *t);

/* Sends a better name. */
void ls_function_name(struct ls_thread *t, struct ls_fn *fn, unsigned rank, const char *name,
                      uint32_t len);

/* Functions that have no name of rank GLOBAL yet. */
uint32_t ls_functions_unnamed(const struct ls_thread *t);
/* Total of functions so far. */
uint32_t ls_functions_count(const struct ls_thread *t);

/* The tables of a thread. Normal context. */
struct ls_functions *ls_functions_new(void);
void ls_functions_free(struct ls_functions *fns);

#endif
