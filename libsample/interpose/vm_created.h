/* A VM is created in a recorded process. */
#ifndef LS_LIBSAMPLE_INTERPOSE_VM_CREATED_H
#define LS_LIBSAMPLE_INTERPOSE_VM_CREATED_H

typedef struct lua_State lua_State;

/* A VM was created and is returned to its host next. */
void ls_engine_vm_created(lua_State *L);

#endif
