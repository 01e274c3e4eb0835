/* The perf timer: events of the kernel. Called by ticker.c, by the session and by doctor. */
#ifndef LS_RECORD_TICK_PERF_H
#define LS_RECORD_TICK_PERF_H

#include "record/tick/state.h"

extern const struct ls_tick_source ls_tick_source_perf;

/* Can this process open a perf event on another one (pid), as the perf timer does? 0 or -errno. */
int ls_ticker_perf_probe(pid_t pid);
/* 1 in a virtual machine, where each timer that the kernel sets costs some us. */
int ls_ticker_is_virtual(void);

#endif
