/* Names for functions: the best one that the VM knows. Called by the VM hook; normal context, the sampled thread.
 * All reads are raw: no metamethod runs, nothing is allocated in the VM. */
#ifndef LS_NAMES_H
#define LS_NAMES_H

#include "libsample/functions.h"
#include "libsample/walk.h"

/* Searches the globals and package.loaded of the VM of L, breadth first, for functions that were sampled; goes on
 * where it stopped. Takes at most budget_ns and a little. */
void ls_names_search(struct ls_ring *ring, const lua_State *L, uint64_t budget_ns);
/* 1 when a search is under way or would be of use. */
int ls_names_wanted(void);
/* The VM is gone: begin anew. */
void ls_names_reset(void);

/* A name for the function of frame i of a walk, which was sampled for the first time, from the functions that are
 * its callers: as they define it, or as they call it. */
void ls_names_from_stack(struct ls_ring *ring, lua_State *L, const struct ls_walk *walk, size_t i, struct ls_fn *fn);

/* Names of the fast functions that have none yet, read from the libraries of L: first in the probe's VM, whose libraries
 * no program has touched (vm_probe.c), then whenever one without name is met. */
void ls_names_builtins(const lua_State *L);

#endif
