/* Watches the JIT compiler of a VM through LuaJIT's events "record" (a bytecode is about to be
 * recorded) and "trace" (start, stop, abort, flush). LuaJIT has one handler for each event: these
 * are ours, and a program's own, which it gives to jit.attach, is kept here and called from ours.
 * Normal context, on the VM's thread. See jit.h. */
#include "libsample/jit/jit.h"

#include <pthread.h>

#include "libsample/agent.h"
#include "libsample/handler/jit_send.h"
#include "libsample/handler/sample.h"
#include "libsample/handler/tick.h"
#include "libsample/handler/walk.h"
#include "libsample/jit/attempts.h"
#include "libsample/jit/facts.h"
#include "libsample/layout.h"
#include "libsample/lua_debug.h"
#include "libsample/pages.h"

#define TIMED_EVERY 64u /* one recorded bytecode of so many is timed, for the agent's own account */
#define LOST_CPU_NS                                                                                \
        UINT64_C(10000) /* a bytecode that took so long was interrupted: its time says nothing */
#define MOST_EVENTS 65535u              /* of a trace: references have 16 bits */

static const char *const event_names[LS_JIT_NEVENTS] = {
        [LS_JIT_RECORD] = "record", [LS_JIT_TRACE] = "trace"
};

/* Addresses of these are keys in the registry: of the VM's watch, and of the program's own
 * handlers. */
static const char jit_key, handler_keys[LS_JIT_NEVENTS];

static struct ls_jit *unused;           /* closed ones: a finalizer that lua_close runs may still
                                         * raise an event */
static pthread_mutex_t unused_lock = PTHREAD_MUTEX_INITIALIZER;

struct ls_jit_listener ls_jit_listener;

static void account(struct ls_jit *jit, uint64_t ns)
{
        atomic_fetch_add(&ls_agent.shm->own_hook_ns, jit->own_ns + ns);
        jit->own_ns = 0;
}

static const char *state_of(const struct ls_jit *jit)
{
        return atomic_load_explicit(&jit->global, memory_order_relaxed) + jit->at.state;
}

/* 0 while L's VM is being closed: its watch may be another's by now. */
static int is_of(const struct ls_jit *jit, lua_State *L)
{
        return atomic_load_explicit(&jit->global, memory_order_relaxed) ==
               LS_READ(const char *, L, LS_L_GLREF);
}

/* 1 when the events of L's VM are to be looked at. Not in a forked child. */
static int watching(const struct ls_jit *jit, lua_State *L)
{
        return ls_agent_live() && is_of(jit, L);
}

/* Calls the program's own handler of an event with the arguments that ours was called with. */
static int chain(lua_State *L, enum ls_jit_event_kind event)
{
        int n = ls_lua.lua_gettop(L);

        ls_lua.lua_pushlightuserdata(L, (void *)&handler_keys[event]);
        ls_lua.lua_rawget(L, LS_LUA_REGISTRYINDEX);
        if (ls_lua.lua_type(L, -1) != LS_LUA_TFUNCTION)
                return 0;
        ls_lua.lua_insert(L, 1);
        ls_lua.lua_call(L, n, 0);
        return 0;
}

static void forget_recording(struct ls_jit *jit)
{
        jit->nevents = 0;
        jit->number = jit->parent = jit->exit = 0;
        jit->incomplete = 0;
}

/* Of events at one reference only those count that lead to the last one: calls that were inlined,
 * and itself. */
static void record(struct ls_jit *jit, lua_State *L)
{
        const char *state = state_of(jit), *at = state + jit->at.pc;
        const char *pc = LS_READ(const char *, at, 0), *fn = LS_READ(const char *, at, 8);
        const char *pt = LS_READ(const char *, at, 16);
        uint32_t number = LS_READ(uint16_t, state, LS_TR_NUMBER);
        struct ls_jit_raw *raw;
        uint16_t ref = (uint16_t)LS_READ(uint32_t, state, LS_TR_NINS),
                 depth = (uint16_t)ls_lua.lua_tonumber(L, 4);

        if (number != jit->number) {
                forget_recording(jit);
                jit->number = number;
                jit->incomplete = 1;
        }
        for (; jit->nevents; jit->nevents--) {
                raw = &jit->events[jit->nevents - 1];
                if (raw->ref < ref || (raw->ref == ref && raw->depth < depth))
                        break;
        }
        if (jit->nevents == MOST_EVENTS || ls_pages_grow((void **)&jit->events, &jit->events_room,
                                                         jit->nevents + 1, sizeof *jit->events)) {
                jit->incomplete = 1;
                return;
        }
        raw = &jit->events[jit->nevents++];
        raw->key = ls_jit_key(fn, pt);
        raw->pos = pt ? (uint32_t)((pc - (pt + LS_PT_SIZE)) / 4) : 0;
        raw->ref = ref;
        raw->depth = depth;
}

