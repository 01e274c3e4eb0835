/* A recorder of the program's own: see own.c. */
#ifndef LS_LIBSAMPLE_API_OWN_H
#define LS_LIBSAMPLE_API_OWN_H

/* Begins one that writes to file (NULL = luasample.data), with more words for `luasample record`
 * (ended by NULL, or NULL), unless this process is recorded already. Returns 1 = it records now, 0
 * = nothing was begun: it is, or was started by luasample record, or no luasample is installed; or
 * -errno, and a line in why (size bytes; may be NULL). */
int luasample_agent_begin(const char *file, const char *const *options, char *why, int size);
/* 1 while the recorder at work is the program's own. */
int ls_own_is_at_work(void);
/* Ends it, and waits until its trace is whole. Returns 1, or 0 = there was none, or it does not
 * end. */
int ls_own_end(void);
/* File of the trace of the last one, NULL = there was none. */
const char *ls_own_trace(void);

#endif
