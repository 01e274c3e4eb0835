/* Sends samples: see sample.h. */

#include "libsample/handler/sample.h"

#include "libsample/handler/builtins.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libsample/handler/coroutines.h"
#include "libsample/handler/jit_traces.h"
#include "libsample/handler/labels.h"
#include "libsample/handler/names_search.h"
#include "libsample/handler/names_stack.h"
#include "libsample/handler/native.h"
#include "libsample/handler/sources.h"
#include "libsample/handler/zones.h"

#define SEARCH_STEP_NS   UINT64_C(80000)        /* most of a search for names in one tick */
#define SEARCH_FREE_NS   UINT64_C(300000)       /* searches may take so much at once, */
#define SEARCH_SHARE 250 /* and one part in so many of the program's CPU time */
#define AGAIN_MOST 100u  /* stacks of a thread that are sent from the root on, for names */
#define BUILTINS_NS      UINT64_C(100000000)    /* between two looks at the libraries */

/* Addresses are not enough: another function may be at that of a collected one. The line of a Lua
 * frame without pc is not known to be the same. */
static int same(const struct ls_wframe *a, const struct ls_wframe *b)
{
        if (a->fn != b->fn || a->pc != b->pc || a->callee != b->callee)
                return 0;
        if (a->fn == LS_WFN_RESUMED_BY_C || !ls_fn_is_lua(a->fn))
                return 1;
        return a->pc &&
               LS_READ(const char *, ls_fn_proto(a->fn), LS_PT_CHUNKNAME) == b->chunkname &&
               ls_pt_shape(ls_fn_proto(a->fn)) == b->shape;
}

/* Root frames that equal those of the last sample sent. */
static size_t kept(const struct ls_sampler *s)
{
        const struct ls_walk *w = &s->walks[s->current], *last = &s->walks[!s->current];
        size_t most = w->n < s->last_n ? w->n : s->last_n, n = 0;

        while (n < most && same(&w->frames[w->n - 1 - n], &last->frames[s->last_n - 1 - n]))
                n++;
        return n;
}

/* 1 when all of a prototype can be read: a function that is described for the first time. */
static int proto_reads(const char *pt)
{
        uint32_t size = LS_READ(uint32_t, pt, LS_PT_SIZEPT);
        const char *name = LS_READ(const char *, pt, LS_PT_CHUNKNAME);

        return size >= LS_PT_SIZE && size < 1u << 30 && ls_readable(pt, size) &&
               ls_readable(name, LS_STR_DATA) && LS_READ(uint8_t, name, LS_GC_TYPE) == LS_T_STR &&
               ls_readable(name, LS_STR_DATA + (size_t)ls_str_len(name));
}

/* 1 when the function at this address was described, and nothing shows that another has its place
 * now. */
static int is_known(const struct ls_thread *t, const char *fn)
{
        const struct ls_fn *known = ls_function_find(t, fn);

        return known &&
               known->chunkname == LS_READ(const char *, ls_fn_proto(fn), LS_PT_CHUNKNAME) &&
               known->shape == ls_pt_shape(ls_fn_proto(fn));
}

/* Gives frame i its function id and line. Returns 0, or -1 when a definition did not fit. */
static int resolve(struct ls_thread *t, const struct ls_moment *m, struct ls_walk *w, size_t i,
                   uint64_t now)
{
        struct ls_wframe *f = &w->frames[i];
        int call_sites = m->whole || m->whole_stack;
        struct ls_fn *fn;

        if (f->fn == LS_WFN_RESUMED_BY_C) {
                f->func_id = ls_function_pseudo(t, "[resumed by C]");
                return f->func_id ? 0 : -1;
        }
        if (f->callee) {
                f->func_id = ls_function_c_id(t, f->callee);
                return f->func_id ? 0 : -1;
        }
        uint8_t ffid = LS_READ(uint8_t, f->fn, LS_FN_FFID);

        if (i && f[-1].fn == f->fn && f[-1].pc == f->pc && f->pc &&
            f[-1].func_id) { /* deep recursion */
                f->func_id = f[-1].func_id;
                f->line = f[-1].line;
                f->chunkname = f[-1].chunkname;
                f->shape = f[-1].shape;
                return 0;
        }
        if (ffid > LS_FFID_C && m->whole && !ls_builtin_name(ffid) &&
            now - t->sampler->builtins_ns > BUILTINS_NS) {
                t->sampler->builtins_ns = now;
                ls_names_builtins(m->L);
        }
        if (ffid == LS_FFID_LUA && !(LS_ITSELF && m->whole) && !is_known(t, f->fn) &&
            !proto_reads(ls_fn_proto(f->fn)))
                return -1;
        f->func_id = ls_function_id(t, f->fn, now);
        if (!f->func_id)
                return -1;
        fn = ls_function_last(t);
        if (fn->rank == LS_NAME_NONE &&
            !(fn->tried & (call_sites ? LS_TRIED_CALL_SITE : LS_TRIED_DEFINITION)))
                ls_names_from_stack(t, w, i, fn, call_sites);
        t->sampler->untried |= fn->rank == LS_NAME_NONE && !(fn->tried & LS_TRIED_CALL_SITE);
        if (ffid == LS_FFID_LUA) {
                f->chunkname = LS_READ(const char *, ls_fn_proto(f->fn), LS_PT_CHUNKNAME);
                f->shape = ls_pt_shape(ls_fn_proto(f->fn));
                f->line = f->pc        ? ls_pt_line(ls_fn_proto(f->fn), f->pc)
                          : m->line_of ? m->line_of(m, w, i)
                                       : 0;
        }
        return 0;
}