/* Ticks that came in our handler are the compiler's, of the line that is compiled: the next tick
 * may find another. */
static void take_ticks(struct ls_thread *t, lua_State *L)
{
        struct ls_sampler *s = t->sampler;
        struct ls_walk *w = &s->walks[s->current];
        struct ls_moment m = {
                .vm = ls_vm_of(L), .L = L, .whole = 1, .jit_offset = LS_JIT_NO_OFFSET
        };
        struct ls_ticks ticks;

        if (!atomic_load_explicit(&s->pending[LS_VMSTATE_JIT], memory_order_relaxed) || !s->ready ||
            !m.vm || m.vm->engine != LS_ENGINE_WALK ||
            !atomic_load_explicit(&ls_agent.shm->recording, memory_order_relaxed))
                return;
        ls_ticks_take(s, &ticks);
        if (ls_walk_stack(w, L) || w->n < 2) {
                ls_lose(LS_LOSS_BAD_STACK, ticks.sum);
                return;
        }
        ls_walk_drop_top(w);            /* our handler */
        ls_sample_send(t, &m, &ticks);
}

static int on_record(lua_State *L)
{
        struct ls_jit *jit = (struct ls_jit *)ls_lua.lua_topointer(L, ls_lua_upvalueindex(1));
        struct ls_thread *t = ls_thread_self();
        uint64_t start;

        if (watching(jit, L)) {
                jit->attempt.bytecodes++;
                if (t)
                        ls_thread_enter(t);     /* a tick in here is one of the compiler's */
                start = ++jit->timed % TIMED_EVERY ? 0 : ls_now_ns();
                if (jit->map)
                        record(jit, L);
                if (jit->vm->exact)
                        ls_jit_listener.record(jit->vm->exact, L);
                if (start && (start = ls_now_ns() - start) < LOST_CPU_NS)
                        jit->own_ns += start * TIMED_EVERY;
                if (t) {
                        take_ticks(t, L);
                        ls_thread_leave(t);
                }
                if (!jit->chained[LS_JIT_RECORD])
                        return 0;
        }
        return chain(L, LS_JIT_RECORD);
}

/* Arguments: number, function, position, and for a side trace its parent and exit. A trace that
 * goes on behind a call which could not be compiled has the trace before it, and exit -1: it leaves
 * none. */
static void on_start(struct ls_jit *jit, lua_State *L)
{
        forget_recording(jit);
        jit->number = (uint32_t)ls_lua.lua_tonumber(L, 2);
        if (ls_lua.lua_gettop(L) >= 6 && ls_lua.lua_tonumber(L, 6) >= 0) {
                jit->parent = (uint32_t)ls_lua.lua_tonumber(L, 5);
                jit->exit = (uint32_t)ls_lua.lua_tonumber(L, 6);
        }
        ls_jit_attempt_begins(jit);
}

/* The trace of this number in the VM's own table, NULL = the table does not have it. */
static const char *trace_object(const struct ls_jit *jit, uint32_t number)
{
        const char *state = state_of(jit), *trace;

        if (!number || number >= LS_READ(uint32_t, state, jit->at.ntraces))
                return NULL;
        trace = LS_READ(const char *, LS_READ(const char *, state, jit->at.traces),
                        8 * (size_t)number);
        return trace && LS_READ(uint16_t, trace, LS_TR_NUMBER) == number ? trace : NULL;
}

static void on_stop(struct ls_jit *jit, lua_State *L)
{
        struct ls_thread *t = ls_thread_self();
        uint64_t cpu = ls_thread_cpu_ns(), start = ls_now_ns();
        uint32_t number = (uint32_t)ls_lua.lua_tonumber(L, 2), id = 0;
        const char *trace = trace_object(jit, number);

        if (trace && t) {
                ls_thread_enter(t);
                id = ls_jit_send(jit, t, trace);
                ls_jit_add(jit, number, id, trace);
                ls_jit_attempt_compiled(jit, t, trace);
                take_ticks(t, L);
                ls_thread_leave(t);
        } else if (trace) {     /* compiled by a thread that is not sampled: the number is used
                                 * again all the same */
                ls_jit_add(jit, number, 0, trace);
        }
        forget_recording(jit);
        account(jit, ls_own_ns(start, cpu));
}

