/* jit.zone with zones per coroutine. The program's require "jit.zone" gets a module of ours that
 * behaves as LuaJIT's and notes which coroutine pushed each zone (zones.c); samples read the
 * stack of zones raw (handler/zones.c). */
#ifndef LS_LIBSAMPLE_HANDLER_ZONES_H
#define LS_LIBSAMPLE_HANDLER_ZONES_H

#include <stdint.h>

#include "libsample/handler/guard.h"
#include "libsample/handler/vms.h"
#include "libsample/thread.h"

#define LS_ZONE_OWNERS 16384 /* zones whose owner is noted; deeper ones count for every coroutine */

struct ls_vm_zones {                    /* of a VM; pages */
        const char *names;              /* table of zones, kept alive by the registry: our second
                                         * stack, or without */
                                        /* the FFI the module's table itself; NULL = none yet */
        int tracked;                    /* 1 = own is filled */
        int32_t own[LS_ZONE_OWNERS];    /* [0]: how many; then by index in names: who pushed it */
};

/* The VM is about to be closed. */
void ls_zones_close(struct ls_vm *vm);

/* Id of the innermost zone that L or one of its resumers is in, 0 = none. guard: what asks before
 * it reads, NULL = the VM's objects are whole. Tick handler or VM hook. */
LS_HANDLER uint32_t ls_zone_id(struct ls_thread *t, const struct ls_vm *vm, const lua_State *L,
                               struct ls_guard *guard);

/* What people call a zone, or a label's value: a string or a number, as text. Anything else can
 * be pushed too. NULL = it cannot be read now. buf: LS_READ_TEXT bytes. */
#define LS_READ_TEXT 40
LS_HANDLER const char *ls_read_text(uint64_t tv, struct ls_guard *g, char *buf, uint32_t *ret_len);
/* Element i of the array part of a table that may be about to move. */
LS_HANDLER uint64_t ls_read_element(const char *t, uint32_t i, struct ls_guard *g);

/* The tables of a thread. Normal context. */
struct ls_zones *ls_zones_new(void);
void ls_zones_free(struct ls_zones *zones);

#endif
