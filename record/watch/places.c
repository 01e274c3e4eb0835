/* Stacks of suspended coroutines: see places.h.
 *
 * Thousands of coroutines wait in a few places. To walk a stack in the mirror takes some tens of
 * microseconds, so it is done once for a place. Which coroutine is there its copied bytes tell: a
 * chain of return addresses and functions, whose steps are in the instructions that called. A place
 * is walked anew from time to time, since code may be freed and other code take its addresses. */
#include "record/watch/places.h"
#include "formats/wire/mix.h"

#include <string.h>

#include "libsample/handler/functions.h"
#include "libsample/handler/guard.h"
#include "libsample/handler/sample.h"
#include "record/watch/remote.h"

#define NUMBERS   8192u
#define ROOM      (4 * NUMBERS)         /* a power of two */
#define CALLS     1024u                 /* instructions whose step is known; a power of two */
#define TRUST_NS  UINT64_C(2000000000)  /* for so long a place is not walked anew */
#define FRAMES_MOST (LS_LIVE_BYTES / 16)

struct place {
        uint64_t key;                   /* 0 = the slot is free */
        uint64_t signature;             /* of the walk */
        uint64_t walked_ns;
        uint32_t number, function;
};

static struct {
        struct place places[ROOM];      /* by key */
        uint32_t n;
        uint32_t numbers;               /* that were given; 1 = of stacks that were not read */
        struct { uint64_t pc; uint8_t a; } calls[CALLS];        /* in this look */
} p;

static uint64_t mix(uint64_t h, uint64_t x)
{
        h = ls_mix(h ^ x);
        return h ^ h >> 29;
}

void ls_places_forget(void)
{
        memset(&p, 0, sizeof p);
}

int ls_places_begin(void)
{
        int full = p.n >= NUMBERS || p.numbers >= NUMBERS;

        memset(p.calls, 0, sizeof p.calls);
        if (full) {                     /* a program that makes functions all the time: numbers are
                                         * used again */
                memset(p.places, 0, sizeof p.places);
                p.n = 0;
                p.numbers = 1;
        }
        return full;
}

/* Operand A of the instruction before pc: how far above its own base a caller has put what it
 * called. */
static int step_of(uint64_t pc, uint8_t *ret)
{
        unsigned i = (unsigned)(pc >> 2) & (CALLS - 1);

        if (p.calls[i].pc != pc) {
                if (ls_remote_memory(pc - 3, &p.calls[i].a, 1)) {
                        p.calls[i].pc = 0;
                        return -1;
                }
                p.calls[i].pc = pc;
        }
        *ret = p.calls[i].a;
        return 0;
}

/* A number for the stack, and its first function. Returns 0, or -1: it is not all in the copy, or
 * no stack. */
static int key_of(const struct ls_live *v, uint64_t *ret_key, uint64_t *ret_body)
{
        uint64_t bottom = LS_READ_COPY(uint64_t, v->L, LS_L_STACK) + 8,
                 f = LS_READ_COPY(uint64_t, v->L, LS_L_BASE) - 8, h = 1;

        for (unsigned i = 0; f > bottom; i++) {
                uint64_t func, link, below;
                uint8_t a;

                if (i == FRAMES_MOST || f < v->from + 8 || f + 8 > v->from + v->n)
                        return -1;
                func = LS_READ_COPY(uint64_t, v->stack, f - v->from - 8);
                link = LS_READ_COPY(uint64_t, v->stack, f - v->from);
                if ((link & 3) == LS_FRAME_LUA) {
                        if (step_of(link, &a))
                                return -1;
                        below = f - 8 * (2 + (uint64_t)a);
                        h = mix(i ? h : mix(h, func), link);
                } else {
                        below = f - (link & ~(uint64_t)LS_FRAME_TYPEP);
                        h = mix(mix(h, func), link & LS_FRAME_TYPEP);
                }
                if (!ls_istype(func, LS_T_FUNC) || below >= f)
                        return -1;
                *ret_body = (uintptr_t)ls_gcptr(func);
                f = below;
        }
        *ret_key = h | 1;
        return h != 1 ? 0 : -1;
}

