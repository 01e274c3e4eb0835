/* Names for functions: those that their callers give. Called for each sample, in the tick handler
 * or the VM hook. All reads are raw: no metamethod runs, nothing is allocated in the VM. */
#ifndef LS_LIBSAMPLE_HANDLER_NAMES_STACK_H
#define LS_LIBSAMPLE_HANDLER_NAMES_STACK_H

#include "libsample/handler/functions.h"
#include "libsample/handler/walk.h"

/* A name for the function of frame i of a walk, which has none yet, from the functions that are
 * its callers: as they define it, or, with call_sites, as they call it (only where the VM's stack
 * is whole). */
void ls_names_from_stack(struct ls_thread *t, const struct ls_walk *walk, size_t i,
                         struct ls_fn *fn, int call_sites);

/* Names for functions that have none yet and that those of this stack define: traces have some
 * that are in no frame. Only where no code of the VM is at work on its objects. */
void ls_names_enclosed(struct ls_thread *t, const struct ls_walk *walk);

/* The name that a function's code gives to one of its functions where it makes it, or NULL: as a
 * local variable, a field or a global. parent: a GCproto; index: the function's among its
 * constants. *from: the first instruction to look at, at least 1; set behind the one that makes
 * it. The text is the VM's. Any thread, while the VM does not change the function. */
const char *ls_names_defined(const char *parent, uint32_t index, uint32_t *from, uint32_t *ret_len);

#endif
