/* The table of VMs, and what else of LuaJIT's the tick handler looks at: see vms.h. */
#include "libsample/handler/vms.h"

struct ls_profiler ls_profiler;
uintptr_t ls_jit_functions[2];
struct ls_vm ls_vms[LS_VMS_MOST];
_Atomic uint32_t ls_vms_used, ls_vms_closed;
_Atomic(const struct ls_vm *) ls_vm_readers[LS_THREADS_MOST];
