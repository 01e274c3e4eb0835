/* The objects of a VM, read from outside: see heap.h. */
#include "record/watch/heap.h"

#include <stdlib.h>
#include <time.h>

#include "formats/wire/clock.h"
#include "libsample/handler/tick.h"
#include "record/watch/remote.h"

#define BLOCK   (16u << 10)             /* bytes that are read at once */
#define BLOCKS  4096u                   /* that are kept during a look: 64 MiB of a heap */
#define NEXT    0                       /* in each object: the one before it */
#define HEAD    16u                     /* bytes of an object that are looked at */
#define CLOCK_STEPS 1024u               /* objects between two looks at the clock */
#define TYPE_FIRST 4u                   /* of the types that objects have */
#define TYPE_LAST  12u

/* The collector's state lies before its list: uint8_t white, phase, two more, uint32_t, list. */
#define WHITE_BEFORE 8u
#define PHASE_BEFORE 7u
#define WHITES       3u
#define PHASES       6u
#define FLIPS        2u
#define SWEEPS_STRINGS 3u

/* What lies beside an object is most often another: so they are read in blocks. */
static struct kept { uint64_t at, look; char *bytes; } kept[BLOCKS];
static uint64_t look = 1;               /* number of this one: blocks of those before are of another
                                         * moment */
static char apart[HEAD];                /* an object at the edge of a block */

void ls_heap_begin(void)
{
        look++;
}

static struct kept *kept_of(uint64_t first)
{
        return &kept[first / BLOCK % BLOCKS];
}

const char *ls_heap_have(uint64_t at, uint64_t n)
{
        uint64_t first = at & ~(uint64_t)(BLOCK - 1);
        const struct kept *k = kept_of(first);

        return k->at == first && k->look == look && at - first + n <= BLOCK
                       ? k->bytes + (at - first)
                       : NULL;
}

static const char *object_at(uint64_t at)
{
        uint64_t first = at & ~(uint64_t)(BLOCK - 1);
        struct kept *k = kept_of(first);

        if (!at || at & 7)
                return NULL;
        if (at - first + HEAD > BLOCK ||
            (k->look == look && k->at != first)) /* or another one has its place */
                return ls_remote_memory(at, apart, HEAD) ? NULL : apart;
        if (k->at == first && k->look == look)
                return k->bytes + (at - first);
        if (!k->bytes && !(k->bytes = malloc(BLOCK)))
                return NULL;
        k->look = 0;
        if (ls_remote_memory(first, k->bytes, BLOCK))   /* a smaller mapping: only what is asked
                                                         * for */
                return ls_remote_memory(at, apart, HEAD) ? NULL : apart;
        k->at = first;
        k->look = look;
        return k->bytes + (at - first);
}

int ls_heap_read(const struct ls_vm *vm, struct ls_heap *ret)
{
        uintptr_t list = (uintptr_t)atomic_load(&vm->global) + ls_vm_facts.objects_offset;
        char head[WHITE_BEFORE + 8];

        if (!ls_vm_facts.objects_offset || ls_remote_memory(list - WHITE_BEFORE, head, sizeof head))
                return -1;
        ret->newest = LS_READ_COPY(uint64_t, head, WHITE_BEFORE);
        ret->white = LS_READ_COPY(uint8_t, head, 0) & WHITES;
        ret->phase = LS_READ_COPY(uint8_t, head, WHITE_BEFORE - PHASE_BEFORE);
        if (ret->white == 0 || ret->white == WHITES || ret->phase >= PHASES)
                ret->phase = LS_HEAP_SWEEPS;
        return 0;
}

int ls_heap_is_kept(const struct ls_heap *before, const struct ls_heap *now)
{
        return before->phase != LS_HEAP_SWEEPS && now->phase != LS_HEAP_SWEEPS &&
               before->white == now->white;
}

int ls_heap_is_dead(const struct ls_heap *heap, uint8_t marked)
{
        /* The other white is that of what the last sweep took away; from the flip of colours until
         * the sweep is over it is that of all that was not reached yet. */
        return heap->phase != LS_HEAP_SWEEPS && heap->phase != SWEEPS_STRINGS &&
               heap->phase != FLIPS && (marked & WHITES) == (heap->white ^ WHITES);
}

/* Where the walk has been, so that it can go back to what is still there: a power of two. */
#define PAST    4096u
#define REPAIRS 2000u                   /* of a walk */
#define FRESH 32u /* objects that are read by themselves after one, as blocks may be old */

static struct {
        uint64_t past[PAST];
        unsigned n;                     /* objects so far */
        unsigned repairs, fresh, back;
        uint64_t lost;                  /* where it could not go on last */
} w;

static int is_object(const char *o)
{
        return LS_READ_COPY(uint8_t, o, LS_GC_TYPE) >= TYPE_FIRST &&
               LS_READ_COPY(uint8_t, o, LS_GC_TYPE) <= TYPE_LAST;
}

/* What lies at lost, which the walk has come to, is no object: it was being made, or was freed.
 * Then one of those before it leads elsewhere now; they are read anew, from further and further
 * back. Returns where to go on, 0 = nowhere. */
static uint64_t step_back(uint64_t lost)
{
        w.back = lost == w.lost ? 2 * w.back : 0;
        w.lost = lost;
        if (w.repairs++ == REPAIRS || w.back > w.n || w.back >= PAST)
                return 0;
        w.fresh = w.back + FRESH;
        w.n -= w.back;
        if (!w.back) {
                w.back = 1;
                return lost & 7 ? 0 : lost;
        }
        return w.past[w.n & (PAST - 1)];
}

static const char *next_object(uint64_t at)
{
        const char *o = NULL;

        if (!w.fresh) {
                o = object_at(at);
        } else if (at && !(at & 7) && !ls_remote_memory(at, apart, HEAD)) {
                w.fresh--;
                o = apart;
        }
        return o && is_object(o) ? o : NULL;
}

int ls_heap_coroutines(const struct ls_vm *vm, uint64_t from, uint64_t to, uint64_t most_ns,
                       int (*fn)(void *ctx, uint64_t at, const char *o), void *ctx)
{
        const uint64_t main = (uintptr_t)vm->main;
        const uint64_t until_ns = ls_clock_ns(CLOCK_PROCESS_CPUTIME_ID) + most_ns;
        uint64_t mark = 0;              /* where it was at the last power of two of steps: a list
                                         * that leads there is a ring */
        unsigned steps = 0;

        w.n = w.repairs = w.fresh = 0;
        w.lost = 0;
        while (from != main && (!to || from != to)) {
                const char *o = next_object(from);

                if (from == mark || (++steps % CLOCK_STEPS == 0 &&
                                     ls_clock_ns(CLOCK_PROCESS_CPUTIME_ID) > until_ns))
                        return 1;
                if (!(steps & (steps - 1)))
                        mark = from;
                if (!o) {
                        from = step_back(from);
                        if (!from)
                                return 1;
                        continue;
                }
                if (LS_READ_COPY(uint8_t, o, LS_GC_TYPE) == LS_T_THREAD && fn(ctx, from, o))
                        return 1;
                w.past[w.n++ & (PAST - 1)] = from;
                from = LS_READ_COPY(uint64_t, o, NEXT);
        }
        return 0;
}
