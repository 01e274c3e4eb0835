/* The agent's readers of a VM, set up in a test program that is linked with libluajit. */
#ifndef LS_TEST_VM_AGENT_H
#define LS_TEST_VM_AGENT_H

#include <stddef.h>
#include <stdint.h>

typedef struct lua_State lua_State;

/* Sets up ls_agent with a ring, ls_lua with the linked library, and runs the probe. */
void vm_agent_probe(void);
uint64_t vm_agent_hash(const char *pt);
/* Samples fn, searches for names, and gives what the ring then says of it. Returns 0, -1 = no
 * name. */
int vm_agent_name(lua_State *L, const void *fn, char *ret_name, size_t size);
/* Goes on with a search for names for so long. */
void vm_agent_search(lua_State *L, uint64_t budget_ns);

#endif
