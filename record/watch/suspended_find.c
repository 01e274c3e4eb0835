/* Which coroutines there are: see suspended.c. Called for each look. */
#include <string.h>
#include <sys/resource.h>

#include "record/watch/suspended_private.h"
#include "formats/wire/mix.h"

#define WALK_NS       UINT64_C(300000000)       /* most of a walk through the objects */
#define HEAD_NS       UINT64_C(1000000)         /* of one that is made at each look */
#define TRIES         3
#define GAP_NS UINT64_C(500000000) /* between looks: two cycles of a large heap take longer */
#define MISSED_MOST 4u             /* walks without an end in which a coroutine was not met */

static uint32_t *index_of(uint64_t at)
{
        uint32_t i = (uint32_t)(ls_mix(at) >> 40) % INDEX;

        while (ls_sus.index[i] && ls_sus.co[ls_sus.index[i] - 1].at != at)
                i = (i + 1) % INDEX;
        return &ls_sus.index[i];
}

static int meet(void *ctx, uint64_t at, const char *o)
{
        const uint32_t *slot = ctx;
        uint32_t *index = index_of(at);
        struct co *co;

        (void)o;
        if (!*index) {
                if (ls_sus.n == MOST)
                        return 1;
                ls_sus.co[ls_sus.n] = (struct co){
                        .at = at, .slot = *slot, .fresh = 1, .kept_since_ns = ls_sus.now_ns
                };
                *index = ++ls_sus.n;
        }
        co = &ls_sus.co[*index - 1];
        co->slot = *slot;
        co->walk = ls_sus.walk;
        co->missed = 0;
        return 0;
}

void ls_sus_charge_seen(uint32_t slot, uint64_t ns)
{
        for (uint32_t i = 0; i < ls_sus.n; i++)
                if (ls_sus.co[i].hash && (slot == LS_VMS_MOST || ls_sus.co[i].slot == slot))
                        ls_sus.co[i].kept_ns[ls_sus.co[i].was] += ns;
}

/* Takes those away that are no more. */
static void drop(int (*gone)(struct co *co, uint32_t slot), uint32_t slot, uint64_t now)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < ls_sus.n; i++) {
                if (ls_sus.co[i].slot == slot && gone(&ls_sus.co[i], slot)) {
                        ls_sus_send(&ls_sus.co[i], now);
                        continue;
                }
                if (i != n)
                        ls_sus.co[n] = ls_sus.co[i];
                n++;
        }
        if (n == ls_sus.n)
                return;
        ls_sus.n = n;
        memset(ls_sus.index, 0, sizeof ls_sus.index);
        for (uint32_t i = 0; i < n; i++)
                *index_of(ls_sus.co[i].at) = i + 1;
}

static int all(struct co *co, uint32_t slot)
{
        return co->slot == slot;
}

static int not_met(struct co *co, uint32_t slot)
{
        return ls_sus.vms[slot].ended ? co->walk != ls_sus.walk
                                      : co->walk != ls_sus.walk && ++co->missed > MISSED_MOST;
}

/* Of a large heap the newest objects are enough when nothing was freed since the last look. */
static int newest_will_do(const struct seen *v, const struct ls_heap *heap, uint64_t now)
{
        return v->ended && now < v->whole_due_ns && now - ls_sus.last_ns < GAP_NS &&
               ls_heap_is_kept(&v->heap, heap);
}

/* The watcher has a high priority where it may, for short looks: a long one must not take the
 * program's processor. */
static void hurry(int on)
{
        static int had;

        if (!on && (had = getpriority(PRIO_PROCESS, 0)) < 0)
                setpriority(PRIO_PROCESS, 0, 0);
        else if (on && had < 0)
                setpriority(PRIO_PROCESS, 0, had);
        had = on ? 0 : had;
}

/* A walk that takes long is made seldom, at its own expense; the looks between have HEAD_NS, and
 * what is known. */
static void find(uint32_t slot, uint64_t now)
{
        const struct ls_vm *vm = &ls_vms[slot];
        struct seen *v = &ls_sus.vms[slot];
        struct ls_heap heap;
        uint64_t began = ls_clock_ns(CLOCK_PROCESS_CPUTIME_ID), cost = 0,
                 passed = ls_sus.last_ns ? now - ls_sus.last_ns : 0;
        int whole = now >= v->whole_due_ns, newest = 0, ended = 0;

        hurry(!whole);
        for (int i = 0; i < TRIES && !ended && cost < (whole ? WALK_NS / TRIES : HEAD_NS); i++) {
                if (i) {                /* the newest object may be half made, or blocks are too
                                         * old */
                        nanosleep(&(struct timespec){ 0, 50000 }, NULL);
                        ls_heap_begin();
                }
                if (ls_heap_read(vm, &heap))
                        break;
                newest = newest_will_do(v, &heap, now);
                ls_sus.walk++;
                ended = !ls_heap_coroutines(vm, heap.newest, newest ? v->heap.newest : 0,
                                            whole ? WALK_NS : HEAD_NS, meet, &slot);
                v->heap = heap;
                cost = ls_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began;
        }
        hurry(1);
        v->ended = ended;
        /* One that is met after long may have come at any time since, or stand for others that came
         * and went: between half and all of it. */
        v->fresh_ns = passed;
        if (ended && ls_sus.last_ns)
                v->fresh_ns = (3 * (now - v->ended_ns) + passed) / 4;
        if (ended)
                v->ended_ns = now;
        else
                ls_sus_count(LS_LOSS_SUSPENDED_UNSEEN, 1);
        if (whole || (ended && !newest))
                drop(not_met, slot, now);
        if (whole && cost > HEAD_NS) {
                v->whole_due_ns = now + cost * COST_SHARE /
                                                (ended ? 1 : 4); /* tried again, before long */
                ls_sus.credit_ns += (int64_t)cost;
        }
}

void ls_sus_find(uint64_t now)
{
        for (uint32_t i = 0; i < LS_VMS_MOST; i++) {
                const struct ls_vm *vm = &ls_vms[i];
                uint32_t used = atomic_load(&ls_vms_used);
                const char *global =
                        i < used && !atomic_load(&vm->closing) ? atomic_load(&vm->global) : NULL;

                if (i >= used && !ls_sus.vms[i].global)
                        return;
                if (ls_sus.vms[i].global != global) {
                        /* it was closed some time since then, or when the program ended */
                        if (ls_sus.last_ns)
                                ls_sus_charge_seen(i,
                                                   (now - ls_sus.last_ns) / (ls_sus.ends ? 1 : 2));
                        drop(all, i, now);
                        ls_sus.vms[i] =
                                (struct seen){ .global = global, .ended_ns = ls_sus.last_ns };
                }
                if (global && vm->engine == LS_ENGINE_WALK)
                        find(i, now);
        }
}

