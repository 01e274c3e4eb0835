/* What the process does at the tick's signal: our handler, which is installed before the first
 * tick can come. */
#ifndef LS_LIBSAMPLE_RECORDING_TICK_ACTION_H
#define LS_LIBSAMPLE_RECORDING_TICK_ACTION_H

#include <stddef.h>

/* Installs the tick's signal handler. 0 or -1. */
int ls_tick_action_install(void);

/* 1 when ticks have a handler: else one would kill the process. */
int ls_tick_action_is_installed(void);
/* From now on they have not: threads that arm themselves late, such as one that makes a VM, get
 * no ticks. */
void ls_tick_action_give_up(void);

/* 1 when a signal stack of this size is too small for a tick. */
int ls_tick_action_is_small(size_t size);
/* The program has a signal stack that is too small for a tick: from now on ticks use the stack
 * that runs. */
void ls_tick_action_leave_signal_stacks(void);

#endif