static void trace_event(struct ls_jit *jit, lua_State *L)
{
        const char *what = ls_lua.lua_tolstring(L, 1, NULL);

        if (!what)
                return;
        if (jit->vm->exact)
                ls_jit_listener.trace(jit->vm->exact, L, what);
        if (!strcmp(what, "start"))
                on_start(jit, L);
        else if (!strcmp(what, "stop"))
                on_stop(jit, L);
        else if (!strcmp(what, "abort"))
                ls_jit_attempt_aborted(jit, ls_thread_self(), L);
        else if (!strcmp(what, "flush")) {
                ls_jit_attempt_flushed(jit, L);
                ls_jit_flush(jit);
        }
        if (strcmp(what, "start"))
                forget_recording(jit);
}

static int on_trace(lua_State *L)
{
        struct ls_jit *jit = (struct ls_jit *)ls_lua.lua_topointer(L, ls_lua_upvalueindex(1));

        if (watching(jit, L)) {
                trace_event(jit, L);
                if (!jit->chained[LS_JIT_TRACE])
                        return 0;
        }
        return chain(L, LS_JIT_TRACE);
}

/* The first of the events that are listened to: "record" is called for each bytecode. */
static enum ls_jit_event_kind first_event(const struct ls_jit *jit)
{
        return jit->map || jit->vm->exact ? LS_JIT_RECORD : LS_JIT_TRACE;
}

/* The watch of L's VM, NULL = it has none. Leaves the stack as it was. */
static struct ls_jit *watch_of(lua_State *L)
{
        struct ls_jit *jit;

        ls_lua.lua_pushlightuserdata(L, (void *)&jit_key);
        ls_lua.lua_rawget(L, LS_LUA_REGISTRYINDEX);
        jit = (struct ls_jit *)ls_lua.lua_topointer(L, -1);
        ls_lua.lua_settop(L, -2);
        return jit;
}

/* Sets the program's own handler of an event to the value on top, which is popped. */
static void set_handler(lua_State *L, enum ls_jit_event_kind event)
{
        ls_lua.lua_pushlightuserdata(L, (void *)&handler_keys[event]);
        ls_lua.lua_insert(L, -2);
        ls_lua.lua_rawset(L, LS_LUA_REGISTRYINDEX);
}

/* jit.attach(fn): takes fn from all events. */
static void detach(struct ls_jit *jit, lua_State *L)
{
        for (int event = 0; event < LS_JIT_NEVENTS; event++) {
                ls_lua.lua_pushlightuserdata(L, (void *)&handler_keys[event]);
                ls_lua.lua_rawget(L, LS_LUA_REGISTRYINDEX);
                if (ls_lua.lua_rawequal(L, -1, 1)) {
                        ls_lua.lua_pushnil(L);
                        set_handler(L, event);
                        if (is_of(jit, L))
                                jit->chained[event] = 0;
                }
                ls_lua.lua_settop(L, -2);
        }
}

/* jit.attach(fn, event): for an event of ours the program's function goes behind it. Errors are the
 * original's. */
int ls_jit_on_attach(lua_State *L)
{
        struct ls_jit *jit = watch_of(L);
        const char *name;
        int type;

        if (!jit || ls_lua.lua_type(L, 1) != LS_LUA_TFUNCTION)
                return ls_jit_facts.attach(L);
        type = ls_lua.lua_type(L, 2);
        if (type <= LS_LUA_TNIL)
                detach(jit, L);
        name = type == LS_LUA_TSTRING ? ls_lua.lua_tolstring(L, 2, NULL) : "";
        for (int event = (int)first_event(jit); event < LS_JIT_NEVENTS; event++)
                if (!strcmp(name, event_names[event])) {
                        ls_lua.lua_pushvalue(L, 1);
                        set_handler(L, event);
                        if (is_of(jit, L))
                                jit->chained[event] = 1;
                        return 0;
                }
        return ls_jit_facts.attach(L);
}

