/* When samples are wanted: not during --delay, nor while somebody has disabled them. All processes
 * of the recording are paused together. Called by the session. */
#ifndef LS_RECORD_PAUSE_H
#define LS_RECORD_PAUSE_H

#include <stdint.h>

struct ls_session;

/* The session has its start_ns, and the program does not run yet. */
void ls_pause_begin(struct ls_session *s);
/* Ends --delay when it is time. */
void ls_pause_look(struct ls_session *s, uint64_t now_ns);
/* From now on samples are wanted, or not. */
void ls_pause_set(struct ls_session *s, int on);
/* How long they were wanted so far, or up to the end of the recording. */
uint64_t ls_pause_enabled_ns(const struct ls_session *s);
/* CLOCK_MONOTONIC at which the recording is to end; UINT64_MAX = with the program. */
uint64_t ls_pause_end(const struct ls_session *s);

#endif
