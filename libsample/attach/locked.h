/* An attached program that has locked its memory does not get the agent's locked as well: see
 * locked.c. */
#ifndef LS_LIBSAMPLE_ATTACH_LOCKED_H
#define LS_LIBSAMPLE_ATTACH_LOCKED_H

/* When the attachment begins, on the agent's thread, before a thread of the program can be in the
 * library. */
void ls_attach_locked_begin(void);
/* When it has ended. */
void ls_attach_locked_end(void);

/* A forked child has nothing locked. */
void ls_attach_locked_after_fork_child(void);

#endif
