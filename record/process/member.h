/* What /proc says of a process that claims to be one of the program's. Called by processes.c. */
#ifndef LS_RECORD_PROCESS_MEMBER_H
#define LS_RECORD_PROCESS_MEMBER_H

#include <stddef.h>
#include <sys/types.h>

/* 1 when the process lives and has the memory file fd mapped: then it is ticked. A pid that a
 * process merely wrote down could be that of a stranger, whom a tick would kill. */
int ls_member_has(pid_t pid, int fd);
/* 1 when the process can be one that parent forked, which is or was uid's: another user's process
 * with the memory mapped had it passed by the program. Root's may have become anybody's. */
int ls_member_is_child(pid_t pid, pid_t parent, uid_t uid);
/* What it is called: its command line with blanks between the arguments, of which only the first is
 * taken when first_only. "" when it has ended. */
void ls_member_name(pid_t pid, int first_only, char *buf, size_t size);

/* Its working directory, or fallback, in buf of PATH_MAX bytes. */
void ls_member_cwd(pid_t pid, const char *fallback, char *buf);

#endif
