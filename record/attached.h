/* A recording of processes that run already. Called by record.c. */
#ifndef LS_RECORD_ATTACHED_H
#define LS_RECORD_ATTACHED_H

struct ls_record_options;

/* Returns the status to exit with. */
int ls_session_attach(const struct ls_record_options *o);

#endif
