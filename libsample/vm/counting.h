/* Exact counts of the VMs of a recorded process, when the recorder wants them (exact/exact.h).
 * Called by interpose/vm_created.c and life.c, in normal context. */
#ifndef LS_LIBSAMPLE_VM_COUNTING_H
#define LS_LIBSAMPLE_VM_COUNTING_H

#include "libsample/handler/vms.h"

/* Counts what a new VM does, before it does anything, or says why not. Returns whether its compiler
 * is to be watched for that. */
int ls_counting_begin(struct ls_vm *vm, lua_State *L);
/* After the watch on its compiler was to be opened: without one only the interpreter would be
 * counted, and nothing is. */
void ls_counting_check(struct ls_vm *vm, lua_State *L);

#endif
