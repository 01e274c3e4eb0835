/* The traces of a VM that is read from outside: in place of handler/jit_find.c. The table of them
 * is the program's, to be read only; one that is not in it yet has no name, and the program's own
 * ticks add it when they meet it. */
#include "libsample/handler/jit_find.h"
#include "libsample/handler/jit_locate.h"

#include "libsample/handler/walk.h"

int ls_jit_find(const struct ls_vm *vm, struct ls_thread *t, struct ls_guard *guard,
                const char *global, uintptr_t ip)
{
        const char *trace;
        int32_t number;

        (void)t;
        (void)ip;
        if ((uintptr_t)vm->jit & 7)
                return 0;
        if (!LS_FIELD(vm->jit, finds))
                return 1;
        number = LS_READ(int32_t, global, ls_vm_facts.vmstate_offset);
        trace = number > 0 ? ls_jit_trace_of(guard, global, (uint32_t)number) : NULL;
        return !trace || ls_jit_is_known(vm->jit, trace);
}
