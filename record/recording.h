/* A recording: its trace is opened, takes what comes, and is ended. Called by loop.c,
 * launched.c, attached.c and signals.c. Errors are printed. */
#ifndef LS_RECORD_RECORDING_H
#define LS_RECORD_RECORDING_H

#include <stdint.h>
#include <sys/types.h>

struct ls_session;
struct ls_target;

/* Opens --control and the trace file, before there is a process. Returns 0 or -1. */
int ls_recording_open(struct ls_session *s);
/* Starts the process that writes the trace, when signals no longer kill us. Returns 0, or -errno
 * after a line. */
int ls_recording_writer(struct ls_session *s);
/* Chooses the asked timer, or the best one for this process, which exists already. Returns 0 or
 * -errno. */
int ls_recording_timer(struct ls_session *s, pid_t pid);
/* Begins the trace with the first process, which is s->pid. Returns 0 or -errno. */
int ls_recording_begin(struct ls_session *s, struct ls_target *first);
/* Time in ns until the next look at any process. */
uint64_t ls_recording_wait_ns(const struct ls_session *s, uint64_t now_ns);
/* Looks after all processes; at_once: all that has come from them is taken. */
void ls_recording_work(struct ls_session *s, int at_once);
/* We are away for long, or here again: an agent gives up a recorder without heartbeat. */
void ls_recording_away(struct ls_session *s, int away);
void ls_recording_end(struct ls_session *s);

#endif
