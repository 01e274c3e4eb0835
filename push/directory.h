/* Profiles as files: see directory.c. Called by push/command.c. */
#ifndef LS_PUSH_DIRECTORY_H
#define LS_PUSH_DIRECTORY_H

#include "push/sink.h"

/* A profile as a file of the directory. Returns 0, or -errno: nothing was tried. */
int ls_push_file(const struct ls_push *p, int dir_fd, const struct ls_export *in,
                 struct ls_answer *ret);

#endif
