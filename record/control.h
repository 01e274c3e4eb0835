/* --control: commands from outside, as lines through a FIFO or a socket, while the recording
 * runs. Called by the session. */
#ifndef LS_RECORD_CONTROL_H
#define LS_RECORD_CONTROL_H

struct ls_session;

/* Does what was asked for. Sets s->control.stop. */
void ls_control_handle(struct ls_session *s);

#endif
