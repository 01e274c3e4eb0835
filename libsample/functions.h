/* The functions, sources and pseudo frames that were sampled, with the ids that ring records name them by. A
 * definition goes into the ring before its first use. Called by the VM hook; normal context, the sampled thread. */
#ifndef LS_FUNCTIONS_H
#define LS_FUNCTIONS_H

#include <stdint.h>

#include "formats/wire/ring.h"

struct ls_fn {                          /* a function that was sampled */
        uint64_t key;                   /* prototype, C function's address or number of a fast function, tagged */
        uint64_t hash;                  /* of its bytecode */
        const char *chunkname;          /* GCstr; only compared */
        uint64_t verified_ns;           /* when the hash was last compared */
        uint32_t id;                    /* 0 = free slot */
        uint32_t shape;                 /* lines and sizes, to notice another function at a reused address */
        uint8_t rank;                   /* enum ls_name_rank of the name that was sent */
        uint8_t tried_definition;       /* its children's names were looked up */
};

/* Id for a frame of fn (a GCfunc), 0 when its definition did not fit into the ring. now_ns: CLOCK_MONOTONIC. */
uint32_t ls_function_id(struct ls_ring *ring, const char *fn, uint64_t now_ns);
/* Id of a pseudo frame. name: a string constant. */
uint32_t ls_function_pseudo(struct ls_ring *ring, const char *name);

/* The entry of a function that was sampled (by its GCfunc or its GCproto), or NULL. Valid until the next
 * ls_function_id. */
struct ls_fn *ls_function_find(const char *fn);
struct ls_fn *ls_function_find_proto(const char *pt);
/* The entry that ls_function_id gave last. */
struct ls_fn *ls_function_last(void);

/* Sends a better name. */
void ls_function_name(struct ls_ring *ring, struct ls_fn *fn, unsigned rank, const char *name, uint32_t len);

/* Functions that have no name of rank GLOBAL yet. */
uint32_t ls_functions_unnamed(void);
/* Total of functions so far. */
uint32_t ls_functions_count(void);


/* The VM is gone, its functions too: addresses mean nothing any more. Ids go on. */
void ls_functions_reset(void);

/* Name of a fast function in this build, found in the libraries of a VM (names_search.c); NULL = none. */
const char *ls_builtin_name(uint8_t ffid);

#endif
