/* Where a name that the user gave for output leads. Used by cli/output.c and
 * record/trace_file.c. */
#ifndef LS_CLI_FOLLOW_H
#define LS_CLI_FOLLOW_H

#include <limits.h>
#include <sys/stat.h>

/* Follows the links at the end of path to what is there: its name, and what it is. A link in a
 * directory where everybody may make some (sticky, as /tmp is) is followed only when it is ours or
 * the directory's owner's, whatever fs.protected_symlinks says. Returns 0 or -errno: -ENOENT also
 * for a link that leads nowhere, -EACCES for another's, -ELOOP. */
int ls_follow(const char *path, char ret_real[PATH_MAX], struct stat *ret_st);
/* Opens what ls_follow has found, which is no regular file, to write; nothing is made or shortened.
 * Returns it, or -errno: -EEXIST when something else is there by now. */
int ls_follow_open(const char *real, const struct stat *st);

#endif
