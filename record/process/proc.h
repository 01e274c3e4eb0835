/* Files of /proc that the kernel has of a process and its threads. Used by all of the recorder; its
 * watcher and its workers, processes of their own, have what they need themselves. */
#ifndef LS_RECORD_PROCESS_PROC_H
#define LS_RECORD_PROCESS_PROC_H

#include <dirent.h>
#include <stdio.h>
#include <sys/types.h>

#define LS_PROC_PATH 96u

/* A process without rights has these from another one (record/writer). */
struct ls_proc_door {
        int (*open)(pid_t pid, const char *name);
        ssize_t (*link)(pid_t pid, const char *name, char *buf, size_t size);
        pid_t (*outer_id)(pid_t pid, pid_t inner);      /* see thread_ids.h */
};

/* From now on files of processes are opened and links read by that; NULL = by us. */
void ls_proc_through(const struct ls_proc_door *door);
const struct ls_proc_door *ls_proc_door(void);

/* "/proc/PID/NAME", of a thread (tid not 0) "/proc/PID/task/TID/NAME". Returns path. */
const char *ls_proc_path(char path[LS_PROC_PATH], pid_t pid, pid_t tid, const char *name);

/* flags: of open(2), O_CLOEXEC is added. Returns the descriptor, or -errno. */
int ls_proc_open(pid_t pid, pid_t tid, const char *name, int flags);
/* To be read by lines, NULL with errno. To be closed with fclose. */
FILE *ls_proc_file(pid_t pid, pid_t tid, const char *name);

/* What one read gives, ended with a 0. Returns its length without that, or -errno; then buf is
 * "". */
ssize_t ls_proc_read(pid_t pid, pid_t tid, const char *name, char *buf, size_t size);
/* Where a link points to, likewise. */
ssize_t ls_proc_link(pid_t pid, const char *name, char *buf, size_t size);

/* The threads of a process: NULL with errno, to be closed with closedir. The next one's id, 0 =
 * there are no more; takes NULL. */
DIR *ls_proc_tasks(pid_t pid);
pid_t ls_proc_next(DIR *tasks);
/* Whether the process has this thread. */
int ls_proc_has_task(pid_t pid, pid_t tid);
/* Whether it has the caller's namespace of this name in /proc/PID ("ns/pid"); 0 also when that
 * cannot be seen. */
int ls_proc_shares(pid_t pid, const char *ns);

#endif
