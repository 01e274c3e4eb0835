/* The stubs in place of the VMs' allocators, and the sample that one takes when its count of bytes
 * ends: see alloc.h. */
#include "libsample/alloc/alloc.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "libsample/agent.h"
#include "libsample/alloc/blocks.h"
#include "libsample/alloc/draw.h"
#include "libsample/alloc/types.h"
#include "libsample/handler/clock.h"
#include "libsample/handler/jit_find.h"
#include "libsample/handler/jit_locate.h"
#include "libsample/handler/sample.h"
#include "libsample/handler/tick.h"
#include "libsample/handler/guard.h"
#include "libsample/layout.h"
#include "libsample/lock.h"
#include "libsample/recording/pass.h"
#include "libsample/recording/threads.h"

#define LET_PASS (INT64_MAX / 2)        /* bytes that no VM allocates */

typedef void *(*alloc_fn)(void *ud, void *p, size_t osize, size_t nsize);

/* What a stub knows; the code below reads the first two by offset. One VM's, whose thread alone
 * runs the stub, at least as long as its allocator is the stub. */
struct slot {
        int64_t left;                   /* bytes until the next sample */
        _Atomic(alloc_fn) inner;        /* the host's */
        _Atomic(const char *) global;   /* the VM's global_State; NULL = the slot is free */
        _Atomic(struct ls_vm *) vm;     /* NULL = all passes */
        uint32_t vm_id;                 /* of vm: another one may have its place */
        uint8_t follows;                /* 1 = frees too, in blocks */
        _Atomic uint8_t left_over;      /* 1 = of an attachment that has ended */
        struct ls_draw draw;
        struct ls_blocks *blocks;       /* that were sampled and are not freed */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct slot) == 64 && offsetof(struct slot, inner) == 8,
               "as the stubs have it");

#define SLOTS 4096
_Static_assert(SLOTS == LS_VMS_MOST, "a slot for each VM");
__attribute__((used)) static struct slot slots[SLOTS];

/* A slot's: the allocation before, whose place is to be learnt; bytes until the next sample beyond
 * the slot's own, which end at the next allocation. */
static struct { struct ls_type_look look; int64_t rest; } learning[SLOTS];
static _Atomic int32_t lessons = 4096;  /* allocations of the process that are looked at anyway */

/* A stub of 16 bytes for each slot: they differ in the slot that they load. An allocation that
 * grows counts; the last one goes on in slow(), with the place of its return address. Behind them
 * those of VMs whose frees are followed: they go on in live(). */
__asm__(".text\n"
        "        .p2align 4\n"
        "stubs:\n"
        "        .cfi_startproc\n"
        "        .set slot, 0\n"
        "        .rept 4096\n"
        "        lea slots + slot(%rip), %r8\n"
        "        jmp count\n"
        "        .p2align 4\n"
        "        .set slot, slot + 64\n"
        "        .endr\n"
        "        .set slot, 0\n"
        "        .rept 4096\n"
        "        lea slots + slot(%rip), %r8\n"
        "        jmp follow\n"
        "        .p2align 4\n"
        "        .set slot, slot + 64\n"
        "        .endr\n"
        "count:\n"
        "        cmp %rdx, %rcx\n"
        "        jbe 1f\n"
        "        sub %rcx, (%r8)\n"
        "        js 2f\n"
        "1:      jmp *8(%r8)\n"
        "2:      mov %rsp, %r9\n"
        "        jmp slow\n"
        "follow: mov %rsp, %r9\n"
        "        jmp live\n"
        "        .cfi_endproc\n");
extern const char stubs[][16] __attribute__((visibility("hidden")));

static void *stub_of(const struct slot *s)
{
        return (void *)(uintptr_t)stubs[s - slots + (s->follows ? SLOTS : 0)];
}

/* The slot whose stub is at f, NULL = it is none of ours. */
static struct slot *slot_of(const void *f)
{
        uintptr_t at = (uintptr_t)f - (uintptr_t)stubs;

        return at < sizeof(stubs[0]) * 2 * SLOTS && at % sizeof(stubs[0]) == 0
                       ? &slots[at / sizeof(stubs[0]) % SLOTS]
                       : NULL;
}

static _Atomic(void *) *word_of(const char *global)
{
        return (_Atomic(void *) *)(uintptr_t)(global + LS_G_ALLOCF);
}

