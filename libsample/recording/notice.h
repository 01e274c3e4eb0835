/* What the agent has to say to the user. */
#ifndef LS_LIBSAMPLE_RECORDING_NOTICE_H
#define LS_LIBSAMPLE_RECORDING_NOTICE_H

/* One sentence for the user into the ring of the process (NOTICE). Not in signal handlers. */
void ls_agent_notice(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
