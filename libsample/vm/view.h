/* Where in the program the agent keeps what a process that reads the program from outside needs
 * (record/watch): the agent publishes the address of its one struct ls_view in the control page.
 * Both are built from the same source; the sizes tell when they are not. */
#ifndef LS_LIBSAMPLE_VM_VIEW_H
#define LS_LIBSAMPLE_VM_VIEW_H

#include "libsample/handler/functions.h"
#include "libsample/handler/vms.h"
#include "libsample/handler/walk.h"
#include "libsample/thread.h"

struct ls_view {
        uint32_t size, vm_size, facts_size, thread_size;
        const struct ls_vm_facts *facts;
        const struct ls_vm *vms;
        const _Atomic uint32_t *vms_used, *vms_closed;
        const uintptr_t *jit_functions;
        const char (*builtins)[40];
        const struct ls_interposed *interposed;
};

/* What luasample_probe writes for a process that reads another one without an agent in it
 * (record/watch/now.c): how the LuaJIT that is loaded beside the agent lays out its VMs. */
struct ls_probe_answer {
        uint32_t size;
        int32_t error;                  /* 0, or why there is nothing: -ENOENT no LuaJIT, -EPROTO a
                                         * check failed */
        uint64_t base;                  /* where that LuaJIT is loaded: addresses in facts are
                                         * relative to it */
        struct ls_vm_facts facts;
        char builtins[256][40];
        char why[120];                  /* the check that failed */
};
#define LS_PROBE_VARIABLE                                                                          \
        "LUASAMPLE_PROBE" /* a descriptor: the agent answers there, and ends the process */

#endif
