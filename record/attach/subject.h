/* A process that is to be attached to: what it is, and what stands against it. Called by
 * attached.c and doctor.c. */
#ifndef LS_RECORD_ATTACH_SUBJECT_H
#define LS_RECORD_ATTACH_SUBJECT_H

#include "record/attach/inject.h"

struct ls_subject {
        pid_t pid;
        pid_t living;                   /* a thread of it: the first, unless that has ended */
        pid_t inner_pid;                /* as it knows itself, in its pid namespace */
        char name[64];                  /* its comm, fit to print */
        unsigned uid;                   /* whose it is; its files in /proc are root's when it has
                                         * closed itself */
        struct ls_workers *workers;     /* read what is in it */
        struct ls_modules modules;
        uint64_t entry;                 /* of an agent of ours that is there already, 0 = none */
        unsigned agents;                /* that are loaded, ours or others */
        struct ls_inject inject;
        pid_t agent_tid;                /* the agent's thread; 0 = none */
        unsigned robust;                /* its agent sees the recorder's end (robust.h); 0 = not */
        uint64_t held_ns;               /* the longest that a thread was stopped for hold.h */
};

#define LS_SUBJECT_FORCE 1u             /* risks are warned of, and taken */
#define LS_SUBJECT_ALL   2u             /* each reason is said, not the first alone */
#define LS_SUBJECT_OWN   4u             /* the program itself asks for it: risks are its own */

/* Looks at the process and says in a line why it cannot be attached to. workers: read what is in
 * it. memory: bytes that are to be shared with it. Returns 0 or -errno. */
int ls_subject_open(struct ls_subject *t, pid_t pid, struct ls_workers *workers,
                    const char *agent_path, uint64_t memory, unsigned how);
void ls_subject_done(struct ls_subject *t);
/* What the user can do when tracing is not permitted: a line. */
void ls_subject_not_permitted(const struct ls_subject *t);

/* risks.c: what an attachment could do to it. status: of /proc/PID/status. Returns 0, or -EPERM
 * after a line. */
int ls_risks_check(const struct ls_subject *t, const char *status, uint64_t memory, unsigned how);

#endif
