/* Brings the agent into a process that runs already: one of its threads is stopped for the time of
 * two system calls, which it makes for us; the last begins a thread of ours, in which all else
 * happens while the program runs on. Called by attach.c. */
#ifndef LS_RECORD_ATTACH_INJECT_H
#define LS_RECORD_ATTACH_INJECT_H

#include "formats/wire/attach.h"
#include "record/attach/modules.h"
#include "record/attach/way.h"

struct ls_inject {
        pid_t pid;
        const struct ls_modules *modules;
        struct ls_attach page;          /* what the thread is told; filled by the caller but for the
                                         * region's own fields */
        uint64_t region, page_at;       /* out: in the program; 0 = there is none */
        const char *refused;            /* out: the system call that the program's kernel refused,
                                         * NULL = none */
        int refused_error;              /* its -errno */
        struct ls_way way;              /* inject.c's own, as what follows */
        unsigned libc_version;          /* 236 = 2.36; 0 = not known */
        pid_t carrier;                  /* the first thread of ours */
        uint64_t stopped_ns;            /* out: how long the thread of the program was stopped */
        uint64_t queued_ns;             /* out: and how long meanwhile it waited for a processor, as
                                         * it may have to at any time */
};

/* Begins the thread. Returns 0 or -errno, and then nothing of it is left: -EPERM may not be traced,
 * -EBUSY is traced by another, -EAGAIN no thread could be stopped, -EALREADY it is stopped, -ESRCH
 * gone, -ESTALE it has begun another program, -EREMOTEIO its kernel refused a system call. */
int ls_inject_begin(struct ls_inject *in);
/* After a beginning that came about, once: when the thread has made another (state is
 * LS_ATTACH_FILES), or that is not waited for (failed): then all of it leaves. */
void ls_inject_end(struct ls_inject *in, int failed);
#endif
