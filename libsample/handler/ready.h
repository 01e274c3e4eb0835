/* Coroutines that can run and do not yet, as the host says (require "luasample".ready,
 * luasample_ready). Put into slots by ready.c, which the watcher finds by the address of the
 * coroutine (watch/suspended.c). */
#ifndef LS_LIBSAMPLE_HANDLER_READY_H
#define LS_LIBSAMPLE_HANDLER_READY_H

#include <stdatomic.h>
#include <stdint.h>

#include "formats/wire/mix.h"
#include "libsample/handler/vms.h"

#define LS_READY_SLOTS 4096u            /* coroutines that are marked at a time; a power of two */
#define LS_READY_PROBES 16u /* slots that a coroutine may be in, from that of its hash on */

struct ls_ready_slot {
        _Atomic uint64_t L;             /* the coroutine */
        _Atomic uint64_t since_ns;      /* CLOCK_MONOTONIC, 0 = the slot is free. Stored last,
                                         * cleared first */
};

struct ls_vm_ready { struct ls_ready_slot slots[LS_READY_SLOTS]; };     /* of a VM; pages */

static inline uint32_t ls_ready_hash(uint64_t L)
{
        return (uint32_t)(ls_mix(L) >> 40) & (LS_READY_SLOTS - 1);
}

/* Its VM is about to be closed. */
void ls_ready_close(struct ls_vm *vm);

#endif
