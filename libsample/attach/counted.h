/* The agent's thread is none of the program's: the C library counts its threads, and what ends the
 * last one ends the process. Called by start/attach.c, in the agent's thread. */
#ifndef LS_LIBSAMPLE_ATTACH_COUNTED_H
#define LS_LIBSAMPLE_ATTACH_COUNTED_H

/* The C library counts this thread no more, where it has its count in the open (glibc 2.34 and
 * later): the program's last thread runs the handlers of exit, as it would alone. */
void ls_attach_counted_leave(void);
/* It does again: this thread is about to end. */
void ls_attach_counted_return(void);
/* 1 when no other thread of the process lives: the last one has ended by a bare system call, or was
 * killed alone. *ret_status: the first thread's. */
int ls_attach_counted_alone(int *ret_status);
/* Ends this thread, and the process with that status. */
void ls_attach_counted_end(int status);

#endif
