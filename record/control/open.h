/* The ways in for --control. Called by options.c and the session. */
#ifndef LS_RECORD_CONTROL_OPEN_H
#define LS_RECORD_CONTROL_OPEN_H

#include "record/control/clients.h"

/* Whether text is what --control can take; else a line says why, and it returns -EINVAL. */
int ls_control_check(const char *text);
/* Opens what text names, NULL = nothing. Returns 0, or -errno after a line. */
int ls_control_open(struct ls_control *c, const char *text);

#endif