/* Protected: gives the VM our handlers. */
static int attach_ours(lua_State *L)
{
        static int (*const handlers[LS_JIT_NEVENTS])(lua_State *) = { on_record, on_trace };
        struct ls_jit *jit = (struct ls_jit *)ls_lua.lua_topointer(L, 1);

        ls_lua.lua_pushlightuserdata(L, (void *)&jit_key);
        ls_lua.lua_pushlightuserdata(L, jit);
        ls_lua.lua_rawset(L, LS_LUA_REGISTRYINDEX);
        for (int event = (int)first_event(jit); event < LS_JIT_NEVENTS; event++) {
                ls_lua.lua_pushcclosure(L, ls_jit_facts.attach, 0);
                ls_lua.lua_pushlightuserdata(L, jit);
                ls_lua.lua_pushcclosure(L, handlers[event], 1);
                ls_lua.lua_pushstring(L, event_names[event]);
                ls_lua.lua_call(L, 2, 0);
        }
        return 0;
}

static struct ls_jit *new_jit(void)
{
        struct ls_jit *jit;

        pthread_mutex_lock(&unused_lock);
        jit = unused;
        if (jit)
                unused = jit->next;
        pthread_mutex_unlock(&unused_lock);
        if (!jit)
                return ls_pages_new(sizeof *jit);
        memset(jit, 0, sizeof *jit);
        return jit;
}

/* Number of an IR instruction by its name, 0 = there is none (the first of all is no constant). */
static uint8_t number_of(const char *name)
{
        for (uint32_t i = 0; i < ls_jit_facts.nirnames / 6; i++)
                if (!memcmp(ls_jit_facts.irnames + 6 * i, name, 6))
                        return (uint8_t)i;
        return 0;
}

static void find_numbers(struct ls_jit *jit)
{
        static const char wide[4][7] = { "KPTR  ", "KKPTR ", "KNUM  ", "KINT64" };

        jit->kgc = number_of("KGC   ");
        for (unsigned i = 0; i < 4; i++)
                jit->wide[i] = number_of(wide[i]);
        jit->ops = (struct ls_jit_ops){ .callxs = number_of("CALLXS"), .carg = number_of("CARG  "),
                                        .fload = number_of("FLOAD "), .sload = number_of("SLOAD "),
                                        .retf = number_of("RETF  ") };
}

static struct ls_jit *jit_for(struct ls_vm *vm, const char *global)
{
        struct ls_jit *jit = ls_jit_facts.traces_known ? new_jit() : NULL;

        if (!jit)
                return NULL;
        jit->vm = vm;
        jit->at = ls_jit_facts.at;
        jit->map = vm->jit_leaf == LS_JIT_LEAF_MAP && !ls_jit_facts.why;
        jit->irnames = ls_jit_facts.irnames;
        jit->nirnames = ls_jit_facts.nirnames;
        find_numbers(jit);
        atomic_store(&jit->global, global);
        return jit;
}

void ls_jit_open_running(struct ls_vm *vm, const char *global)
{
        struct ls_jit *jit =
                vm->jit_leaf == LS_JIT_LEAF_MAP && !ls_jit_facts.why ? jit_for(vm, global) : NULL;

        if (!jit)
                return;
        jit->finds = 1;
        vm->jit = jit;
}

void ls_jit_open(struct ls_vm *vm, lua_State *L)
{
        struct ls_jit *jit = jit_for(vm, ls_vm_identity(L));

        if (!jit)
                return;
        ls_jit_functions[0] = (uintptr_t)on_record;
        ls_jit_functions[1] = (uintptr_t)on_trace;
        if (ls_lua.lua_cpcall(L, attach_ours, jit)) {
                ls_lua.lua_settop(L, -2);
                vm->jit = jit;
                ls_jit_close(vm);
                return;
        }
        vm->jit = jit;
}

/* The handlers stay in the VM until it is gone: what they refer to is kept, for another VM. */
void ls_jit_close(struct ls_vm *vm)
{
        struct ls_jit *jit = vm->jit;

        vm->jit = NULL;
        if (!jit)
                return;
        atomic_store(&jit->global, NULL);
        if (ls_agent_live())
                account(jit, 0);
        ls_jit_free_tables(jit);
        pthread_mutex_lock(&unused_lock);
        jit->next = unused;
        unused = jit;
        pthread_mutex_unlock(&unused_lock);
}

void ls_jit_after_fork(void)
{
        static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

        memcpy(&unused_lock, &fresh, sizeof fresh);
}
