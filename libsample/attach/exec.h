/* exec in a process that is attached to: see exec.c. */
#ifndef LS_LIBSAMPLE_ATTACH_EXEC_H
#define LS_LIBSAMPLE_ATTACH_EXEC_H

/* From now on the exec family gives up the ticks first. In the agent's thread, when the recorder
 * can hold threads. */
void ls_attach_exec_begin(void);
/* The entries are as they were. */
void ls_attach_exec_end(void);
/* In a forked child, which is not attached to: none is left half way. */
void ls_attach_exec_after_fork_child(void);

#endif