/* The lua_State that runs, NULL = the host calls the VM from outside of any function. */
static const lua_State *running(const struct ls_vm *vm, const char *global)
{
        const lua_State *L = LS_READ(const lua_State *, global, ls_vm_facts.cur_L_offset);

        if (L && ls_cframe_of(L))
                return L;
        return ls_cframe_of(vm->main) ? vm->main : NULL;
}

/* Reads the stack: links are whole, since base and pc are saved before anything that may fail, as
 * an allocation may. */
static int read_stack(struct ls_thread *t, struct slot *s, const lua_State *L, const uint64_t *at,
                      struct ls_moment *m)
{
        struct ls_walk *w = &t->sampler->walks[t->sampler->current];
        const char *global = s->global;
        struct ls_top top = { .exact = 1, .in_trace = 1 };
        int place = 0, error;

        ls_tick_has_own_heap(m->vm, global);    /* a host may have set another unseen */
        ls_guard_begin(&w->guard);
        w->guard.sure[1].low = LS_READ(uintptr_t, L, LS_L_STACK);
        w->guard.sure[1].high = LS_READ(uintptr_t, L, LS_L_MAXSTACK);
        w->trusted = 0;
        top.base = LS_READ(const uint64_t *, global, ls_vm_facts.jit_base_offset);
        if (top.base && m->vm->jit) {
                ls_jit_find_caller(m->vm, t, &w->guard, global, L, (uintptr_t)at);
                place = ls_jit_locate(m->vm, L, *at, (uintptr_t)at, &m->jit_id, &m->jit_offset);
        }
        if (top.base && (!place || m->jit_offset == LS_JIT_NO_OFFSET))
                m->flags |= LS_SAMPLE_NO_LINE;
        error = top.base ? ls_walk_from(w, L, &top) : ls_walk_saved(w, L);
        if (!error && w->n > 1 && ls_is_own_function(w->frames[0].fn))
                ls_walk_drop_top(w);
        return error;
}

/* Tells of blocks that were freed, and when vm_id is not 0 of all of that VM. t: entered. Returns
 * 0, or -1: there is no room in the ring. */
static int tell(struct ls_thread *t, struct ls_blocks *blocks, uint32_t vm_id)
{
        struct ls_rec_free rec = { ls_now_ns(), vm_id, blocks->n_freed };
        char *body;

        if (!vm_id && !rec.n)
                return 0;
        body = ls_ring_reserve(t->ring, LS_REC_FREE, sizeof rec + rec.n * sizeof *blocks->freed,
                               LS_RESERVE_DEFINITION);
        if (!body)
                return -1;
        memcpy(body, &rec, sizeof rec);
        memcpy(body + sizeof rec, blocks->freed, rec.n * sizeof *blocks->freed);
        ls_ring_commit(t->ring, body);
        blocks->n_freed = 0;
        return 0;
}

/* The block of this number is freed. On the VM's thread. */
static void freed(struct ls_blocks *blocks, uint32_t id)
{
        struct ls_thread *t = blocks->n_freed == LS_BLOCKS_FREED ? ls_thread_self() : NULL;

        if (t && !t->busy) {
                ls_thread_enter(t);
                tell(t, blocks, 0);
                ls_thread_leave(t);
        }
        if (blocks->n_freed < LS_BLOCKS_FREED)
                blocks->freed[blocks->n_freed++] = id;
        else
                ls_lose(LS_LOSS_ALLOC_LOST, 1);
}

