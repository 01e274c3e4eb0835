/* Children of the program that ran LuaJIT and are not recorded: the user is told. The agent tells
 * of those that the program starts itself; those that a wrapper starts for it (env, make, a shell)
 * are found in /proc while they live. Called by the session. */
#ifndef LS_RECORD_PROCESS_CHILDREN_H
#define LS_RECORD_PROCESS_CHILDREN_H

#include <sys/types.h>

#include "formats/wire/shm.h"

#define LS_CHILDREN_KNOWN 128

struct ls_children {
        /* Processes that were looked at, with the file that they ran then: a later exec makes a new
         * look worthwhile. */
        struct { pid_t pid; int told, seen; dev_t dev; ino_t ino; } known[LS_CHILDREN_KNOWN];
        unsigned next;                          /* of known, to use next */
        uint64_t found, unseen;
        uint64_t since_ns, looked_ns;           /* CLOCK_MONOTONIC at the first look; what all have
                                                 * taken */
        /* Tells of one; text is a whole sentence. */
        void (*notice)(void *ctx, const char *text);
        void *ctx;
        struct ls_workers *workers;             /* look at the files, with the rights of who runs
                                                 * them */
        const char *cwd;                        /* the program's at its start */
        int following;                          /* those that can be recorded are: only a second
                                                 * look at one tells */
        int (*is_recorded)(void *ctx, pid_t pid);
};

/* Looks at the slots that the agent filled; what they name, by that program's worker. Often. */
struct ls_worker;
void ls_children_poll(struct ls_children *c, struct ls_shm *shm, struct ls_worker *w);
/* Looks at all descendants of pid that live now. Each second. */
void ls_children_walk(struct ls_children *c, pid_t pid);

#endif
