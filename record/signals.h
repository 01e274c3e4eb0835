/* Signals and stops of the recorder and of the program that it has started. Called by the
 * session. */
#ifndef LS_RECORD_SIGNALS_H
#define LS_RECORD_SIGNALS_H

struct ls_session;

/* Blocks what is to be passed on and opens signal_fd. Returns 0 or -errno. */
int ls_signals_open(struct ls_session *s);
/* Reads what has come: passes it on, follows stops, sets exited. */
void ls_signals_handle(struct ls_session *s);
#endif
