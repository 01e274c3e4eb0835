/* Processes that run already (`luasample record -p`), and the children that they fork: the agent
 * is brought into each, and taken out again when the recording ends. Called by loop.c. */
#ifndef LS_RECORD_ATTACHED_H
#define LS_RECORD_ATTACHED_H

struct ls_session;

/* Attaches to those that are asked for. Returns -1: at least one is recorded; else the status to
 * exit with, after a line for each. */
int ls_attached_begin(struct ls_session *s);
/* Attaches to the next child that has come, if there is one. */
void ls_attached_next(struct ls_session *s);
/* At the end: how many children are not recorded, but for those of which it was said why. */
void ls_attached_say_lost(struct ls_session *s);

#endif
