/* What suspended.c (looks, and what is sent), suspended_find.c (which coroutines there are) and
 * suspended_stack.c (where they wait) share. */
#ifndef LS_RECORD_WATCH_SUSPENDED_PRIVATE_H
#define LS_RECORD_WATCH_SUSPENDED_PRIVATE_H

#include <time.h>

#include "formats/wire/shm.h"
#include "formats/wire/clock.h"
#include "record/watch/heap.h"
#include "record/watch/look.h"

#define COST_SHARE 100u /* looks use one part in so many of a processor, and long walks another */
#define MOST          16384u                    /* coroutines that are known */
#define INDEX         (4 * MOST)

enum { SUSPENDED, READY, HOWS };

struct co {
        uint64_t at;                    /* its lua_State */
        uint64_t hash;                  /* of its live stack in the last look, 0 = it was not
                                         * suspended */
        uint64_t still_ns;              /* it has not run since some time between this look and the
                                         * next one */
        uint64_t kept_ns[HOWS], kept_since_ns;  /* time there that was not sent */
        uint64_t body;                  /* its first function */
        uint32_t slot;                  /* of its VM */
        uint32_t walk;                  /* number of the walk that met it last */
        uint32_t missed;
        uint32_t id, place, zone, label;/* in our ring; place 0 = its stack was not read */
        uint8_t in_region, marked;      /* marked: zone and label are those that it has here */
        uint8_t fresh;                  /* met in this look for the first time */
        uint8_t doubted;                /* its place is to be walked anew */
        uint8_t was;                    /* SUSPENDED or READY in the last look */
};

struct seen {                           /* a VM */
        const char *global;
        struct ls_heap heap;            /* at the last walk */
        uint64_t ended_ns;              /* when a walk came to its end last, or the VM was seen
                                         * first */
        uint64_t fresh_ns;              /* what those that are met for the first time are charged
                                         * with in this look */
        uint64_t whole_due_ns;          /* when the next walk may take longer than HEAD_NS */
        int ended;                      /* the last walk came to its end */
};

struct ls_suspended {
        struct ls_shm *shm;             /* the program writes there what it likes */
        uint64_t interval_ns;
        struct ls_look *look;           /* NULL = not begun */
        uint64_t now_ns, last_ns, due_ns;       /* of looks */
        int64_t credit_ns;              /* CPU time that may be used; as of paid_ns */
        uint64_t paid_ns;
        uint64_t rest_ns[HOWS];         /* time that is less than a tick */
        uint32_t walk;                  /* number of the last one */
        uint32_t n, random;
        int ends;                       /* this is the last look */
        uint32_t nobody;                /* id for coroutines of which nothing could be read; 0 = not
                                         * defined */
        struct co co[MOST];
        uint32_t index[INDEX];          /* by address: 1 + number in co[] */
        struct seen vms[LS_VMS_MOST];
};

extern struct ls_suspended ls_sus;


static inline void ls_sus_count(enum ls_loss loss, uint64_t n)
{
        atomic_fetch_add(&ls_sus.shm->lost[loss], n);
}

/* suspended.c: sends what a coroutine has, in whole ticks; the rest goes to the next one. Returns
 * -1 when it did not fit into the ring: it waits. */
int ls_sus_send(struct co *co, uint64_t now);
/* The tables were made anew: ids mean nothing any more. */
void ls_sus_forget_ids(void);

/* suspended_find.c: all coroutines of all VMs, as far as they can be found. */
void ls_sus_find(uint64_t now);
/* Charges time to all that were suspended in the last look, of the VM in that slot or, LS_VMS_MOST,
 * of any. */
void ls_sus_charge_seen(uint32_t slot, uint64_t ns);

/* suspended_stack.c: looks at each that is known, charges it, then reads the stacks that are not
 * known. */
void ls_sus_look_at_all(uint64_t passed, uint64_t now);

#endif