/* Returns the number of the block where it is to be followed, else 0. */
static uint32_t send(struct ls_thread *t, struct slot *s, struct ls_vm *vm, const uint64_t *at,
                     size_t size, enum ls_objtype type)
{
        static _Atomic uint32_t last_id;
        const lua_State *L = running(vm, s->global);
        struct ls_moment m = { .vm = vm, .L = L, .whole_stack = 1, .jit_offset = LS_JIT_NO_OFFSET };
        struct ls_ticks ticks = { .event = LS_EVENT_ALLOC, .time_ns = ls_now_ns(), .cpu_ns = size };
        int state = ls_tick_vmstate(LS_READ(int32_t, s->global, ls_vm_facts.vmstate_offset)), error;

        if (s->follows) {
                tell(t, s->blocks, 0);
                ticks.place = atomic_fetch_add(&last_id, 1) + 1;
        }
        ticks.weight[state] = 1;
        ticks.type = !type && state == LS_VMSTATE_JIT ? LS_OBJTYPE_COMPILER : type;
        error = L ? read_stack(t, s, L, at, &m) : 0;
        if (L && !error && t->sampler->walks[t->sampler->current].n)
                error = ls_sample_send(t, &m, &ticks);
        else
                error = ls_sample_send_pseudo(t, vm, error ? "[stack not readable]"
                                                                 : "[no Lua function]",
                                              NULL, &ticks);
        if (error)
                ls_lose(LS_LOSS_ALLOC_LOST, 1);
        ls_tick_heap(t, &t->sampler->walks[t->sampler->current].guard, vm, s->global,
                     ticks.time_ns);
        ls_sample_background(t, NULL, 0);
        atomic_fetch_add_explicit(&ls_agent.shm->own_hook_ns, ls_now_ns() - ticks.time_ns,
                                  memory_order_relaxed);
        return error ? 0 : ticks.place;
}

/* The calling thread's, NULL = it has none. Where no tick comes, of a process that was attached to,
 * nothing else makes it. */
static struct ls_thread *own_thread(void)
{
        if (ls_agent.attached && ls_agent_live() && !ls_thread_self())
                ls_thread_begin(0);
        return ls_agent_live() ? ls_thread_self() : NULL;
}

/* 1 when this allocation is to be sent: t is its thread's then, and entered. */
static int begin(const struct slot *s, const struct ls_vm *vm, struct ls_thread **ret)
{
        const struct ls_shm *shm = ls_agent.shm;
        struct ls_thread *t;

        if (!atomic_load_explicit(&shm->recording, memory_order_relaxed) || vm->vm_id != s->vm_id ||
            atomic_load_explicit(&shm->paused, memory_order_relaxed) || vm->paused)
                return 0;
        *ret = t = own_thread();
        if (!t || t->busy) {
                ls_lose(LS_LOSS_ALLOC_LOST, 1);
                return 0;
        }
        ls_thread_enter(t);
        return 1;
}

/* What the call has done to blocks that are followed: p, which was osize bytes, is block now, of
 * nsize bytes; id: the number that it has got, 0 = it was not sampled. One that is made smaller
 * stays the same. */
static void follow(struct ls_blocks *blocks, const void *p, size_t osize, const void *block,
                   size_t nsize, uint32_t id)
{
        uint32_t old = p && (block || !nsize) ? ls_blocks_take(blocks, p) : 0;

        if (old && nsize && nsize <= osize && ls_blocks_add(blocks, block, old) == 0)
                old = 0;
        if (old)
                freed(blocks, old);
        if (id && (!block || ls_blocks_add(blocks, block, id)))
                freed(blocks, id);
}

/* What the next allocation is to say of this one. */
static void learn_next(struct slot *s, struct ls_type_place *place, const uint64_t *at,
                       const void *block, size_t size)
{
        if (atomic_load_explicit(&lessons, memory_order_relaxed) > 0)
                atomic_fetch_sub(&lessons, 1);
        else if (!place)
                return;
        if (place)
                ls_type_note(&learning[s - slots].look, place, at, block, size);
        learning[s - slots].rest = s->left;
        s->left = 0;
}

/* The type of what is allocated here, after what was before; *ret_place: where it is learnt. */
static enum ls_objtype type_of(const struct slot *s, const struct ls_vm *vm, const uint64_t *at,
                               struct ls_type_place **ret_place)
{
        enum ls_objtype type;

        ls_type_learn(&learning[s - slots].look, s->global, vm->main, running(vm, s->global));
        *ret_place = ls_type_at(at, LS_READ(uintptr_t, s->global, ls_vm_facts.jit_base_offset) != 0,
                                &type);
        return type;
}

/* The count has ended at this allocation, or the block may be one that is followed; at: the place
 * of its return address in the C stack. A block that grows may be the Lua stack, which is read
 * before it moves. One that cannot be had is no allocation. */
__attribute__((used, noinline)) static void *slow(void *ud, void *p, size_t osize, size_t nsize,
                                                  struct slot *s, const uint64_t *at)
{
        alloc_fn inner = atomic_load_explicit(&s->inner, memory_order_acquire);
        int saved = errno, in = ls_control_pass_vm(), sends = 0;
        struct ls_vm *vm = in ? atomic_load(&s->vm) : NULL;
        struct ls_type_place *place = NULL;
        enum ls_objtype type = LS_OBJTYPE_UNKNOWN;
        int counted = nsize > osize && s->left < 0;
        struct ls_thread *t;
        uint32_t id = 0;
        void *block;

