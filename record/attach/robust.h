/* Tells the agents of attached processes that the recorder has ended, however it did: the kernel
 * marks a word of the memory that each shares with it (set_robust_list(2)). That is seen in other
 * pid namespaces, too, and without a system call. Called by attach.c and subject.c. */
#ifndef LS_RECORD_ATTACH_ROBUST_H
#define LS_RECORD_ATTACH_ROBUST_H

/* Has the kernel mark recorder_thread (struct ls_shm) in the memory file fd when this process ends;
 * fd stays the caller's. For the first thread only, which lives as long as the process. Returns
 * what ls_robust_end takes; 0 = it cannot be had: that agent does not see the end. */
unsigned ls_robust_begin(int fd);
/* Takes 0 as well. */
void ls_robust_end(unsigned entry);

#endif
