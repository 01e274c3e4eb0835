/* Children that attached processes fork: each tells of itself (struct ls_shm, forked), and is
 * attached to as its parent was, some ms later. So it does not matter whose they are and what
 * they see of the file system; and those that run another program at once, or end, are left
 * alone. Called by attached.c. */
#ifndef LS_RECORD_ATTACH_CHILDREN_H
#define LS_RECORD_ATTACH_CHILDREN_H

#include <sys/types.h>

#include "record/process/memory.h"

#define LS_ATTACH_CHILDREN 256u

struct ls_attach_child {
        pid_t pid, parent;
        uid_t uid;                      /* its parent's */
        int memory_fd;                  /* its parent's, which it has too until it runs another
                                         * program */
        uint64_t due_ns;
};

struct ls_attach_children {
        struct ls_attach_child waiting[LS_ATTACH_CHILDREN];
        unsigned n;
        unsigned long lost;             /* of which there was no room to tell, or to wait */
};

/* Takes what the process has told of, which is uid's. */
void ls_attach_children_take(struct ls_attach_children *c, pid_t parent, uid_t uid,
                             const struct ls_memory *m, uint64_t now_ns);
/* The next that is to be attached to, 0 = none is due: it lives, and runs the program that its
 * parent ran. */
pid_t ls_attach_children_next(struct ls_attach_children *c, uint64_t now_ns);
/* When the next is due, UINT64_MAX = none waits. */
uint64_t ls_attach_children_due(const struct ls_attach_children *c);

#endif
