/* Stops the threads of an attached process for as long as its agent puts jumps at entries of functions: none of them may be
 * in the middle of the instructions that a jump replaces. Called by attach.c and session_attach.c. */
#ifndef LS_RECORD_ATTACH_HOLD_H
#define LS_RECORD_ATTACH_HOLD_H

#include "record/attach.h"

/* Does what the agent asks for, if it does. Takes some 0.1 ms, 2 s at most. t->held_ns: how long threads were stopped. */
void ls_attach_hold(struct ls_subject *t, struct ls_shm *shm);

#endif
