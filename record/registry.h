/* The recorder's side of the registry (formats/wire/registry.h): memories that wait for children of
 * the program, and the bell that tells of those that have come. Called by processes.c, in the
 * recorder's main thread. */
#ifndef LS_RECORD_REGISTRY_H
#define LS_RECORD_REGISTRY_H

#include <pthread.h>
#include <sys/types.h>

#include "formats/wire/registry.h"
#include "record/target.h"

struct ls_registry_seat {
        struct ls_target *target;       /* that waits, NULL = none */
        uint64_t taken_ns;              /* when it was first seen to be taken, 0 = it is not */
};

struct ls_registry_side {
        int fd;                         /* of the page, close-on-exec; -1 = children are not
                                         * followed */
        struct ls_registry *page;
        uint64_t generation;            /* our own copy */
        struct ls_registry_seat seats[LS_SEATS];
        int paused;                     /* what comes begins paused */
        int bell_fd;                    /* an eventfd: readable when the bell was rung; -1 = not
                                         * open */
        pthread_t listener;
        int listening;
        _Atomic int stop;
};

/* Makes the page. Returns 0 or -errno. */
int ls_registry_init(struct ls_registry_side *r);
/* Ends listening, and frees all. Takes one that was never made. */
void ls_registry_done(struct ls_registry_side *r);

/* 1 while children are on their way, or are there and may yet make a VM: those that came less than
 * a second ago, and live. */
int ls_registry_expects(const struct ls_registry_side *r, uint64_t now_ns);

/* Puts the way to the registry into the memory of a process. */
void ls_registry_announce(const struct ls_registry_side *r, struct ls_shm *shm);
/* Begins to listen to the bell. Returns 0 or -errno. */
int ls_registry_open(struct ls_registry_side *r);
/* No more processes come. */
void ls_registry_close(struct ls_registry_side *r);
/* Puts a memory on each empty seat. What fails is tried again next time. */
void ls_registry_refill(struct ls_registry_side *r, const struct ls_record_options *o,
                        enum ls_timer timer, uint64_t now_ns);
/* The next process that has come: its target, now the caller's, and its pid, as it says. NULL =
 * none. */
struct ls_target *ls_registry_next(struct ls_registry_side *r, uint64_t now_ns, pid_t *ret_pid);

#endif
