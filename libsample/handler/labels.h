/* Labels: key and value on the samples of a coroutine (require "luasample".label, luasample_label).
 * module.lua puts them into slots, which the tick handler finds by the address of the coroutine and
 * reads raw (handler/labels.c). */
#ifndef LS_LIBSAMPLE_HANDLER_LABELS_H
#define LS_LIBSAMPLE_HANDLER_LABELS_H

#include <stdint.h>

#include "libsample/handler/guard.h"
#include "libsample/handler/vms.h"
#include "libsample/thread.h"

#define LS_LABEL_SLOTS 4096u            /* coroutines with labels; a power of two */
#define LS_LABEL_PROBES 16u /* slots that a coroutine may be in, from that of its hash on */
#define LS_LABELS_MOST 8u               /* keys of a sample */
#define LS_LABEL_TEXT 256u              /* bytes of a key or value that are kept */

struct ls_vm_labels {                   /* of a VM; pages */
        const char *live;               /* Lua table by slot: its coroutine (weak), true = the main
                                         * one */
        const char *sets;               /* Lua table by slot: table of keys and values in turn; NULL
                                         * = no labels yet */
        int32_t own[LS_LABEL_SLOTS + 1];        /* by slot, from 1: low half of the coroutine's
                                                 * address */
};

/* Where the search for a coroutine begins. As in module.lua. */
static inline uint32_t ls_label_hash(uint32_t low)
{
        return ((low >> 4) ^ (low >> 14)) & (LS_LABEL_SLOTS - 1);
}

/* The pages of the VM of L, which are made if need be. NULL = it is not sampled, or no memory.
 * Normal context. */
struct ls_vm_labels *ls_labels_of(const lua_State *L);
void ls_labels_close(struct ls_vm *vm);

/* Id of the labels of L and of its resumers, where the innermost value of a key counts; 0 = none.
 * Tick handler or VM hook. */
LS_HANDLER uint32_t ls_label_id(struct ls_thread *t, const struct ls_vm *vm, const lua_State *L,
                                struct ls_guard *guard);

/* The tables of a thread. Normal context. */
struct ls_label_cache *ls_label_cache_new(void);
void ls_label_cache_free(struct ls_label_cache *cache);

#endif
