/* Of what type an allocated block is: string, table, its array part, ... When the allocator is
 * called nothing in the block says so yet. What does is the place in LuaJIT's code that wants the
 * memory: each makes one type of block. Which one is learnt: at the VM's next allocation the block
 * before is the newest object, or a table's part, and so on; what is seen there is the type of its
 * place from then on. Called by alloc.c, on the VM's thread, in normal context. */
#ifndef LS_LIBSAMPLE_ALLOC_TYPES_H
#define LS_LIBSAMPLE_ALLOC_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "formats/wire/kinds.h"
#include "libsample/layout.h"

#define LS_TYPE_OWNERS 12

struct ls_type_place;

/* A block whose place is not known well. */
struct ls_type_look {
        struct ls_type_place *place;    /* NULL = there is none */
        const char *block;
        size_t size;
        const char *owners[LS_TYPE_OWNERS];     /* what may hold it; n_owners of them */
        uint32_t n_owners;
};

/* The place that called for memory, at: the allocator's return address in the C stack. in_trace:
 * compiled code may be the one. *ret_type is its type. Returns where it is to be learnt further,
 * NULL = it need not or cannot. */
struct ls_type_place *ls_type_at(const uint64_t *at, int in_trace, enum ls_objtype *ret_type);
/* The block that this place has got: it is looked at when the VM allocates next. */
void ls_type_note(struct ls_type_look *look, struct ls_type_place *place, const uint64_t *at,
                  const void *block, size_t size);
/* At that moment: L is what runs, main its VM's first lua_State. */
void ls_type_learn(struct ls_type_look *look, const char *global, const lua_State *main,
                   const lua_State *L);

#endif
