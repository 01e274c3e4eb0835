/* Tells signals that a process sent to the whole process group from those sent to the recorder
 * alone: the program has had the former. The kernel does not say which it was, so a process of ours
 * waits in the group with all signals blocked: what is pending there went to all. Called by
 * signals.c. */
#ifndef LS_RECORD_PROCESS_SENTINEL_H
#define LS_RECORD_PROCESS_SENTINEL_H

#include <sys/types.h>

/* Starts it. Returns its pid, or -errno: then every signal counts as sent to the recorder alone. */
pid_t ls_sentinel_start(void);
void ls_sentinel_stop(pid_t pid);               /* takes what ls_sentinel_start returned */

/* 1 when sig has reached the sentinel too; waits some ms for it. */
int ls_sentinel_has(pid_t pid, int sig);

#endif
