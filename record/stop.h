/* Stops the threads of another process for a moment, by ptrace, so that its memory can be read as of one instant. A thread that
 * is blocked in the kernel is left alone: it stands still by itself, and a stop would end some system calls with EINTR. Called by
 * stack.c. */
#ifndef LS_RECORD_STOP_H
#define LS_RECORD_STOP_H

#include <sys/types.h>
#include <sys/user.h>

#define LS_STOP_MOST 64u

struct ls_stopped {
        pid_t tid;
        int blocked;                    /* not stopped: it waits in the kernel at ip and sp */
        int traced;                     /* stopped by us */
        int signal;                     /* it was about to get this one: it gets it when it goes on */
        struct user_regs_struct regs;   /* blocked: rip and rsp only */
};

struct ls_stop {
        pid_t pid;
        unsigned n;                     /* threads[] */
        unsigned more;                  /* threads beyond, or gone meanwhile */
        struct ls_stopped threads[LS_STOP_MOST];
};

/* Stops what runs. Returns 0; -EPERM: it may not be traced; -EBUSY: another traces it; -ESRCH: it is gone. Then nothing is
 * stopped. */
int ls_stop_begin(struct ls_stop *s, pid_t pid);
/* Lets all go on. */
void ls_stop_end(struct ls_stop *s);

#endif
