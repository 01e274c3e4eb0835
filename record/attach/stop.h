/* Stops the threads of another process for a moment, by ptrace, so that its memory can be read as
 * of one instant. A thread that is blocked in the kernel is left alone: it stands still by itself,
 * and a stop would end some system calls with EINTR. Called by stack.c, attach/hold.c and
 * attach/filters.c. */
#ifndef LS_RECORD_ATTACH_STOP_H
#define LS_RECORD_ATTACH_STOP_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#define LS_STOP_MOST 1024u

struct ls_stopped {
        pid_t tid;
        int blocked;                    /* not stopped: it waits in the kernel at ip and sp */
        int traced;                     /* stopped by us */
        int signal;                     /* it was about to get this one: it gets it when it goes
                                         * on */
        uint64_t asleep_ns;             /* of ls_stop_one: how long it had slept */
        struct user_regs_struct regs;   /* blocked: rip and rsp only */
};

struct ls_stop {
        pid_t pid;
        pid_t except;                   /* a thread that is left alone; 0 = none */
        unsigned most;                  /* threads that are wanted, LS_STOP_MOST at most */
        unsigned n;                     /* threads[] */
        unsigned more;                  /* threads beyond, or gone meanwhile */
        struct ls_stopped threads[LS_STOP_MOST];
};

/* Stops what runs of at most so many threads, but for one (0 = none). Returns 0; -EPERM: it may not
 * be traced; -EBUSY: another traces it; -ESRCH: it is gone. Then nothing is stopped. */
int ls_stop_begin(struct ls_stop *s, pid_t pid, unsigned most, pid_t except);
/* Stops what has begun to run since, and threads that are new. Returns how many, 0 = all stand
 * still, or -errno as above. */
int ls_stop_again(struct ls_stop *s);
/* Lets all go on. */
void ls_stop_end(struct ls_stop *s);

/* The same bit by bit: lists threads and stops none; asks one of them to stop, unless it is
 * blocked; says whether it stands (1; 0 = not yet, it waits for a processor, unless that is waited
 * for; or -errno); lets it go on, when it stands. */
int ls_stop_list(struct ls_stop *s, pid_t pid, unsigned most, pid_t except);
int ls_stop_ask(struct ls_stop *s, unsigned i);
int ls_stop_stands(struct ls_stop *s, unsigned i, int wait);
void ls_stop_end_one(struct ls_stop *s, unsigned i);

/* One thread (tid), which may be blocked, stands still from the first to the second. What it slept
 * in begins again for the rest of its time. Returns 0; -ETIMEDOUT: it is in the kernel for long,
 * and goes on by ls_stop_let_go; or -errno. */
int ls_stop_one(pid_t pid, struct ls_stopped *t);
void ls_stop_one_end(pid_t pid, struct ls_stopped *t);

/* While threads of a program are stopped nobody should keep us from going on, if we may have that.
 * 0: the scheduling class is what it was. By one thread. */
void ls_stop_hurry(int on);

/* Now and then: threads that came out of the kernel too late for that, and stopped then, go on. */
void ls_stop_let_go(void);
/* This one was asked to stop, and has not yet. */
void ls_stop_note_late(pid_t pid, pid_t tid);

#endif
