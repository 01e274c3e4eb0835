/* Finds out how this build of LuaJIT lays out its global state, and verifies all that the agent
 * reads raw, in a VM of its own that is closed again: the program's VM is not touched. Called
 * once, when the first VM is created. */
#ifndef LS_LIBSAMPLE_VM_PROBE_H
#define LS_LIBSAMPLE_VM_PROBE_H

#include "libsample/handler/walk.h"

/* Fills ls_vm_facts. Normal context, ls_lua complete. Any doubt leaves ok = 0 with the reason in
 * why. */
void ls_vm_probe(void);

/* 1 while ls_vm_probe runs on this thread: the VM that it makes is none of the program's. */
extern __thread int ls_vm_probing;

#endif
