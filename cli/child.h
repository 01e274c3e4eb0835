/* A child that runs luasample or a program of the user's beside us. Used by the daemon and by
 * top. */
#ifndef LS_CLI_CHILD_H
#define LS_CLI_CHILD_H

#include <sys/resource.h>
#include <sys/types.h>

struct ls_child {
        const char *const *words;       /* ended by NULL; borrowed */
        const char *path;               /* the program; NULL = luasample itself */
        char *const *env;               /* NULL = ours */
        pid_t parent;                   /* who has forked: the child ends when that is gone */
        int end_signal;                 /* sent to the child when parent ends */
        int in, out, err;               /* descriptors; 0 = /dev/null */
        rlim_t cpu_s, memory, file;     /* the most of each, in s and bytes; 0 = as we have it */
        int nice;                       /* 0 = as we are */
        int keeps_mask;                 /* signals that are blocked stay so, else none are */
};

/* Becomes the program, in the child just forked: in a session of its own, so without a terminal of
 * ours. What fails is the status that it exits with. */
void __attribute__((noreturn)) ls_child_become(const struct ls_child *c);

#endif
