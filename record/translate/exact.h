/* Exact counts of a process into its trace: rows of events of kind count, each of a stack of one
 * line. Called by target.c at its end. */
#ifndef LS_RECORD_TRANSLATE_EXACT_H
#define LS_RECORD_TRANSLATE_EXACT_H

#include "record/translate/state.h"

/* fd: the memory in which its agent counted, -1 = there is none. events: bits by enum
 * ls_event_kind, 0 = none was asked for. What was counted, and what could not be, is said in
 * notices. */
void ls_exact_finish(struct ls_translate *t, int fd, uint32_t events);

#endif