static struct place *slot_of(uint64_t key)
{
        uint32_t i = (uint32_t)(key >> 20) & (ROOM - 1);

        while (p.places[i].key && p.places[i].key != key)
                i = (i + 1) & (ROOM - 1);
        return &p.places[i];
}

int ls_places_find(const struct ls_live *live, uint64_t now, struct ls_waiting *ret)
{
        const struct place *place;
        uint64_t key;

        if (key_of(live, &key, &ret->body))
                return -1;
        place = slot_of(key);
        if (!place->key)
                return -1;
        ret->old = now - place->walked_ns > TRUST_NS;
        ret->place = place->number;
        ret->function = place->function;
        return 0;
}

uint32_t ls_places_none(struct ls_thread *t, uint64_t now)
{
        struct ls_ticks ticks = { .event = LS_EVENT_SUSPENDED, .place = 1, .time_ns = now };

        if (!p.numbers && ls_sample_send_pseudo(t, NULL, "[stack not read]", NULL, &ticks) == 0)
                p.numbers = 1;
        return p.numbers != 0;
}

/* Of code, not of closures. */
static uint64_t signature_of(const struct ls_walk *w)
{
        uint64_t h = 1;

        for (size_t i = 0; i < w->n; i++) {
                const struct ls_wframe *f = &w->frames[i];

                if (f->fn == LS_WFN_RESUMED_BY_C || !ls_fn_is_lua(f->fn))
                        h = mix(mix(h, (uintptr_t)f->fn), f->callee);
                else
                        h = mix(mix(h, (uintptr_t)ls_fn_proto(f->fn) ^
                                               ls_pt_shape(ls_fn_proto(f->fn))),
                                (uintptr_t)f->pc);
        }
        return h;
}

/* The stack that was walked, as a new place. Returns 0 or -1. */
static int send(struct ls_thread *t, const struct ls_moment *m, const struct ls_walk *w,
                uint64_t now, struct place *place)
{
        struct ls_ticks ticks = { .event = LS_EVENT_SUSPENDED,
                                  .flags = LS_SAMPLE_SUSPENDED,
                                  .time_ns = now };
        const char *body = w->frames[w->body].fn;

        if (!ls_places_none(t, now))
                return -1;
        ticks.place = p.numbers + 1;
        if (ls_sample_send(t, m, &ticks) || !(place->function = ls_function_id(t, body, now)))
                return -1;
        place->number = ++p.numbers;
        return 0;
}

int ls_places_read(struct ls_thread *t, const struct ls_vm *vm, const lua_State *L,
                   const struct ls_live *live, uint64_t now, int (*still)(void *ctx), void *ctx,
                   struct ls_waiting *ret)
{
        struct ls_walk *w = &t->sampler->walks[t->sampler->current];
        struct ls_moment m = { .vm = vm, .L = L, .whole_stack = 1, .jit_offset = LS_JIT_NO_OFFSET };
        struct place *place;
        uint64_t signature, key;

        t->sampler->still = NULL;
        ls_guard_begin(&w->guard);
        w->trusted = 0;
        if (!ls_guard_reads(&w->guard, L, LS_L_CFRAME + 8) || ls_walk_saved(w, L) || !w->n ||
            !still(ctx))
                return -1;
        ret->body = (uintptr_t)w->frames[w->body].fn;
        signature = signature_of(w);
        if (key_of(live, &key, &(uint64_t){ 0 }))       /* deep: known by the walk */
                key = signature & ~(uint64_t)1;
        place = slot_of(key);
        if (!place->key || place->signature != signature) {
                struct place made = { key, signature, now, 0, 0 };

                if (p.n >= NUMBERS || p.numbers >= NUMBERS || send(t, &m, w, now, &made))
                        return -1;
                p.n += !place->key;
                *place = made;
        }
        place->walked_ns = now;
        ret->old = 0;
        ret->place = place->number;
        ret->function = place->function;
        return 0;
}
