/* Memory of the VM that is lent to a recording: see lend.c. */
#ifndef LS_LIBSAMPLE_API_LEND_H
#define LS_LIBSAMPLE_API_LEND_H

typedef struct lua_State lua_State;

/* What it needs in a process that was attached to. Raises Lua's errors. */
void ls_module_lend(lua_State *L);

#endif
