/* Whether a seccomp filter allows a system call: computed, without a call. The program wrote the
 * filter, so it is hostile. Called by record/attach/ of programs that run, and by
 * interpose/sandbox.c in one that is about to have it. */
#ifndef LS_LIBSAMPLE_INJECT_FILTER_H
#define LS_LIBSAMPLE_INJECT_FILTER_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

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

/* One filter's verdict on one call; *budget: steps that may still be made, less those that were;
 * *ret_errno (of LS_VERDICT_FAILS): with what it fails, -1 = with one or another. */
enum ls_verdict ls_seccomp_judge(const struct sock_filter *code, unsigned n,
                                 const struct ls_call *call, unsigned *budget, int *ret_errno);

#endif
