/* A module for the patched LuaJIT (lj_truth.h): watches traces through LuaJIT's events as libsample
 * does, samples where they run, and has score_compare.c compare what formats/jit/map.h makes of
 * each place with what LuaJIT itself logged when it assembled the trace. Loaded by drive.lua, whose
 * output run.py judges. One VM on one thread. */
#include "tests/jit/score.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <lua.h>
#include <lauxlib.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define MAX_TRACES 20000
#define MAX_EVENTS 60000
#define MAX_FUNCTIONS 8192
#define TICK_NS 200000
#define CFRAME_TO_RETURN                                                                           \
        (16 + 8) /* from the C frame down to what compiled code's calls leave, less spadjust */

extern lj_truth_trace_fn lj_truth_trace;
extern lj_truth_snapshot_fn lj_truth_snapshot;
extern lj_truth_reached_fn lj_truth_reached;
extern lj_truth_proto_fn lj_truth_proto;
extern lj_truth_line_fn lj_truth_line;
extern lj_truth_running_fn lj_truth_running;
extern lj_truth_plain_cpu_fn lj_truth_plain_cpu;

struct function {
        const void *key;                /* prototype, or C function */
        struct lj_truth_proto proto;
};

static lua_State *vm;
static struct trace traces[MAX_TRACES];
static volatile uint32_t ntraces;
static uint32_t by_number[65536];       /* index + 1 */
static struct function functions[MAX_FUNCTIONS];
static uint32_t nfunctions = 1;         /* ids from 1 */
static struct ls_jit_event events[MAX_EVENTS];
static uint32_t nevents, recording, parent_number, parent_exit;
static volatile struct ticks ticks;
static int perf = -1;

static uint32_t function_id(const void *function)
{
        struct lj_truth_proto p;
        const void *key;

        lj_truth_proto(function, &p);
        key = p.proto ? p.proto : p.c_function;
        for (uint32_t k = nfunctions; k-- > 1;) {
                if (functions[k].key == key && functions[k].proto.ffid == p.ffid)
                        return k;
        }
        if (nfunctions == MAX_FUNCTIONS)
                return 0;
        functions[nfunctions] = (struct function){ key, p };
        return nfunctions++;
}

/* record: trace number, function, bytecode position, depth */
static int on_record(lua_State *L)
{
        const void *function = lua_topointer(L, 2);
        uint32_t id = function_id(function);
        uint32_t ref = lj_truth_reached(L);
        uint32_t pos = (uint32_t)lua_tointeger(L, 3), depth = (uint32_t)lua_tointeger(L, 4);
        int lua = id && functions[id].proto.proto;
        struct ls_jit_event e = { .ref = (uint16_t)ref,
                                  .depth = (uint16_t)depth,
                                  .pos = lua ? pos : 0 };

        if ((uint32_t)lua_tointeger(L, 1) != recording) {
                recording = (uint32_t)lua_tointeger(L, 1);
                nevents = 0;
        }
        if (lua)
                e.line = (uint32_t)lj_truth_line(functions[id].proto.proto, pos);
        e.function = lua || functions[id].proto.ffid > 1 ? (uint16_t)id : 0xffff;
        /* as libsample does: of events at one reference those count that lead to the last one */
        while (nevents &&
               (events[nevents - 1].ref > e.ref ||
                (events[nevents - 1].ref == e.ref && events[nevents - 1].depth >= e.depth)))
                nevents--;
        if (nevents < MAX_EVENTS)
                events[nevents++] = e;
        return 0;
}

static void *put(uint8_t **at, size_t bytes)
{
        void *p = *at;

        *at += (bytes + 7) & ~(size_t)7;
        return p;
}

/* The function of the trace in which a bytecode lies. */
static uint16_t function_of_pc(const void *pc, uint32_t *ret_pos)
{
        for (uint32_t k = 0; k < nevents; k++) {
                uint16_t id = events[k].function;
                const struct lj_truth_proto *p = id == 0xffff ? NULL : &functions[id].proto;

                if (p && p->proto && (const char *)pc >= (const char *)p->bc &&
                    (const char *)pc < (const char *)p->bc + 4 * (size_t)p->sizebc) {
                        *ret_pos = (uint32_t)(((const char *)pc - (const char *)p->bc) / 4);
                        return id;
                }
        }
        return 0xffff;
}

