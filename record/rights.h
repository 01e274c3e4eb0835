/* The rights of a program over files: what it names is opened with these and in its own root directory, never with the
 * recorder's rights. Called by what opens sources and programs. */
#ifndef LS_RECORD_RIGHTS_H
#define LS_RECORD_RIGHTS_H

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

#define LS_RIGHTS_GROUPS 64             /* more groups are not taken over: fewer rights than it has, never more */

struct ls_rights {                      /* zeroed: not known yet, which is nobody's */
        pid_t pid;                      /* 0 = this process's own, when known */
        uid_t uid;
        gid_t gid;
        int n_groups;
        gid_t groups[LS_RIGHTS_GROUPS];
        int known;
        int elsewhere;                  /* its root directory or what is mounted there is not ours */
};

/* Reads those that the process has now (0 = ours). Of one that has ended what is there is kept; where that is nothing, they are
 * ours, unless we are root. */
void ls_rights_read(struct ls_rights *r, pid_t pid);

/* Opens a regular file for reading as the process would; where its rights cannot be taken over, a file that all may read.
 * ret_path: PATH_MAX bytes, the file's path without links as we see it, or in the process's root directory; may be NULL.
 * Returns a descriptor above stdio's or -errno. Meanwhile the calling thread's rights over files are the process's. */
int ls_rights_open(const struct ls_rights *r, const char *path, struct stat *ret_st, char *ret_path);

/* For calls that open by themselves: between the two, this thread has the process's rights over files. Returns 0, or -EPERM
 * when they cannot be had, or the process has another root directory; ls_rights_end is for 0 only. */
struct ls_rights_before { uid_t uid; gid_t gid; int n_groups; gid_t groups[LS_RIGHTS_GROUPS]; };
int ls_rights_begin(const struct ls_rights *r, struct ls_rights_before *before);
void ls_rights_end(const struct ls_rights_before *before);

#endif
