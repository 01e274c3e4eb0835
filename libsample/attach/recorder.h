/* Whether the recorder of an attached process is still there. Called by attach.c, in its own
 * thread. */
#ifndef LS_LIBSAMPLE_ATTACH_RECORDER_H
#define LS_LIBSAMPLE_ATTACH_RECORDER_H

enum ls_recorder_state { LS_RECORDER_THERE, LS_RECORDER_GONE };

/* The recorder of this recording is the one to ask for later; it may have ended already. */
void ls_recorder_remember(void);
/* GONE: it has ended, and with it all that it had open. In another pid namespace it cannot be seen:
 * then THERE. */
enum ls_recorder_state ls_recorder_state(void);

#endif
