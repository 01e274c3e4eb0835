/* Finds the agent's shared object: beside this program in its build directory, or where it was
 * installed. Never looks at the working directory. Called by record and doctor. */
#ifndef LS_RECORD_PROCESS_AGENT_PATH_H
#define LS_RECORD_PROCESS_AGENT_PATH_H

#include <stddef.h>

/* Writes the absolute path. Returns 0, or -ENOENT / -ENAMETOOLONG. */
int ls_agent_path(char *ret_path, size_t size);

/* A path for LD_PRELOAD, which is split at spaces and colons, and in which $ is special: path
 * itself where that is harmless, else one through a descriptor of this process, which stays open.
 * Returns 0 or -errno. */
int ls_agent_preload_path(const char *path, char *ret_path, size_t size);

#endif