        if (counted) {
                s->left += learning[s - slots].rest;
                learning[s - slots].rest = 0;
                sends = vm && s->left < 0;
                if (s->left < 0)
                        s->left = vm ? ls_draw_bytes(&s->draw) : LET_PASS;
                if (vm && vm->vm_id == s->vm_id)
                        type = type_of(s, vm, at, &place);
        }
        if (sends && p && begin(s, vm, &t)) {
                id = send(t, s, vm, at, nsize, type);
                ls_thread_leave(t);
        }
        errno = saved;
        block = inner(ud, p, osize, nsize);
        saved = errno;
        if (sends && !p && block && begin(s, vm, &t)) {
                id = send(t, s, vm, at, nsize, type);
                ls_thread_leave(t);
        }
        if (counted && vm && vm->vm_id == s->vm_id && block)
                learn_next(s, place, at, block, nsize);
        if (vm && s->follows)
                follow(s->blocks, p, osize, block, nsize, id);
        if (in)
                ls_control_go_out();
        errno = saved;
        return block;
}

/* Where frees are followed, too. */
__attribute__((used)) static void *live(void *ud, void *p, size_t osize, size_t nsize,
                                        struct slot *s, const uint64_t *at)
{
        if (nsize > osize) {
                s->left -= (int64_t)nsize;
                if (s->left < 0)
                        return slow(ud, p, osize, nsize, s, at);
        }
        if (p && ls_blocks_maybe(s->blocks, p))
                return slow(ud, p, osize, nsize, s, at);
        return atomic_load_explicit(&s->inner, memory_order_relaxed)(ud, p, osize, nsize);
}

/* A VM's blocks are live until the process makes another VM, or closes one: of a program that
 * closes its VM at the end they are what it had then. */
static _Atomic uint32_t last_closed;

static void forget_closed(struct slot *s, uint32_t closed)
{
        struct ls_thread *t = own_thread();

        if (!t || (t->busy && closed))
                return;
        ls_thread_enter(t);
        if (tell(t, s->blocks, atomic_exchange(&last_closed, closed)))
                ls_lose(LS_LOSS_ALLOC_LOST, 1);
        ls_thread_leave(t);
}

static _Atomic uint32_t slots_used;     /* those behind it were never */

/* 1 when the slot, which an attachment has left, is taken. A thread may still be on its way into
 * its stub: the function behind it stays the same. */
static int take_left(struct slot *s, const char *global, const void *inner)
{
        uint8_t left = 1;

        if (!atomic_load(&s->left_over) ||
            (const void *)(uintptr_t)atomic_load(&s->inner) != inner ||
            !atomic_compare_exchange_strong(&s->left_over, &left, 0))
                return 0;
        atomic_store(&s->global, global);
        return 1;
}

/* One for this VM: its own of an earlier attachment, a free one, or another's of an earlier one. */
static struct slot *take_slot(const char *global, const void *inner)
{
        uint32_t used = atomic_load(&slots_used);
        const char *none = NULL;

        for (uint32_t i = 0; i < used; i++)
                if (atomic_load(&slots[i].global) == global && take_left(&slots[i], global, inner))
                        return &slots[i];
        for (uint32_t i = 0; i < SLOTS; i++, none = NULL)
                if (atomic_compare_exchange_strong(&slots[i].global, &none, global)) {
                        while (used < i + 1 &&
                               !atomic_compare_exchange_weak(&slots_used, &used, i + 1))
                                ;
                        return &slots[i];
                }
        for (uint32_t i = 0; i < used; i++)
                if (take_left(&slots[i], global, inner))
                        return &slots[i];
        return NULL;
}

/* Makes the slot ready for its VM. Returns 0, or -1: there is no memory for what is live. */
static int fill(struct slot *s, struct ls_vm *vm, const void *inner)
{
        s->vm_id = vm->vm_id;
        atomic_store(&s->inner, (alloc_fn)(uintptr_t)inner);
        ls_draw_begin(&s->draw, ls_agent.shm->alloc_interval, ls_agent.shm->generation + vm->vm_id);
        s->left = ls_draw_bytes(&s->draw);
        learning[s - slots].rest = 0;
        learning[s - slots].look.place = NULL;
        s->follows = ls_agent.shm->live;
        if (s->follows && s->blocks && ls_blocks_restart(s->blocks))
                return -1;
        if (s->follows && !s->blocks && !(s->blocks = ls_blocks_new()))
                return -1;
        atomic_store(&s->vm, vm);
        return 0;
}

