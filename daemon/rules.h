/* Which service a program is of. Called by the scan and by --check. */
#ifndef LS_DAEMON_RULES_H
#define LS_DAEMON_RULES_H

#include "daemon/config.h"
#include "daemon/host/program.h"

/* The first service whose rule fits, or NULL. *ret_off: LUASAMPLE=off stands in its environment, or
 * that cannot be read: then it is left alone whatever the rules say. */
const struct ls_service *ls_rules_find(const struct ls_config *c, const struct ls_proc *p,
                                       const char **ret_off);
/* Whether a program may be attached to at all: NULL, or why not. */
const char *ls_rules_off(pid_t pid);

#endif
