/* Which coroutine a sample belongs to: by body function and generation, never by address. Called
 * for each sample, in the tick handler or the VM hook. */
#ifndef LS_COROUTINES_H
#define LS_COROUTINES_H

#include <stdint.h>

#include "libsample/thread.h"

typedef struct lua_State lua_State;

/* Id of the coroutine L whose root function is body_fn (GCfunc) with this id. 0 when its definition
 * did not fit into the ring. */
uint32_t ls_coroutine_id(struct ls_thread *t, const lua_State *L, const char *body_fn,
                         uint32_t body_id, uint32_t vm_id);

/* Sends a definition that the caller keeps track of: its id, or 0. generation 0: one of many. */
uint32_t ls_coroutine_define(struct ls_thread *t, const lua_State *L, uint32_t body_id,
                             uint32_t generation, uint32_t vm_id);

/* The tables of a thread. Normal context. */
struct ls_coroutines *ls_coroutines_new(void);
void ls_coroutines_free(struct ls_coroutines *co);

#endif
