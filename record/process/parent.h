/* --parent FD: the recorder was begun by the program that it is to record. Until the recording
 * runs, what goes wrong is said to that, through a socket. Called by options.c and attached.c. */
#ifndef LS_RECORD_PROCESS_PARENT_H
#define LS_RECORD_PROCESS_PARENT_H

/* Says who we are, and waits for the word. From now on errors go to the program. Returns 0, or
 * -EINVAL after a line. */
int ls_parent_meet(const char *fd);
/* The recording runs: "ok". Errors go to stderr again. Does nothing without --parent. */
void ls_parent_go_on(void);

#endif
