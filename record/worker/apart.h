/* Work on what a target has made, in a copy of this process that has no rights left: whoever takes
 * it over by what it reads has what it writes to, and nothing else. Called by stack.c. */
#ifndef LS_RECORD_WORKER_APART_H
#define LS_RECORD_WORKER_APART_H

/* Runs fn in a child with nobody's rights, where this process is root, no capabilities, no
 * terminal, and the system calls that read files and write to open ones; where it is not, the same
 * with this user's. Waits, so many ms at most. fn returns 0 or -errno; what it changes in memory is
 * lost unless it is shared. Returns that; -EPIPE: it died; -ETIME. One thread. */
int ls_apart(int (*fn)(void *ctx), void *ctx, int ms);

/* main() runs commands under this name whose traces are read by a process that has no rights left,
 * once its files are open: ls_apart_drop. */
#define LS_APART_ARGV0 "luasample-apart"
/* For ls_store_apart, ls_follow_drop and ls_heap_drop: nobody's rights, where this process is root,
 * and no system calls but for open files. Returns 0 or -errno. */
int ls_apart_drop(void);
/* The same for a command of the user's that shows what it has opened (ls_keep, ls_follow_show). */
int ls_apart_view(void);

#endif