const char *ls_alloc_open(struct ls_vm *vm, const char *global)
{
        void *f = atomic_load(word_of(global)), *stub;
        struct slot *s;

        if (!ls_agent.shm->alloc_interval || slot_of(f))
                return NULL;
        if (vm->engine != LS_ENGINE_WALK)
                return "their stacks cannot be read here";
        s = take_slot(global, f);
        if (!s)
                return "there are too many VMs";
        if (fill(s, vm, f)) {
                s->follows = 0;
                atomic_store(&s->left_over, 1);
                return "there is no memory for what is live";
        }
        if (s->follows)
                forget_closed(s, 0);
        stub = stub_of(s);
        vm->own_alloc = f == ls_vm_facts.heap_alloc ? stub : NULL;
        if (!atomic_compare_exchange_strong(word_of(global), &f, stub)) {
                atomic_store(&s->vm, NULL);     /* the program has just set another: at the next
                                                 * look */
                atomic_store(&s->left_over, 1);
        }
        return NULL;
}

/* The slot of this VM, NULL = it has none. */
static struct slot *find(const char *global)
{
        for (uint32_t i = 0, n = atomic_load(&slots_used); i < n; i++)
                if (atomic_load(&slots[i].global) == global)
                        return &slots[i];
        return NULL;
}

/* Between lua_close, which gives a VM's memory back, and the end of an attachment, which writes
 * into it. */
static pthread_mutex_t closing_lock = PTHREAD_MUTEX_INITIALIZER;

static void take_out(const char *global)
{
        struct slot *s = slot_of(atomic_load(word_of(global)));
        struct ls_blocks *blocks = s && s->follows ? s->blocks : NULL;

        if (s) {
                atomic_store(word_of(global), (void *)(uintptr_t)atomic_load(&s->inner));
                if (blocks)
                        forget_closed(s, s->vm_id);
                blocks = s->blocks;
                s->follows = 0;
                s->blocks = NULL;       /* first: another thread may fork, and its child clears
                                         * them */
                atomic_thread_fence(memory_order_seq_cst);
                ls_blocks_free(blocks);
                atomic_store(&s->vm, NULL);
                atomic_store(&s->global, NULL);
                return;
        }
        /* The host's function may call the stub until it gives the VM up: the slot stays taken. */
        s = find(global);
        if (s && !atomic_load(&s->left_over)) {
                if (s->follows)
                        ls_blocks_clear(s->blocks);
                s->left = LET_PASS;
                atomic_store(&s->global, stubs[0]);
        }
}

void ls_alloc_close(const lua_State *L)
{
        const char *global = LS_READ(const char *, L, LS_L_GLREF);
        sigset_t mask;

        if (!ls_agent.attached) {
                take_out(global);
                return;
        }
        ls_lock(&closing_lock, &mask);
        take_out(global);
        ls_unlock(&closing_lock, &mask);
}

static _Atomic(const char *) why_not;   /* a VM that runs could not be opened */

/* The thread that runs the VM is here: so its memory is there, and no lua_close of it is on its way
 * but the one that says so. */
void ls_alloc_runs(struct ls_vm *vm, const char *global)
{
        const char *why;

        if (slot_of(atomic_load(word_of(global))) || atomic_load(&vm->closing) ||
            !ls_control_pass())
                return;
        why = ls_alloc_open(vm, global);
        if (why)
                atomic_store(&why_not, why);
        ls_control_go_out();
}

const char *ls_alloc_why_not(void)
{
        return atomic_exchange(&why_not, NULL);
}

void ls_alloc_leave(void)
{
        sigset_t mask;

        ls_lock(&closing_lock, &mask);
        for (uint32_t i = 0, n = atomic_load(&slots_used); i < n; i++) {
                struct slot *s = &slots[i];
                const char *global = atomic_load(&s->global);
                void *stub = stub_of(s);

                /* a host may drop the memory of a VM that it never closed */
                if (!atomic_exchange(&s->vm, NULL) || !global || global == stubs[0] ||
                    !ls_readable(global, sizeof stub))
                        continue;
                atomic_compare_exchange_strong(word_of(global), &stub,
                                               (void *)(uintptr_t)atomic_load(&s->inner));
        }
        ls_unlock(&closing_lock, &mask);
}

