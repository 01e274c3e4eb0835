/* A recording: its trace is begun, takes what comes, and is ended. Called by attached.c and signals.c. Errors are printed. */
#ifndef LS_RECORD_RECORDING_H
#define LS_RECORD_RECORDING_H

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

struct ls_session;
struct ls_record_options;

/* Records what o asks for. Returns the status to exit with. */
int ls_session_run(const struct ls_record_options *o);

void ls_session_init(struct ls_session *s, const struct ls_record_options *o);
/* The asked timer, or the best one for s->pid. Returns 0 or -errno. */
int ls_session_choose_timer(struct ls_session *s);
/* Opens the trace with the first process. Returns 0 or -errno. */
int ls_session_start_trace(struct ls_session *s);
/* Time in ns until the next look at any process; full: what to poll for that may come before. */
uint64_t ls_session_time_to_wait(const struct ls_session *s, uint64_t now_ns, struct pollfd *full);
/* Takes what has come from all processes, those not due too when at_once; tells all that we live, until until_ns and the agent's
 * patience. */
void ls_session_work(struct ls_session *s, int at_once);
void ls_session_heartbeat(struct ls_session *s, uint64_t until_ns);
void ls_session_end(struct ls_session *s);
void ls_session_done(struct ls_session *s);

#endif
