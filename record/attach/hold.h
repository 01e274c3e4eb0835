/* Sees to it that no thread of an attached process is in the middle of the instructions that its
 * agent is about to replace by a jump, for as long as it stores the jumps. Called by attach.c and
 * attached.c. */
#ifndef LS_RECORD_ATTACH_HOLD_H
#define LS_RECORD_ATTACH_HOLD_H

#include "record/attach/subject.h"
#include "record/process/memory.h"

/* Does what the agent asks for, if it does. Takes some 10 ms, 2 s at most. t->held_ns: how long
 * threads were stopped. */
void ls_attach_hold(struct ls_subject *t, const struct ls_memory *m);

#endif
