/* What record prints while it runs and at the end. Called by the session. */
#ifndef LS_RECORD_STATUS_H
#define LS_RECORD_STATUS_H

#include <stdint.h>

struct ls_session;

void ls_status_line(struct ls_session *s, uint64_t now_ns);
void ls_status_clear(struct ls_session *s);
void ls_status_summary(struct ls_session *s);
/* Keeps a sentence for the summary; the second one for the trace, too. session: a struct
 * ls_session, as callbacks have it. */
void ls_status_notice(void *session, const char *text);
void ls_status_say(void *session, const char *text);

#endif
