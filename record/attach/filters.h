/* Seccomp filters of a program that is to be attached to: whether they allow the system calls that
 * the agent makes in it. The filters are read from the kernel and computed with what is known of
 * each call; the program wrote them, so they are hostile. Called by risks.c. */
#ifndef LS_RECORD_ATTACH_FILTERS_H
#define LS_RECORD_ATTACH_FILTERS_H

#include <sys/types.h>

#include "libsample/inject/filter.h"

/* calls.c: all of them. */
extern const struct ls_call ls_calls[];
extern const unsigned ls_n_calls;

/* The filters of each thread of the process, on all of ls_calls. Stops each thread that has any for
 * a moment. Returns the worst verdict (which says FAILS only for what may not fail), with the name
 * of its first call in *ret_call; or -errno: they cannot be read. -EACCES: it takes root
 * (CAP_SYS_ADMIN). */
int ls_seccomp_look(pid_t pid, const char **ret_call);

#endif
