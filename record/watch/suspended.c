/* Suspended coroutines: see suspended.h.
 *
 * A look finds all coroutines of a VM in its list of objects, and charges to each that is suspended
 * the time since the look before. So each look is a sample of what waits, the sums are right
 * however seldom it comes, and a wait that is shorter than the time between two looks is met by
 * chance, in proportion. The looks come at times that are no multiple of anything, and as seldom as
 * it takes to use one part in COST_SHARE of a processor. Of a large heap most looks see the newest
 * objects and the coroutines that are known; one that is first met in a walk to the end is charged
 * for most of the time since the last such walk, as it stands for others that came and went
 * meanwhile.
 *
 * The program runs meanwhile, and nothing stops it. A list that changes under our hands does not
 * always lead to its end, which is counted; then the coroutines that are known stay for some looks.
 * What is read of a coroutine is believed when its lua_State and its live stack are the same before
 * and after. While they are as in the look before, the stack need not be walked. */
#include "record/watch/suspended.h"

#include <string.h>

#include "libsample/agent.h"
#include "libsample/handler/coroutines.h"
#include "libsample/handler/functions.h"
#include "libsample/handler/sample.h"
#include "record/watch/places.h"
#include "record/watch/remote.h"
#include "record/watch/suspended_private.h"

#define LOOK_MIN_NS   UINT64_C(20000000)        /* between two looks */
#define LOOK_MAX_NS   UINT64_C(10000000000)
#define CREDIT_NS UINT64_C(50000000) /* CPU time that may be used at once, as at the beginning */
#define SEND_NS                                                                                    \
        UINT64_C(1000000000) /* time that is sent at once while a coroutine stays where it is */
#define END_NS        UINT64_C(300000000)       /* for what is sent in the end */

struct ls_suspended ls_sus;

/* For a coroutine whose stack was never read: no name of its own. */
static uint32_t nobody(struct ls_thread *t)
{
        uint32_t function = ls_sus.nobody ? 0 : ls_function_pseudo(t, "[stack not read]");

        if (function)
                ls_sus.nobody = ls_coroutine_define(t, NULL, function, 0, 0);
        return ls_sus.nobody;
}

static int send_row(struct co *co, int how, uint32_t ticks, uint64_t now)
{
        struct ls_thread *t = ls_look_thread(ls_sus.look);
        uint32_t place = co->place ? co->place : ls_places_none(t, now),
                 id = co->id ? co->id : nobody(t);
        struct ls_rec_sample *rec =
                place && id ? ls_ring_reserve(t->ring, LS_REC_SAMPLE, sizeof *rec, 0) : NULL;

        if (!rec)
                return -1;
        memset(rec, 0, sizeof *rec);
        rec->time_ns = now;
        rec->weight[LS_VMSTATE_C] = ticks;
        rec->event = how == READY ? LS_EVENT_READY : LS_EVENT_SUSPENDED;
        rec->flags = LS_SAMPLE_SUSPENDED | (co->in_region ? LS_SAMPLE_IN_REGION : 0);
        rec->like = LS_LIKE_PLACE;
        rec->place = place;
        rec->vm_id = ls_vms[co->slot].vm_id;
        rec->coroutine_id = id;
        rec->zone_id = co->zone;
        rec->label_id = co->label;
        ls_ring_commit(t->ring, rec);
        if (!co->place)
                ls_sus_count(LS_LOSS_SUSPENDED_UNREAD, ticks);
        return 0;
}

int ls_sus_send(struct co *co, uint64_t now)
{
        int r = 0;

        for (int how = 0; how < HOWS; how++) {
                uint64_t ns = co->kept_ns[how] + ls_sus.rest_ns[how], n = ns / ls_sus.interval_ns;

                if (!co->kept_ns[how])
                        continue;
                if (n &&
                    send_row(co, how, n < UINT32_MAX / 2 ? (uint32_t)n : UINT32_MAX / 2, now)) {
                        r = -1;
                        continue;
                }
                ls_sus.rest_ns[how] = ns - n * ls_sus.interval_ns;
                co->kept_ns[how] = 0;
        }
        co->kept_since_ns = now;
        return r;
}

void ls_sus_forget_ids(void)
{
        for (uint32_t i = 0; i < ls_sus.n; i++)
                ls_sus.co[i].id = ls_sus.co[i].place = ls_sus.co[i].zone = ls_sus.co[i].label =
                        ls_sus.co[i].marked = 0;
        ls_sus.nobody = 0;
        ls_places_forget();
}

