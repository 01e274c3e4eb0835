/* The rights of a process that reads what a target made: as few as the target has. Called by the
 * worker's processes, first of all, and by those who start them. */
#ifndef LS_RECORD_WORKER_CONFINE_H
#define LS_RECORD_WORKER_CONFINE_H

#include <sys/types.h>

/* What a confined process may ask of the kernel, beside memory of its own and messages on open
 * descriptors. */
enum ls_confine_room {
        LS_CONFINE_FILES,               /* opens files to read them */
        LS_CONFINE_PROBE,               /* runs a target's LuaJIT: loads code, and executes a
                                         * program */
        LS_CONFINE_MEMORY,              /* reads memory through descriptors that it has: opens
                                         * nothing */
        LS_CONFINE_WRITER,              /* writes open files, and makes copies of itself: opens
                                         * nothing */
        LS_CONFINE_READER,              /* reads and writes open files: opens nothing, and starts
                                         * nothing */
        LS_CONFINE_HTTP,                /* answers on sockets that listen, or are connected */
        LS_CONFINE_PUSH,                /* opens files to read them, loads libraries, looks up names
                                         * and connects; writes no file, and starts nothing. A
                                         * command of the user's: it ends with who started it only
                                         * where that has said so */
        LS_CONFINE_PUSH_FILES,          /* the same, but makes, renames and removes files, and
                                         * connects to nothing */
        LS_CONFINE_VIEW,                /* shows what it has open, on a terminal perhaps: opens
                                         * files to read them, and starts nothing */
        LS_CONFINE_NROOMS
};

struct ls_rights {
        uid_t uid;                      /* the target's */
        gid_t gid;
        int all_same;                   /* real, effective, saved and file ids do not differ */
        int is_own;                     /* 1 = we cannot become that user: ours are kept, less what
                                         * can be given away */
        dev_t root_dev;                 /* the target's root directory, to tell views of files
                                         * apart; 0 = not known */
        ino_t root_ino;
        ino_t mounts;                   /* its mount namespace, likewise */
};

/* Whether this process is a root who may become another user: not that of a namespace of one user,
 * nor one without CAP_SETUID and CAP_SETGID. Such a one is a user like others here, who gives up
 * what he has of capabilities. Normal context. */
int ls_rights_change(void);
/* Those of a process. Returns 0 or -errno: -ESRCH, it has ended. */
int ls_rights_of(pid_t pid, struct ls_rights *ret);
/* Those of this process's user: what the user named himself. */
void ls_rights_own(struct ls_rights *ret);
/* Those of nobody, where this process is root; else its own. */
void ls_rights_nobody(struct ls_rights *ret);
/* The root directory of a process, when it is another than ours and we may make it ours. Returns a
 * descriptor or -1. */
int ls_rights_open_root(pid_t pid, const struct ls_rights *r);
int ls_rights_same(const struct ls_rights *a, const struct ls_rights *b);

/* Gives up, for good: other users' rights, capabilities, gaining any by exec, core dumps, files of
 * any size, and all system calls that the room does not need. root_fd: becomes the root directory
 * where this process may say so; -1 = it stays. filter 0: no system call is forbidden (a debuginfod
 * server was asked for). Returns 0 or -errno: then nothing of the target's may be touched. Normal
 * context, one thread. */
int ls_confine(const struct ls_rights *r, int root_fd, enum ls_confine_room room, int filter);

#endif
