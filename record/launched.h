/* A program that is started to be recorded. Called by loop.c. */
#ifndef LS_RECORD_LAUNCHED_H
#define LS_RECORD_LAUNCHED_H

struct ls_session;

/* Starts it. Returns -1: it runs; else the status to exit with, after a line. */
int ls_launched_begin(struct ls_session *s);
/* It has ended: takes its last records, then its status. Once; does nothing when none was
 * started. */
void ls_launched_reap(struct ls_session *s);

#endif
