/* Marks on coroutines that can run: see ready.c, and handler/ready.h for where they are. */
#ifndef LS_LIBSAMPLE_API_READY_H
#define LS_LIBSAMPLE_API_READY_H

typedef struct lua_State lua_State;

/* The coroutine co can run from now on, or, ready 0, it runs. Returns 0 when its VM is not sampled,
 * or when it runs and was not marked. By the thread that runs the VM. */
int ls_ready_mark(const lua_State *co, int ready);

#endif
