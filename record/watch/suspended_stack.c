/* Where the coroutines that are known wait: see suspended.c. Called for each look. */
#include <errno.h>
#include <stddef.h>
#include <sys/uio.h>

#include "libsample/handler/coroutines.h"
#include "formats/wire/mix.h"
#include "libsample/handler/proto_hash.h"
#include "libsample/handler/sample.h"
#include "libsample/handler/labels.h"
#include "record/watch/places.h"
#include "record/watch/remote.h"
#include "record/watch/suspended_private.h"
#include "libsample/handler/ready.h"
#include "libsample/handler/zones.h"

#define READ_NS       UINT64_C(10000000)        /* most of a look for the walks of stacks */
#define PIECES        128u                      /* coroutines that are read at once */
#define L_BYTES       (LS_L_CFRAME + 8)
#define STACK_MOST    (8u << 20)                /* bytes of a stack */

/* The bytes of the coroutines that are looked at together. */
static struct {
        char L[PIECES][L_BYTES], stack[PIECES][LS_LIVE_BYTES];
        struct iovec here[PIECES], there[PIECES];
        unsigned which[PIECES], n;
        uint8_t read[PIECES], missing[PIECES];
} b;

/* What the program says of the coroutines of a VM, as of this look. */
static struct marks {
        uint32_t slot;
        int labels;                     /* 1 = it has zones or labels */
        const struct ls_ready_slot *ready;      /* NULL = nothing was said */
        struct ls_vm_ready copy;
} marks = { .slot = UINT32_MAX };

static const struct marks *marks_of_slot(uint32_t slot)
{
        const struct ls_vm *vm = &ls_vms[slot];
        const void *sets = NULL;

        if (marks.slot == slot)
                return &marks;
        marks.slot = slot;
        if (vm->labels)
                (void)ls_remote_memory((uintptr_t)vm->labels + offsetof(struct ls_vm_labels, sets),
                                       &sets, sizeof sets);
        marks.labels = vm->zones || sets;
        marks.ready = NULL;
        if (vm->ready && !ls_remote_memory((uintptr_t)vm->ready, &marks.copy, sizeof marks.copy))
                marks.ready = marks.copy.slots;
        return &marks;
}

/* Whether the host says that it can run, and it has not run since. */
static int is_ready(const struct co *co)
{
        const struct ls_ready_slot *slots = marks_of_slot(co->slot)->ready;
        uint32_t hash = ls_ready_hash(co->at);

        for (uint32_t i = 0; slots && i < LS_READY_PROBES; i++) {
                const struct ls_ready_slot *m = &slots[(hash + i) & (LS_READY_SLOTS - 1)];

                if (m->L == co->at)
                        return m->since_ns > co->still_ns;
        }
        return 0;
}

/* Which part of the stack is read. Returns 0 when the lua_State cannot be that of a suspended
 * coroutine. */
static int find_live(const struct co *co, struct ls_live *v)
{
        uint64_t stack = LS_READ_COPY(uint64_t, v->L, LS_L_STACK),
                 top = LS_READ_COPY(uint64_t, v->L, LS_L_TOP);
        uint64_t base = LS_READ_COPY(uint64_t, v->L, LS_L_BASE);

        if (LS_READ_COPY(uint8_t, v->L, LS_GC_TYPE) != LS_T_THREAD ||
            LS_READ_COPY(uint8_t, v->L, LS_L_STATUS) != LS_YIELDED ||
            LS_READ_COPY(const char *, v->L, LS_L_GLREF) != ls_sus.vms[co->slot].global || !stack ||
            (stack | top | base) & 7 || base <= stack || base > top || top - stack > STACK_MOST ||
            ls_heap_is_dead(&ls_sus.vms[co->slot].heap, LS_READ_COPY(uint8_t, v->L, LS_GC_MARKED)))
                return 0;
        v->n = top - stack < LS_LIVE_BYTES ? top - stack : LS_LIVE_BYTES;
        v->from = top - v->n;
        return 1;
}

/* Not 0. */
static uint64_t hash_of(const struct ls_live *v)
{
        uint64_t base = LS_READ_COPY(uint64_t, v->L, LS_L_BASE);
        uint64_t h = ls_bytes_hash(v->stack, (size_t)v->n) ^ ls_mix(base);

        return h ? h : 1;
}

static int read_live(const struct co *co, char L[L_BYTES], char stack[LS_LIVE_BYTES],
                     struct ls_live *ret)
{
        *ret = (struct ls_live){ L, stack, 0, 0 };
        return !ls_remote_memory(co->at, L, L_BYTES) && find_live(co, ret) &&
               !ls_remote_memory(ret->from, stack, ret->n);
}

/* Whether it stands where it stood. */
static int is_still(const struct co *co)
{
        char L[L_BYTES], stack[LS_LIVE_BYTES];
        struct ls_live v;

        return read_live(co, L, stack, &v) && hash_of(&v) == co->hash;
}

static void settle(struct co *co, const struct ls_waiting *w);

