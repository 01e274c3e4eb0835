/* Names for functions: the best one that the VM knows. Called for each sample, in the tick handler or the VM hook, and by
 * the engine at the end of a VM. All reads are raw: no metamethod runs, nothing is allocated in the VM. */
#ifndef LS_NAMES_H
#define LS_NAMES_H

#include "libsample/handler/functions.h"
#include "libsample/handler/walk.h"

/* Searches the globals and package.loaded of the VM of L, breadth first, for functions that were sampled; goes on
 * where it stopped. Takes at most budget_ns and a little. Only where no code of the VM is at work on its tables. */
void ls_names_search(struct ls_thread *t, const lua_State *L, uint64_t budget_ns);
/* 1 when a search is under way or would be of use. */
int ls_names_wanted(const struct ls_thread *t);

/* A name for the function of frame i of a walk, which has none yet, from the functions that are its callers: as they
 * define it, or, with call_sites, as they call it (only where the VM's stack is whole). */
void ls_names_from_stack(struct ls_thread *t, const struct ls_walk *walk, size_t i, struct ls_fn *fn, int call_sites);

/* Names for functions that have none yet and that those of this stack define: traces have some that are in no frame. Only
 * where no code of the VM is at work on its objects. */
void ls_names_enclosed(struct ls_thread *t, const struct ls_walk *walk);

/* Names of the fast functions that have none yet, read from the libraries of L: first in the probe's VM, whose libraries
 * no program has touched (vm/probe.c), then whenever one without name is met. Only where no code of the VM is at work
 * on its tables. */
void ls_names_builtins(const lua_State *L);

/* The tables of a thread. Normal context. */
struct ls_names *ls_names_new(void);
void ls_names_free(struct ls_names *names);

#endif
