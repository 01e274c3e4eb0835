/* The ids of threads and processes: here, and in the pid namespace of a program, which may be
 * another one. Called by all that follows what a program says of its threads. */
#ifndef LS_RECORD_PROCESS_THREAD_IDS_H
#define LS_RECORD_PROCESS_THREAD_IDS_H

#include <sys/types.h>

/* The id of a thread or process as it knows itself, in its own pid namespace. 0 = it is gone. */
pid_t ls_thread_inner_id(pid_t pid, pid_t tid);
/* The thread of the process that knows itself by this id, 0 = there is none. */
pid_t ls_thread_outer_id(pid_t pid, pid_t inner);

#endif