/* Ticks while the compiler of the VM is off. Not of the watcher's, in whose process the VM is
 * not. */
static void count_off(const struct ls_vm *vm, const struct ls_ticks *ticks)
{
        const char *global = vm && vm->jit && vm->jit->at.flags
                                     ? LS_LOAD(vm->jit, global, memory_order_relaxed)
                                     : NULL;

        if (global && !(LS_READ(uint32_t, global + vm->jit->at.state, vm->jit->at.flags) & 1))
                atomic_fetch_add_explicit(&ls_agent.shm->jit_off_ticks, ticks->sum,
                                          memory_order_relaxed);
}

static void fill(struct ls_rec_sample *rec, const struct ls_vm *vm, const struct ls_ticks *ticks)
{
        memset(rec, 0, sizeof *rec);
        rec->time_ns = ticks->time_ns;
        rec->cpu_ns = ticks->cpu_ns;
        memcpy(rec->weight, ticks->weight, sizeof rec->weight);
        rec->kernel_delayed = ticks->delayed;
        rec->event = ticks->event ? ticks->event : LS_EVENT_CPU;
        if (ticks->event == LS_EVENT_WALL)
                rec->flags |= LS_SAMPLE_OFF_CPU;
        rec->flags |= ticks->flags;
        rec->place = ticks->place;
        rec->type = ticks->type;
        rec->vm_id = vm ? vm->vm_id : 0;
        if (vm && vm->in_region)
                rec->flags |= LS_SAMPLE_IN_REGION;
}

static void commit(struct ls_thread *t, struct ls_rec_sample *rec, const struct ls_ticks *ticks)
{
        struct ls_shm *shm = ls_agent.shm;

        if (ticks->delayed)
                ls_lose(LS_LOSS_KERNEL_DELAYED, ticks->delayed);
        if (ticks->event) {             /* the watcher's: the totals are of what the handler
                                         * counted */
                ls_ring_commit(t->ring, rec);
                return;
        }
        atomic_fetch_add_explicit(&shm->samples, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&shm->sample_ticks, ticks->sum, memory_order_relaxed);
        ls_ring_commit(t->ring, rec);
}

/* Which frames of the walk are sent: [0, leaf) and, after a pseudo frame, [root, n). leaf == root:
 * all new ones. */
static void choose(size_t room, size_t n, size_t *keep, size_t *leaf, size_t *root)
{
        size_t fits = (room - sizeof(struct ls_rec_sample)) / sizeof(struct ls_frame);
        size_t depth = ls_agent.shm->depth;

        *leaf = *root = n - *keep;
        if (depth && n > depth) {
                *leaf = depth - depth / 4;
                *root = n - depth / 4;
        } else if (n - *keep > fits) {
                *leaf = fits / 2;
                *root = n - fits / 4;
        } else {
                return;
        }
        *keep = 0;
}

static uint32_t coroutine_of(struct ls_thread *t, const struct ls_moment *m,
                             const struct ls_walk *w, uint64_t now)
{
        const char *body = w->frames[w->body].fn;
        uint32_t id;

        if (m->L == m->vm->main || body == LS_WFN_RESUMED_BY_C)
                return 0;
        id = ls_function_id(t, body, now);
        return id ? ls_coroutine_id(t, m->L, body, id, m->vm->vm_id) : 0;
}

/* The kernel's name of a thread is often given by the thread itself: so it is asked for again at
 * the first sample. */
