/* Marks on coroutines that can run: see ready.h. */

#include "libsample/api/ready.h"

#include "libsample/handler/clock.h"
#include "libsample/handler/ready.h"
#include "libsample/pages.h"
#include "libsample/recording/pass.h"

/* The slot of co; else a free one or, when marks of coroutines that have ended fill them, the
 * oldest; NULL without take. */
static struct ls_ready_slot *slot_of(struct ls_vm_ready *ready, const lua_State *co, int take)
{
        uint64_t L = (uintptr_t)co;
        struct ls_ready_slot *best = NULL;

        for (uint32_t i = 0; i < LS_READY_PROBES; i++) {
                struct ls_ready_slot *slot =
                        &ready->slots[(ls_ready_hash(L) + i) & (LS_READY_SLOTS - 1)];

                if (atomic_load(&slot->L) == L)
                        return slot;
                if (take && (!best || atomic_load(&slot->since_ns) < atomic_load(&best->since_ns)))
                        best = slot;
        }
        return best;
}

static int mark(const lua_State *co, int ready)
{
        struct ls_vm *vm = co ? ls_vm_of(co) : NULL;
        struct ls_ready_slot *slot;
        int was;                        /* marked */

        if (vm && !vm->ready && ready)
                vm->ready = ls_pages_new(sizeof *vm->ready);
        slot = vm && vm->ready ? slot_of(vm->ready, co, ready) : NULL;
        if (!slot)
                return 0;
        was = atomic_exchange(&slot->since_ns, 0) != 0;
        if (!ready)
                return was;
        atomic_store(&slot->L, (uintptr_t)co);
        atomic_store(&slot->since_ns, ls_now_ns());
        return 1;
}

/* The slots go when an attachment ends, and the coroutine's VM is only looked for: so its end has
 * to wait. */
int ls_ready_mark(const lua_State *co, int ready)
{
        int r;

        if (!ls_control_pass())
                return 0;
        r = mark(co, ready);
        ls_control_go_out();
        return r;
}