/* A look at one that was read; v->n 0: it is not suspended. */
static void judge(struct co *co, const struct ls_live *v, uint64_t passed, uint64_t now)
{
        const struct ls_vm *vm = &ls_vms[co->slot];
        uint64_t hash = v->n ? hash_of(v) : 0;
        struct ls_waiting w;

        if (hash != co->hash) {
                ls_sus_send(co, now);
                co->hash = hash;
                co->place = co->doubted = 0;
                co->still_ns = ls_sus.last_ns;
        }
        if (!hash || vm->paused)
                return;
        if (!co->place && !ls_places_find(v, now, &w)) {
                settle(co, &w);
                co->doubted = w.old != 0;
                co->marked = !marks_of_slot(co->slot)->labels;
        }
        co->in_region = vm->in_region != 0;
        co->was = is_ready(co) ? READY : SUSPENDED;
        co->kept_ns[co->was] += co->fresh ? ls_sus.vms[co->slot].fresh_ns : passed;
        co->fresh = 0;
}

/* Bytes for coroutine i: from what the walk through the objects has read, else room for what
 * read_wanted brings. */
static const char *want(unsigned i, uint64_t at, char *room, uint64_t n)
{
        const char *have = ls_heap_have(at, n);

        b.missing[i] = 0;
        if (have)
                return have;
        b.here[b.n] = (struct iovec){ room, n };
        b.there[b.n] = (struct iovec){ (void *)(uintptr_t)at, n };
        b.which[b.n++] = i;
        return room;
}

static void read_wanted(void)
{
        ls_remote_pieces(b.here, b.there, b.n, b.read);
        for (unsigned k = 0; k < b.n; k++)
                b.missing[b.which[k]] = !b.read[k];
        b.n = 0;
}

static void look_at_some(struct co *co, unsigned n, uint64_t passed, uint64_t now)
{
        struct ls_live live[PIECES];

        for (unsigned i = 0; i < n; i++)
                live[i].L = want(i, co[i].at, b.L[i], L_BYTES);
        read_wanted();
        for (unsigned i = 0; i < n; i++) {
                live[i].n = 0;
                if (!b.missing[i] && find_live(&co[i], &live[i]))
                        live[i].stack = want(i, live[i].from, b.stack[i], live[i].n);
        }
        read_wanted();
        for (unsigned i = 0; i < n; i++)
                if (b.missing[i])
                        live[i].n = 0;
        for (unsigned i = 0; i < n; i++)
                judge(&co[i], &live[i], passed, now);
}

/* What is known of a coroutine that stands at w. */
static void settle(struct co *co, const struct ls_waiting *w)
{
        const lua_State *L = (const lua_State *)(uintptr_t)co->at;

        if (!co->id || co->body != w->body)
                co->id = ls_coroutine_id(ls_look_thread(ls_sus.look), L,
                                         (const char *)(uintptr_t)w->body, w->function,
                                         ls_vms[co->slot].vm_id);
        co->body = w->body;
        co->place = w->place;
}

static int still(void *ctx)
{
        return is_still(ctx);
}

/* In the mirror. */
static void read_one(struct co *co, uint64_t now)
{
        struct ls_thread *t = ls_look_thread(ls_sus.look);
        const struct ls_vm *vm = &ls_vms[co->slot];
        const lua_State *L = (const lua_State *)(uintptr_t)co->at;
        char copy[L_BYTES], stack[LS_LIVE_BYTES];
        struct ls_live live;
        struct ls_waiting w;

        if (!co->place || co->doubted) {
                if (!read_live(co, copy, stack, &live))
                        return;
                co->hash = hash_of(&live);      /* it may have gone on meanwhile: then this is where
                                                 * it was seen */
                if ((ls_places_find(&live, now, &w) || w.old) &&
                    ls_places_read(t, vm, L, &live, now, still, co, &w))
                        return;
                settle(co, &w);
                co->doubted = 0;
        }
        co->marked = 1;
        if (marks_of_slot(co->slot)->labels) {
                struct ls_guard *g = &t->sampler->walks[t->sampler->current].guard;

                ls_guard_begin(g);
                co->zone = ls_zone_id(t, vm, L, g);
                co->label = ls_label_id(t, vm, L, g);
        }
}

static int is_settled(const struct co *co)
{
        return !co->hash || (co->place && co->marked && !co->doubted);
}

struct reading { uint32_t i; uint64_t now, until; };

#define AT_ONCE 200u                    /* pages of the mirror are as old as the first of so many */

static int read_some(void *arg)
{
        struct reading *r = arg;

        for (unsigned n = 0; r->i < ls_sus.n && n < AT_ONCE; ) {
                struct co *co = &ls_sus.co[r->i++];

                if (is_settled(co))
                        continue;
                n++;
                read_one(co, r->now);
                if (ls_now_ns() > r->until)
                        return 1;
        }
        return 0;
}

/* The stacks of those that are somewhere else than in the last look, as far as they are not
 * known. */
static void read_stacks(uint64_t now)
{
        struct reading r = { 0, now, ls_now_ns() + READ_NS };
        int end = 0;

        while (r.i < ls_sus.n && is_settled(&ls_sus.co[r.i]))
                r.i++;
        while (r.i < ls_sus.n && !end) {
                end = ls_look_with(ls_sus.look, read_some, &r);
                if (end == -EFAULT || end == -ETIME) {
                        ls_sus_forget_ids();
                        end = end == -ETIME || ls_now_ns() > r.until;
                }
        }
}

void ls_sus_look_at_all(uint64_t passed, uint64_t now)
{
        marks.slot = UINT32_MAX;
        for (uint32_t i = 0; i < ls_sus.n; i += PIECES)
                look_at_some(&ls_sus.co[i], ls_sus.n - i < PIECES ? ls_sus.n - i : PIECES, passed,
                             now);
        read_stacks(now);
}
