/* Brings the agent into a process that runs already: one of its threads is stopped for the time of three system calls, which
 * it makes for us; the last begins a thread of ours, in which all else happens while the program runs on. Called by
 * attach.c. */
#ifndef LS_RECORD_ATTACH_INJECT_H
#define LS_RECORD_ATTACH_INJECT_H

#include "formats/wire/attach.h"
#include "record/attach_modules.h"

struct ls_inject {
        pid_t pid;
        const struct ls_modules *modules;
        struct ls_attach page;          /* what the thread is told; filled by the caller but for the region's own fields */
        uint64_t region, page_at;       /* out: in the program */
        uint64_t stopped_ns;            /* out: how long the thread of the program was stopped */
        uint64_t queued_ns;             /* out: and how long meanwhile it waited for a processor, as it may have to at any time */
};

/* Begins the thread. Returns 0 or -errno: -EPERM may not be traced, -EBUSY is traced by another, -EAGAIN no thread could be
 * stopped, -ESRCH gone, others: what the program's kernel said to a system call. */
int ls_inject_begin(struct ls_inject *in);
/* Now and then: threads that came out of the kernel too late for that, and stopped then, go on. */
void ls_inject_let_go(void);
/* This one was asked to stop, and has not yet. */
void ls_inject_note_late(pid_t tid);

#endif
