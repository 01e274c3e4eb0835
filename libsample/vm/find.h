/* The VMs that are in the process already when the agent comes into it. Called by start/attach.c,
 * in its own thread. */
#ifndef LS_LIBSAMPLE_VM_FIND_H
#define LS_LIBSAMPLE_VM_FIND_H

typedef struct lua_State lua_State;

/* Calls found for the main lua_State of each VM, at most once for each address. Threads of the
 * program run meanwhile; the VM may be gone when found looks at it. ls_vm_facts.ok. */
void ls_find_vms(void (*found)(lua_State *L));

#endif
