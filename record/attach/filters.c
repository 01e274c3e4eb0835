/* The filters of each thread, read from the kernel: see filters.h. */
#include "record/attach/filters.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/attach/threads.h"
#include "record/attach/stop.h"
#include "record/process/proc.h"

#define STEPS_MOST 50000000u            /* of all filters of a process on all calls: 0.2 s */
#define FILTERS_MOST 64u                /* of a thread */

/* All filters of a thread on one call: the kernel takes the worst, too. */
struct filters {
        unsigned n, length[FILTERS_MOST];
        struct sock_filter *code[FILTERS_MOST];
};

static enum ls_verdict judge_all(const struct filters *all, const struct ls_call *call,
                                 unsigned *budget)
{
        enum ls_verdict worst = LS_VERDICT_ALLOWED;

        for (unsigned i = 0; i < all->n; i++) {
                enum ls_verdict v;
                int err;

                v = ls_seccomp_judge(all->code[i], all->length[i], call, budget, &err);
                if (v == LS_VERDICT_FAILS &&
                    (call->may_fail < 0 || (call->may_fail && call->may_fail == err)))
                        v = LS_VERDICT_ALLOWED;
                worst = v > worst ? v : worst;
        }
        return worst;
}

static void free_filters(struct filters *all)
{
        while (all->n)
                free(all->code[--all->n]);
}

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c
#endif

/* Of a thread that is stopped. Returns 0 or -errno. */
static int read_filters(pid_t tid, struct filters *all)
{
        all->n = 0;
        for (;;) {
                unsigned long i = all->n;
                long n = ptrace((enum __ptrace_request)PTRACE_SECCOMP_GET_FILTER, tid, i, NULL);

                if (n < 0 && errno == ENOENT && i)
                        return 0;       /* that was the last */
                if (n < 0)
                        return -errno;
                if (i == FILTERS_MOST || n > BPF_MAXINSNS)
                        return -E2BIG;
                all->code[i] = calloc((size_t)n, sizeof(struct sock_filter));
                if (!all->code[i])
                        return -ENOMEM;
                all->n++;
                all->length[i] = (unsigned)n;
                if (ptrace((enum __ptrace_request)PTRACE_SECCOMP_GET_FILTER, tid, i,
                           all->code[i]) != n)
                        return -EIO;
        }
}

struct look {
        unsigned budget;
        enum ls_verdict worst;
        const char *call;
};

static int look_at(struct look *l, pid_t pid, pid_t tid)
{
        struct ls_stopped t = { .tid = tid };
        struct filters all = { 0 };
        int err = ls_stop_one(pid, &t);

        if (err < 0)
                return err == -ESRCH ? 0 : err; /* it has ended */
        err = read_filters(tid, &all);
        ls_stop_one_end(pid, &t);
        for (unsigned i = 0; err == 0 && i < ls_n_calls; i++) {
                enum ls_verdict v = judge_all(&all, &ls_calls[i], &l->budget);

                if (v > l->worst) {
                        l->worst = v;
                        l->call = ls_calls[i].name;
                }
        }
        free_filters(&all);
        return err;
}

static int has_filter(pid_t pid, pid_t tid)
{
        FILE *f = ls_proc_file(pid, tid, "status");
        char line[256];
        int mode = 0;

        while (f && fgets(line, sizeof(line), f))
                if (sscanf(line, "Seccomp: %d", &mode) == 1)
                        break;
        if (f)
                fclose(f);
        return mode == SECCOMP_MODE_FILTER;
}

int ls_seccomp_look(pid_t pid, const char **ret_call)
{
        struct look l = { STEPS_MOST, LS_VERDICT_ALLOWED, NULL };
        DIR *dir = ls_proc_tasks(pid);
        int err = 0;
        pid_t tid;

        if (!dir)
                return -errno;
        while (err == 0 && (tid = ls_proc_next(dir)))
                if (has_filter(pid, tid))
                        err = look_at(&l, pid, tid);
        closedir(dir);
        *ret_call = l.call;
        return err < 0 ? err : (int)l.worst;
}
