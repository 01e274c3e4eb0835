/* The LuaJIT of the process: what is known of it, and what the recorder is told. Normal context,
 * under the lock of vms.h. */
#ifndef LS_LIBSAMPLE_VM_RUNTIME_H
#define LS_LIBSAMPLE_VM_RUNTIME_H

#include <stdint.h>

/* What the recorder shows of this process: enum of LS_AGENT_*. Any thread. */
void ls_runtime_set_state(uint32_t state);
/* Says once why VMs are not sampled. */
void ls_runtime_refuse(const char *why);
/* 1 when samples can be had through the API alone. */
int ls_runtime_has_profiler_api(void);
/* Probes it, when that was not done yet, and tells the recorder. */
void ls_runtime_probe(void);
int ls_runtime_is_probed(void);
/* Tells the recorder what was found. */
void ls_runtime_describe(void);
/* Another LuaJIT may have taken the place of the one before: it will be probed anew. */
void ls_runtime_forget(void);
/* Probes it; 1 when VMs of it can be sampled. */
int ls_runtime_is_usable(void);

#endif