/* The record that the agent would send. functions[] is the identity here: index = id. */
static int make_blob(struct trace *t, const struct lj_truth_trace *info)
{
        uint32_t nf = nfunctions;
        size_t len = sizeof(struct ls_rec_jittrace) + (nf + 1) * 4 +
                     nevents * sizeof(struct ls_jit_event) +
                     info->nsnapshots * sizeof(struct ls_jit_snapshot) + info->nir * 8 +
                     info->mcode_size + 64;
        uint8_t *at = calloc(1, len), *start = at;
        struct ls_rec_jittrace *h;
        uint32_t *ids;
        struct ls_jit_snapshot *s;

        if (!at)
                return -1;
        h = put(&at, sizeof(*h));
        *h = (struct ls_rec_jittrace){ .jit_id = (uint32_t)(t - traces) + 1,
                                       .vm_id = 1,
                                       .number = info->number,
                                       .root = info->root,
                                       .parent_id = t->parent,
                                       .parent_exit = parent_exit,
                                       .link = info->link,
                                       .link_kind = info->link_kind,
                                       .start_function = 0xffffffff,
                                       .start_pos = info->start_pos,
                                       .flags = LS_JITF_MAP,
                                       .mcode = (uintptr_t)info->mcode,
                                       .mcode_size = info->mcode_size,
                                       .mcode_loop = info->mcode_loop,
                                       .spadjust = info->spadjust,
                                       .nir = info->nir,
                                       .nsnapshots = info->nsnapshots,
                                       .nevents = nevents,
                                       .nfunctions = nf };
        ids = put(&at, nf * sizeof(*ids));
        for (uint32_t k = 0; k < nf; k++) {
                ids[k] = k;
                if (functions[k].key && functions[k].key == info->start_proto)
                        h->start_function = k;
        }
        h->start_line = (uint32_t)lj_truth_line(info->start_proto, info->start_pos);
        memcpy(put(&at, nevents * sizeof(*events)), events, nevents * sizeof(*events));
        s = put(&at, info->nsnapshots * sizeof(*s));
        t->stacks = calloc(info->nsnapshots + 1, sizeof(*t->stacks));
        if (!t->stacks)
                return -1;
        for (uint32_t k = 0; k < info->nsnapshots; k++) {
                struct lj_truth_snapshot from;

                lj_truth_snapshot(vm, info->number, k, &from);
                s[k] = (struct ls_jit_snapshot){ .ref = from.ref,
                                                 .mcofs = from.mcofs,
                                                 .nframes = from.nframes };
                s[k].function = function_of_pc(from.pc, &s[k].pos);
                t->stacks[k].n = from.nfunctions;
                for (uint32_t j = 0; j < from.nfunctions; j++)
                        t->stacks[k].ids[j] =
                                from.functions[j] ? (uint16_t)function_id(from.functions[j]) : 0;
                if (s[k].function != 0xffff)
                        s[k].line = (uint32_t)lj_truth_line(functions[s[k].function].proto.proto,
                                                            s[k].pos);
        }
        memcpy(put(&at, info->nir * 8), info->ir, info->nir * 8);
        memcpy(put(&at, info->mcode_size), info->mcode, info->mcode_size);
        t->blob = start;
        t->blob_len = (size_t)(at - start);
        return 0;
}

/* What each byte was emitted for, as LuaJIT logged it; what nothing claims belongs to what stands
 * before it. */
static int keep_truth(struct trace *t, const struct lj_truth_trace *info)
{
        uint32_t first = info->mcode_size, last = LS_JIT_REF_HEAD;

        t->truth = calloc(info->mcode_size + 1, sizeof(*t->truth));
        t->origin = calloc(info->nir + 1, sizeof(*t->origin));
        t->hits = calloc(info->mcode_size + 1, sizeof(*t->hits));
        if (!t->truth || !t->origin || !t->hits)
                return -1;
        for (uint32_t ref = 1; ref < info->nir; ref++) {
                ptrdiff_t low = info->low[ref] - info->mcode, high = info->high[ref] - info->mcode;

                t->origin[ref] = info->mcode_loop ? info->origin[ref] : 0;
                if (!info->low[ref] || low < 0)
                        continue;
                if ((uint32_t)low < first)
                        first = (uint32_t)low;
                for (ptrdiff_t o = low; o < high && o < (ptrdiff_t)info->mcode_size; o++)
                        t->truth[o] = (uint16_t)ref;
        }
        for (uint32_t o = 0; o < info->mcode_size; o++) {
                if (t->truth[o])
                        last = t->truth[o];
                else if (info->mcode + o >= info->tail)
                        t->truth[o] = LS_JIT_REF_TAIL;
                else if (o > first)
                        t->truth[o] = (uint16_t)last;
        }
        return 0;
}

static void on_stop(uint32_t number)
{
        struct lj_truth_trace info;
        struct trace *t = &traces[ntraces];

        if (ntraces == MAX_TRACES || number != recording || lj_truth_trace(vm, number, &info) < 0)
                return;
        *t = (struct trace){ .mcode = info.mcode,
                             .size = info.mcode_size,
                             .number = number,
                             .spadjust = info.spadjust,
                             .nir = info.nir,
                             .parent = by_number[parent_number] };
        if (make_blob(t, &info) < 0 || keep_truth(t, &info) < 0)
                return;
        by_number[number] = ntraces + 1;
        __atomic_store_n(&ntraces, ntraces + 1, __ATOMIC_RELEASE);
}