static void describe_thread(struct ls_thread *t)
{
        if (t->sampler->described <= 0)
                ls_sample_describe_thread(t);
        t->sampler->described = 1;
}

LS_HANDLER void ls_sample_describe_thread(struct ls_thread *t)
{
        struct ls_sampler *s = t->sampler;
        struct ls_rec_thread rec = { t->thread_id, (uint32_t)t->tid, 0, 0 };
        char name[16] = "", *body;

        syscall(SYS_prctl, PR_GET_NAME, name, 0, 0, 0);
        if (s->described < 0 && !memcmp(name, s->name, sizeof name))
                return;
        while (rec.name_len < sizeof name && name[rec.name_len])
                rec.name_len++;
        body = ls_ring_reserve(t->ring, LS_REC_THREAD, sizeof rec + rec.name_len,
                               LS_RESERVE_DEFINITION);
        if (!body)
                return;
        memcpy(body, &rec, sizeof rec);
        memcpy(body + sizeof rec, name, rec.name_len);
        ls_ring_commit(t->ring, body);
        memcpy(s->name, name, sizeof name);
        s->described = -1;
}

static int is_still(const struct ls_thread *t)
{
        return !t->sampler->still || t->sampler->still(t);
}

/* Sends the walk. Returns 0, or -1 when it does not fit. */
static int send(struct ls_thread *t, const struct ls_moment *m, const struct ls_ticks *ticks)
{
        struct ls_sampler *s = t->sampler;
        struct ls_walk *w = &s->walks[s->current], *last = &s->walks[!s->current];
        size_t keep = kept(s), leaf, root, n = 0, native;
        uint32_t cut_id = 0, coroutine, zone, label, callee;
        uint64_t now = ticks->time_ns;
        struct ls_rec_sample *rec;
        struct ls_frame *out;

        /* Kept frames get no name. One that has none yet, since the call sites could not be read at
         * that time, may be among them. */
        if (s->untried && s->again < AGAIN_MOST && (m->whole || m->whole_stack)) {
                s->untried = 0;
                s->again++;
                keep = 0;
        }
        describe_thread(t);
        native = m->regs ? ls_native_measure(t, m->regs, w) : 0;
        if (native > ls_ring_largest(t->ring) / 2) {
                ls_native_forget(t);
                native = 0;
        }
        choose(ls_ring_largest(t->ring) - native, w->n, &keep, &leaf, &root);
        for (size_t i = 0; i < w->n - keep; i = i + 1 == leaf && root > leaf ? root : i + 1)
                if (resolve(t, m, w, i, now))
                        return -1;
        if (s->inlined && m->whole) {
                s->inlined = 0;
                ls_names_enclosed(t, w);
        }
        if (root > leaf && !(cut_id = ls_function_pseudo(t, "[middle cut]")))
                return -1;
        coroutine = coroutine_of(t, m, w, now);
        zone = ls_zone_id(t, m->vm, m->L, m->whole ? NULL : &w->guard);
        label = ls_label_id(t, m->vm, m->L, m->whole ? NULL : &w->guard);
        callee = m->jit_callee && !native ? ls_function_c_id(t, m->jit_callee) : 0;
        n = leaf + (root > leaf ? 1 + w->n - root : 0);
        rec = NULL;
        if (is_still(t))
                rec = ls_ring_reserve(t->ring, LS_REC_SAMPLE,
                                      sizeof *rec + n * sizeof(struct ls_frame) + native, 0);
        if (!rec) {
                if (native)
                        ls_native_forget(t);
                return -1;
        }
        fill(rec, m->vm, ticks);
        if (LS_ITSELF && !ticks->event)
                count_off(m->vm, ticks);
        rec->flags |= m->flags;
        rec->coroutine_id = coroutine;
        rec->zone_id = zone;
        rec->label_id = label;
        rec->keep = (uint32_t)keep;
        rec->nframes = (uint32_t)n;
        rec->jit_id = m->jit_id;
        rec->jit_offset = m->jit_offset;
        rec->callee_id = callee;
        out = (struct ls_frame *)(rec + 1);
        for (size_t i = 0; i < leaf; i++)
                *out++ = (struct ls_frame){ w->frames[i].func_id, w->frames[i].line };
        if (root > leaf) {
                rec->flags |= LS_SAMPLE_MIDDLE_CUT;
                ls_lose(LS_LOSS_MIDDLE_CUT, 1);
                *out++ = (struct ls_frame){ cut_id, 0 };
                for (size_t i = root; i < w->n; i++)
                        *out++ = (struct ls_frame){ w->frames[i].func_id, w->frames[i].line };
        }
        if (native) {
                rec->native_size = (uint32_t)native;
                ls_native_write(t, m->regs, w, out);
        }
        commit(t, rec, ticks);
        /* Kept frames were not resolved again: what they are known by is that of the last
         * sample. */
        for (size_t i = 1; i <= keep; i++) {
                w->frames[w->n - i].chunkname = last->frames[s->last_n - i].chunkname;
                w->frames[w->n - i].shape = last->frames[s->last_n - i].shape;
        }
        s->last_n = root > leaf ? 0 : w->n;
        s->current = !s->current;
        return 0;
}

