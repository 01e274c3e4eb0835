/* Seccomp filters of a program that is to be attached to: whether they allow the system calls that
 * the agent makes in it. The filters are read from the kernel and computed with what is known of
 * each call; the program wrote them, so they are hostile. Called by risks.c. */
#ifndef LS_RECORD_ATTACH_FILTERS_H
#define LS_RECORD_ATTACH_FILTERS_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What filters say to a call, the worst last. UNKNOWN: it depends on what is not known, or on
 * another process. */
enum ls_verdict { LS_VERDICT_ALLOWED, LS_VERDICT_FAILS, LS_VERDICT_UNKNOWN, LS_VERDICT_ENDS };

struct ls_call {                        /* a system call that the agent makes in the program */
        int nr;
        const char *name;
        uint8_t known;                  /* bit i: its argument i is args[i], not anything */
        int may_fail;                   /* errno that the filter may answer; -1 = any, 0 = none */
        uint64_t args[6];
};

/* calls.c: all of them. */
extern const struct ls_call ls_calls[];
extern const unsigned ls_n_calls;

/* One filter's verdict on one call; *budget: steps that may still be made, less those that were;
 * *ret_errno (of LS_VERDICT_FAILS): with what it fails, -1 = with one or another. */
enum ls_verdict ls_seccomp_judge(const struct sock_filter *code, unsigned n,
                                 const struct ls_call *call, unsigned *budget, int *ret_errno);
/* The filters of each thread of the process, on all of ls_calls. Stops each thread that has any for
 * a moment. Returns the worst verdict (which says FAILS only for what may not fail), with the name
 * of its first call in *ret_call; or -errno: they cannot be read. -EACCES: it takes root
 * (CAP_SYS_ADMIN). */
int ls_seccomp_look(pid_t pid, const char **ret_call);

#endif