/* trace: what, number; at a start also function, position, and of a side trace its parent and exit
 * (-1 = it is stitched) */
static int on_trace(lua_State *L)
{
        const char *what = lua_tostring(L, 1);
        uint32_t number = (uint32_t)lua_tointeger(L, 2);

        if (!strcmp(what, "start")) {
                recording = number;
                parent_number = lua_tointeger(L, 6) >= 0 ? (uint16_t)lua_tointeger(L, 5) : 0;
                parent_exit = parent_number ? (uint32_t)lua_tointeger(L, 6) : 0;
        } else if (!strcmp(what, "stop")) {
                on_stop(number);
        } else if (!strcmp(what, "flush")) {
                for (uint32_t k = 0; k < ntraces; k++)
                        traces[k].dead = 1;
                memset(by_number, 0, sizeof(by_number));
        }
        nevents = 0;
        return 0;
}

static int hit(struct trace *t, const uint8_t *ip)
{
        if (t->dead || ip < t->mcode || ip >= t->mcode + t->size)
                return 0;
        t->hits[ip - t->mcode]++;
        ticks.placed++;
        return 1;
}

static void on_tick(int sig, siginfo_t *si, void *context)
{
        const ucontext_t *uc = context;
        const uint8_t *ip = (const uint8_t *)uc->uc_mcontext.gregs[REG_RIP];
        const char *cframe;
        uint32_t running = lj_truth_running(vm, &cframe);
        int saved = errno, found = 0;

        (void)sig;
        (void)si;
        ticks.all++;
        ticks.running += running > 0;
        for (uint32_t k = ntraces; k-- > 0 && !found;)
                found = hit(&traces[k], ip);
        if (!found && running && running < 65536 && by_number[running] && cframe) {
                struct trace *t = &traces[by_number[running] - 1];

                hit(t, *(const uint8_t *const *)(cframe - CFRAME_TO_RETURN - t->spadjust) - 1);
        }
        if (perf >= 0)
                ioctl(perf, PERF_EVENT_IOC_REFRESH, 1);
        errno = saved;
}

static int plain_cpu(lua_State *L)
{
        lj_truth_plain_cpu(L);
        return 0;
}

/* Ticks of CPU time: perf's task clock when permitted, else the profiling timer. */
static int start(lua_State *L)
{
        struct perf_event_attr a = { .type = PERF_TYPE_SOFTWARE,
                                     .size = sizeof(a),
                                     .config = PERF_COUNT_SW_TASK_CLOCK,
                                     .sample_period = TICK_NS,
                                     .disabled = 1,
                                     .wakeup_events = 1,
                                     .exclude_kernel = 1 };
        struct sigaction sa = { .sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART };
        struct itimerval it = { { 0, 1000 }, { 0, 1000 } };

        vm = L;
        sigaction(SIGPROF, &sa, NULL);
        perf = (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (perf < 0) {
                setitimer(ITIMER_PROF, &it, NULL);
                return 0;
        }
        fcntl(perf, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC);
        fcntl(perf, F_SETSIG, SIGPROF);
        fcntl(perf, F_SETOWN, getpid());
        ioctl(perf, PERF_EVENT_IOC_REFRESH, 1);
        return 0;
}

static void stop_ticks(void)
{
        struct itimerval none = { { 0, 0 }, { 0, 0 } };

        setitimer(ITIMER_PROF, &none, NULL);
        if (perf >= 0)
                ioctl(perf, PERF_EVENT_IOC_DISABLE, 0);
        signal(SIGPROF, SIG_IGN);
}

/* stop(irnames, path, what): what = number of a trace to dump, 0 = all, -1 = none. */
static int stop(lua_State *L)
{
        size_t len;
        const char *irnames = luaL_checklstring(L, 1, &len);
        FILE *f = fopen(luaL_checkstring(L, 2), "w");

        stop_ticks();
        if (!f)
                return luaL_error(L, "cannot write %s", lua_tostring(L, 2));
        score_compare(traces, ntraces, ticks, irnames, len, (int)luaL_optinteger(L, 3, -1), f);
        fclose(f);
        return 0;
}

int luaopen_jitscore(lua_State *L);
int luaopen_jitscore(lua_State *L)
{
        static const luaL_Reg list[] = { { "on_record", on_record }, { "on_trace", on_trace },
                                         { "start", start },         { "stop", stop },
                                         { "plain_cpu", plain_cpu }, { NULL, NULL } };

        lua_newtable(L);
        for (const luaL_Reg *r = list; r->name; r++) {
                lua_pushcfunction(L, r->func);
                lua_setfield(L, -2, r->name);
        }
        return 1;
}
