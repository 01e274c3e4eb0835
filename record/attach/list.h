/* Which processes -p, --name and --cgroup mean. Called by attached.c. */
#ifndef LS_RECORD_ATTACH_LIST_H
#define LS_RECORD_ATTACH_LIST_H

#include <sys/types.h>

#include "record/process/asked.h"

#define LS_ATTACH_MOST 256u             /* processes of one recording */

/* Returns how many, or -errno after a line. No process is twice among them; luasample itself never
 * is. */
int ls_attach_list(const struct ls_record_options *o, pid_t ret[LS_ATTACH_MOST]);

#endif