void ls_alloc_process_ends(struct ls_thread *t)
{
        if (t->busy)
                return;
        ls_thread_enter(t);
        for (uint32_t i = 0, n = atomic_load(&slots_used); i < n; i++) {
                const struct ls_vm *vm = atomic_load(&slots[i].vm);

                if (vm && slots[i].follows && atomic_load(&vm->runner) == t->thread_id &&
                    tell(t, slots[i].blocks, 0))
                        ls_lose(LS_LOSS_ALLOC_LOST, slots[i].blocks->n_freed);
        }
        ls_thread_leave(t);
}

/* No thread is in slow() for a VM any more, and none will be; in live() one may be still, which
 * finds no bits. */
void ls_alloc_left(void)
{
        struct ls_thread *t = ls_thread_self();
        sigset_t mask;

        ls_lock(&closing_lock, &mask);
        for (uint32_t i = 0, n = atomic_load(&slots_used); i < n; i++) {
                struct slot *s = &slots[i];

                if (!atomic_load(&s->global) || atomic_load(&s->left_over))
                        continue;
                if (s->follows && t) {
                        ls_thread_enter(t);
                        if (tell(t, s->blocks, 0))
                                ls_lose(LS_LOSS_ALLOC_LOST, s->blocks->n_freed);
                        ls_thread_leave(t);
                }
                if (s->blocks)
                        ls_blocks_end(s->blocks);
                s->follows = 0;
                atomic_store(&s->left_over, 1);
        }
        atomic_store(&last_closed, 0);
        ls_unlock(&closing_lock, &mask);
}

/* A child of a process that was attached to is as if it had not been. */
static void leave_in_child(void)
{
        ls_alloc_leave();
        for (uint32_t i = 0, n = atomic_load(&slots_used); i < n; i++)
                if (atomic_load(&slots[i].global) && slots[i].blocks) {
                        ls_blocks_end(slots[i].blocks);
                        slots[i].follows = 0;
                }
        ls_alloc_left();
}

void ls_alloc_after_fork(int recorded)
{
        static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

        memcpy(&closing_lock, &fresh, sizeof fresh);    /* another thread may have had it */
        if (ls_agent.attached) {
                leave_in_child();
                return;
        }
        for (uint32_t i = 0, n = atomic_load(&slots_used); i < n; i++) {
                if (recorded && slots[i].follows)
                        ls_blocks_clear(slots[i].blocks);
                learning[i].rest = 0;
                slots[i].left = recorded && slots[i].vm ? ls_draw_bytes(&slots[i].draw) : LET_PASS;
        }
}

void *ls_alloc_inner(void *f)
{
        struct slot *s = slot_of(f);

        return s ? (void *)(uintptr_t)atomic_load(&s->inner) : f;
}

void *ls_alloc_stub(const lua_State *L)
{
        void *f = atomic_load(word_of(LS_READ(const char *, L, LS_L_GLREF)));

        return slot_of(f) ? f : NULL;
}

static void put_back(const lua_State *L, void *stub)
{
        _Atomic(void *) *word = word_of(LS_READ(const char *, L, LS_L_GLREF));
        struct slot *s = slot_of(stub);
        void *f = atomic_load(word);

        if (!s || slot_of(f) || (ls_agent.attached && !atomic_load(&s->vm)))
                return;                 /* the attachment has ended since, or a tick has put one */
        if (f != ls_vm_facts.heap_alloc)        /* what it gives may go unseen, also when it is no
                                                 * longer set */
                atomic_store(&ls_heap_is_watched, 0);
        if (atomic_load(&s->vm))
                atomic_load(&s->vm)->own_alloc = f == ls_vm_facts.heap_alloc ? stub : NULL;
        atomic_store(&s->inner, (alloc_fn)(uintptr_t)f);
        atomic_store(word, stub);
}

void ls_alloc_put_back(const lua_State *L, void *stub)
{
        sigset_t mask;

        if (!ls_agent.attached) {
                put_back(L, stub);
                return;
        }
        ls_lock(&closing_lock, &mask);
        put_back(L, stub);
        ls_unlock(&closing_lock, &mask);
}
