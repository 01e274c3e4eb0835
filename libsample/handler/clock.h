/* The clocks of the agent. */
#ifndef LS_LIBSAMPLE_HANDLER_CLOCK_H
#define LS_LIBSAMPLE_HANDLER_CLOCK_H

#include "libsample/handler/ring_writer.h"

/* CLOCK_MONOTONIC and the calling thread's CPU clock in ns. Any context. */
LS_HANDLER uint64_t ls_now_ns(void);
LS_HANDLER uint64_t ls_thread_cpu_ns(void);

/* The agent's own time since since_ns (CLOCK_MONOTONIC), at most the CPU time since cpu_ns
 * (thread's CPU clock, at or before since_ns): a thread that lost the CPU meanwhile did no work
 * of ours. Any context. */
LS_HANDLER uint64_t ls_own_ns(uint64_t since_ns, uint64_t cpu_ns);

#endif
