/* Where suspended coroutines wait: the stacks that are told apart, each sent once and then named by
 * its number. Called by suspended.c. */
#ifndef LS_RECORD_WATCH_PLACES_H
#define LS_RECORD_WATCH_PLACES_H

#include "libsample/thread.h"
#include "libsample/handler/vms.h"

#define LS_LIVE_BYTES 1024u             /* of a live stack that are read: the innermost ones */

struct ls_live {                        /* a suspended coroutine as it was read */
        const char *L;                  /* its lua_State, a copy */
        const char *stack;              /* copy of what lies in [from, from + n) */
        uint64_t from, n;
};

struct ls_waiting {                     /* what is known of it */
        uint32_t place;                 /* number of its stack */
        uint32_t function;              /* id of its first function */
        uint64_t body;                  /* address of that */
        int old;                        /* 1 = so it was some time ago: ls_places_read should look
                                         * again */
};

/* The places of nothing that was sent before: the ring's tables are new. */
void ls_places_forget(void);
/* A look begins. Returns 1 when all places are forgotten, since there were too many. */
int ls_places_begin(void);
/* Where it waits, from the copy alone. Returns 0, or -1: ls_places_read must tell. */
int ls_places_find(const struct ls_live *live, uint64_t now_ns, struct ls_waiting *ret);
/* The same from the program's memory: in the mirror. Sends the stack when it is new. still: asked
 * before, whether it stands there still. Returns 0 or -1. */
int ls_places_read(struct ls_thread *t, const struct ls_vm *vm, const lua_State *L,
                   const struct ls_live *live, uint64_t now_ns, int (*still)(void *ctx), void *ctx,
                   struct ls_waiting *ret);
/* The place of stacks that were not read; 0 = it cannot be sent now. */
uint32_t ls_places_none(struct ls_thread *t, uint64_t now_ns);

#endif
