/* Which coroutine a sample belongs to: by body function and generation, never by address. Called by the VM hook;
 * normal context, the sampled thread. */
#ifndef LS_COROUTINES_H
#define LS_COROUTINES_H

#include <stdint.h>

#include "formats/wire/ring.h"

typedef struct lua_State lua_State;

/* Id of the coroutine L whose root function is body_fn (GCfunc) with this id. 0 when its definition did not fit into
 * the ring. */
uint32_t ls_coroutine_id(struct ls_ring *ring, const lua_State *L, const char *body_fn, uint32_t body_id, uint32_t vm_id);

/* The VM is gone: its coroutines too. */
void ls_coroutines_reset(void);

#endif