static void forget_places(uint64_t now)
{
        for (uint32_t i = 0; i < ls_sus.n; i++) {
                ls_sus_send(&ls_sus.co[i], now);
                ls_sus.co[i].place = 0;
        }
}

/* Returns 0, or -1 when nothing can be read. */
static int look(uint64_t now)
{
        uint64_t passed = ls_sus.last_ns ? now - ls_sus.last_ns : 0;

        if (ls_look_vms(ls_sus.look))
                return -1;
        ls_sus.now_ns = now;
        ls_heap_begin();
        if (ls_places_begin())
                forget_places(now);
        ls_sus_find(now);
        ls_sus_look_at_all(passed, now);
        for (uint32_t i = 0; i < ls_sus.n; i++)         /* a stack that was not read may be yet */
                if (now - ls_sus.co[i].kept_since_ns >= (ls_sus.co[i].place ? 1 : 4) * SEND_NS)
                        ls_sus_send(&ls_sus.co[i], now);
        atomic_fetch_add(&ls_sus.shm->suspended_looks, 1);
        ls_sus.last_ns = now;
        return 0;
}

void ls_suspended_begin(struct ls_shm *shm, pid_t pid, struct ls_ring *ring, uint64_t interval_ns)
{
        int stat_fd;

        ls_suspended_end();
        ls_sus.shm = shm;
        ls_sus.interval_ns = interval_ns;
        stat_fd = ls_remote_open(0, "stat");
        ls_sus.look = ls_look_new(LS_THREADS_MOST - 1, (int)pid, stat_fd, ring, ring);
        if (stat_fd >= 0)
                close(stat_fd);
        ls_sus.random = (uint32_t)pid * 2654435761u | 1;
        ls_sus.credit_ns = CREDIT_NS;
        ls_sus.paid_ns = ls_now_ns();
}

void ls_suspended_end(void)
{
        uint64_t now = ls_now_ns();

        if (!ls_sus.look)
                return;
        ls_sus.ends = 1;
        /* When it cannot be read it has ended: most likely as it was seen last. */
        if (ls_sus.last_ns && !atomic_load(&ls_sus.shm->paused) && look(now))
                ls_sus_charge_seen(LS_VMS_MOST, now - ls_sus.last_ns);
        for (uint32_t i = 0; i < ls_sus.n; i++)
                while (ls_sus_send(&ls_sus.co[i], now) && ls_now_ns() - now < END_NS)
                        nanosleep(&(struct timespec){ 0, 1000000 },
                                  NULL); /* the recorder makes room */
        ls_look_free(ls_sus.look);
        ls_places_forget();
        memset(&ls_sus, 0, sizeof ls_sus);
}

/* Between three and five quarters of ns. */
static uint64_t about(uint64_t ns)
{
        ls_sus.random ^= ls_sus.random << 13;
        ls_sus.random ^= ls_sus.random >> 17;
        ls_sus.random ^= ls_sus.random << 5;
        return ns - ns / 4 + ns / 2 * (ls_sus.random & 0xffff) / 0xffff;
}

/* When the next look can be paid for. */
static uint64_t pay(uint64_t cost, uint64_t now)
{
        uint64_t pause = LOOK_MIN_NS;

        ls_sus.credit_ns += (int64_t)((now - ls_sus.paid_ns) / COST_SHARE) - (int64_t)cost;
        ls_sus.paid_ns = now;
        if (ls_sus.credit_ns > (int64_t)CREDIT_NS)
                ls_sus.credit_ns = CREDIT_NS;
        if (ls_sus.credit_ns < 0)
                pause += (uint64_t)-ls_sus.credit_ns * COST_SHARE;
        return now + about(pause < LOOK_MAX_NS ? pause : LOOK_MAX_NS);
}

uint64_t ls_suspended_look(uint64_t now)
{
        uint64_t cost;

        if (!ls_sus.look || now < ls_sus.due_ns)
                return ls_sus.look ? ls_sus.due_ns : UINT64_MAX;
        cost = ls_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        if (atomic_load(&ls_sus.shm->paused)) {
                for (uint32_t i = 0; i < ls_sus.n; i++)
                        ls_sus_send(&ls_sus.co[i], now);
                ls_sus.last_ns = 0;
        } else {
                look(now);
        }
        return ls_sus.due_ns = pay(ls_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cost, now);
}