LS_HANDLER int ls_sample_send(struct ls_thread *t, const struct ls_moment *m,
                              const struct ls_ticks *ticks)
{
        int error = send(t, m, ticks);

        if (error)
                ls_lose(LS_LOSS_RING_FULL, ticks->sum);
        return error;
}

LS_HANDLER int ls_sample_send_pseudo(struct ls_thread *t, const struct ls_vm *vm, const char *name,
                                     const struct ls_regs *regs, const struct ls_ticks *ticks)
{
        struct ls_walk *none = &t->sampler->walks[t->sampler->current];
        uint32_t id;
        struct ls_rec_sample *rec;
        size_t native;

        describe_thread(t);
        none->ncframes = 0;
        native = regs ? ls_native_measure(t, regs, none) : 0;
        id = ls_function_pseudo(t, name);
        rec = id && is_still(t) ? ls_ring_reserve(t->ring, LS_REC_SAMPLE,
                                                  sizeof *rec + sizeof(struct ls_frame) + native, 0)
                                : NULL;
        if (!rec) {
                if (native)
                        ls_native_forget(t);
                ls_lose(LS_LOSS_RING_FULL, ticks->sum);
                return -1;
        }
        fill(rec, vm, ticks);
        rec->nframes = 1;
        *(struct ls_frame *)(rec + 1) = (struct ls_frame){ id, 0 };
        if (native) {
                rec->native_size = (uint32_t)native;
                ls_native_write(t, regs, none, (struct ls_frame *)(rec + 1) + 1);
        }
        t->sampler->last_n = 0;
        commit(t, rec, ticks);
        return 0;
}

LS_HANDLER void ls_sample_send_frames(struct ls_thread *t, const struct ls_vm *vm,
                                      const struct ls_frame *frames, uint32_t n, uint32_t flags,
                                      const struct ls_ticks *ticks)
{
        struct ls_rec_sample *rec;

        describe_thread(t);
        rec = ls_ring_reserve(t->ring, LS_REC_SAMPLE, sizeof *rec + n * sizeof *frames, 0);
        if (!rec) {
                ls_lose(LS_LOSS_RING_FULL, ticks->sum);
                return;
        }
        fill(rec, vm, ticks);
        rec->flags |= flags;
        rec->nframes = n;
        memcpy(rec + 1, frames, n * sizeof *frames);
        t->sampler->last_n = 0;
        commit(t, rec, ticks);
}

LS_HANDLER void ls_sample_flush_outside(struct ls_thread *t, const struct ls_regs *regs)
{
        struct ls_sampler *s = t->sampler;
        struct ls_ticks ticks = {
                .time_ns = atomic_load_explicit(&s->last_time_ns, memory_order_relaxed),
                .cpu_ns = atomic_load_explicit(&s->last_cpu_ns, memory_order_relaxed)
        };

        ticks.sum = ticks.weight[LS_VMSTATE_C] =
                atomic_exchange_explicit(&s->outside, 0, memory_order_relaxed);
        if (ticks.sum)
                ls_sample_send_pseudo(t, NULL, "[outside Lua]", regs, &ticks);
}

LS_HANDLER void ls_sample_alone(struct ls_thread *t)
{
        t->sampler->last_n = 0;
        if (t->sampler->native)
                ls_native_forget(t);
}

LS_HANDLER void ls_sample_background(struct ls_thread *t, const lua_State *L, uint64_t cpu_ns)
{
        struct ls_sampler *s = t->sampler;
        uint64_t credit = SEARCH_FREE_NS + (cpu_ns - s->cpu_start) / SEARCH_SHARE, now;

        ls_sources_send_text(t);
        if (!L || !ls_names_wanted(t) || s->names_ns >= credit)
                return;
        credit -= s->names_ns;
        now = ls_now_ns();
        ls_names_search(t, L, credit < SEARCH_STEP_NS ? credit : SEARCH_STEP_NS);
        s->names_ns += ls_now_ns() - now;
}
