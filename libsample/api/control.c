/* Regions, pauses and marks. See control.h. */

#include "libsample/api/control.h"

#include <string.h>

#include "libsample/agent.h"
#include "libsample/handler/clock.h"
#include "libsample/handler/ring_writer.h"
#include "libsample/handler/vms.h"
#include "libsample/recording/pass.h"
#include "libsample/recording/threads.h"
#include "libsample/vm/profiler.h"

#define NAME_MOST 1024u

static uint32_t cut(size_t len)
{
        return len < NAME_MOST ? (uint32_t)len : NAME_MOST;
}

static void send_region(struct ls_thread *t, int begin, const char *name, size_t len)
{
        struct ls_rec_region rec = { ls_now_ns(), ls_thread_cpu_ns(), (uint32_t)begin, cut(len) };
        char *body = ls_ring_reserve(t->ring, LS_REC_REGION, sizeof rec + rec.name_len,
                                     LS_RESERVE_DEFINITION);

        if (!body)
                return;
        memcpy(body, &rec, sizeof rec);
        memcpy(body + sizeof rec, name, rec.name_len);
        ls_ring_commit(t->ring, body);
}

/* Does something with the VM of L, or with all. Returns how many it changed. */
static unsigned each(lua_State *L, int (*change)(struct ls_vm *vm))
{
        uint32_t n = atomic_load_explicit(&ls_vms_used, memory_order_acquire);
        struct ls_vm *vm;
        unsigned changed = 0;

        if (!ls_agent_live())
                return 0;
        if (L) {
                vm = ls_vm_of(L);
                return vm ? (unsigned)change(vm) : 0;
        }
        for (uint32_t i = 0; i < n; i++)
                if (atomic_load_explicit(&ls_vms[i].global, memory_order_acquire))
                        changed += (unsigned)change(&ls_vms[i]);
        return changed;
}

static int begin(struct ls_vm *vm)
{
        if (vm->in_region)
                return 0;
        vm->in_region = 1;
        vm->paused &= ~LS_PAUSED_REGION;
        return 1;
}

static int end(struct ls_vm *vm)
{
        if (!vm->in_region)
                return 0;
        vm->paused |= LS_PAUSED_REGION;
        return 1;
}

/* After what was pending is sent: it still belongs to the region. */
static int leave(struct ls_vm *vm)
{
        int was = vm->in_region && (vm->paused & LS_PAUSED_REGION);

        if (was)
                vm->in_region = 0;
        return was;
}

static int pause_one(struct ls_vm *vm)
{
        int was = vm->paused & LS_PAUSED_CALL;

        vm->paused |= LS_PAUSED_CALL;
        return !was;
}

static int resume_one(struct ls_vm *vm)
{
        int was = vm->paused & LS_PAUSED_CALL;

        vm->paused &= ~LS_PAUSED_CALL;
        return was != 0;
}

static int is_sampled(struct ls_vm *vm)
{
        return !vm->paused && (vm->engine == LS_ENGINE_WALK || !ls_profiler_is_taken());
}

static int would_begin(struct ls_vm *vm)
{
        return !vm->in_region;
}

static int start(struct ls_thread *t, lua_State *L, const char *name, size_t len)
{
        if (!t || !each(L, would_begin))
                return 0;
        ls_thread_flush(t);
        send_region(t, 1, name, len);
        return each(L, begin) != 0;
}

static int stop(struct ls_thread *t, lua_State *L)
{
        if (!t || !each(L, end))
                return 0;
        ls_thread_flush(t);
        each(L, leave);
        send_region(t, 0, "", 0);
        return 1;
}

static int pause_samples(struct ls_thread *t, lua_State *L)
{
        if (!t || !each(L, pause_one))
                return 0;
        ls_thread_flush(t);
        return 1;
}

static int mark(struct ls_thread *t, const char *name, size_t len)
{
        struct ls_rec_span rec = { ls_now_ns(), LS_SPAN_INSTANT, cut(len) };
        char *body = t ? ls_ring_reserve(t->ring, LS_REC_SPAN, sizeof rec + rec.name_len, 0) : NULL;

        if (!body)
                return 0;
        memcpy(body, &rec, sizeof rec);
        memcpy(body + sizeof rec, name, rec.name_len);
        ls_ring_commit(t->ring, body);
        return 1;
}

/* What the program calls: come in, do it, go out. */
#define CALL(what) do { \
                int done_; \
                if (!ls_control_come_in()) \
                        return 0; \
                done_ = (what); \
                ls_control_go_out(); \
                return done_; \
        } while (0)

int ls_control_start(lua_State *L, const char *name, size_t len)
{
        CALL(start(ls_thread_self(), L, name, len));
}

int ls_control_stop(lua_State *L)
{
        CALL(stop(ls_thread_self(), L));
}

int ls_control_pause(lua_State *L)
{
        CALL(pause_samples(ls_thread_self(), L));
}

int ls_control_resume(lua_State *L)
{
        CALL(ls_thread_self() && each(L, resume_one));
}

int ls_control_is_recording(lua_State *L)
{
        CALL(ls_thread_self() && !atomic_load(&ls_agent.shm->paused) && each(L, is_sampled));
}

static int is_in_region(struct ls_vm *vm)
{
        return vm->in_region != 0;
}

int ls_control_in_region(void)
{
        CALL(each(NULL, is_in_region) != 0);
}

int ls_control_mark(const char *name, size_t len)
{
        CALL(mark(ls_thread_self(), name, len));
}
