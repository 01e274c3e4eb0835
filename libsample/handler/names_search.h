/* Names for functions: those that the libraries and globals of the VM give. Called for each sample,
 * in the tick handler or the VM hook, and by the engine at the end of a VM. All reads are raw: no
 * metamethod runs, nothing is allocated in the VM. */
#ifndef LS_LIBSAMPLE_HANDLER_NAMES_SEARCH_H
#define LS_LIBSAMPLE_HANDLER_NAMES_SEARCH_H

#include <stdint.h>

#include "libsample/thread.h"

typedef struct lua_State lua_State;

/* Searches the globals and package.loaded of the VM of L, breadth first, for functions that were
 * sampled; goes on where it stopped. Takes at most budget_ns and a little. Only where no code of
 * the VM is at work on its tables. */
void ls_names_search(struct ls_thread *t, const lua_State *L, uint64_t budget_ns);
/* 1 when a search is under way or would be of use. */
int ls_names_wanted(const struct ls_thread *t);

/* Names of the fast functions that have none yet, read from the libraries of L: first in the
 * probe's VM, whose libraries no program has touched (vm/probe.c), then whenever one without name
 * is met. Only where no code of the VM is at work on its tables. */
void ls_names_builtins(const lua_State *L);

/* The tables of a thread. Normal context. */
struct ls_names *ls_names_new(void);
void ls_names_free(struct ls_names *names);

#endif
