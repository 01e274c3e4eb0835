/* Finds out where this build of LuaJIT keeps its JIT state and its traces, in the probe's VM:
 * compiles a known loop, and compares what is read raw with the arguments of LuaJIT's events and
 * with what jit.util says. See jit.h. */
#include "libsample/jit/jit.h"

#include <stdio.h>
#include <sys/mman.h>

#include "libsample/agent.h"
#include "libsample/handler/guard.h"
#include "libsample/handler/walk.h"
#include "libsample/inject/patch.h"
#include "libsample/jit/facts.h"
#include "libsample/jit/irnames.h"
#include "libsample/lua_debug.h"

struct ls_jit_facts ls_jit_facts = { .why = "no VM was looked at yet" };

/* The loop has an inlined call, an allocation, and a branch that becomes a side trace. What is
 * compiled depends on counters that functions share by chance: then it is tried again with the
 * functions at another place. Protected. */
static const char probe_source[] =
        "local record, trace, compare, compare_snap, compare_ir, address, begin, finish, switched, "
        "parameters = ...\n"
        "local jit = jit or require('jit')\n"
        "if not jit.status() then return 'the JIT compiler is off' end\n"
        "address(jit.attach, debug and debug.setmetatable)\n"
        "local util = require('jit.util')\n"
        "local source = [[\n"
        "local keep = { { 0 } }\n"
        "local function add(t, i)\n"
        "  if i % 7 == 0 then keep[2] = { i, i } end\n"
        "  return t[1] + i\n"
        "end\n"
        "return function(n)\n"
        "  for i = 1, n do\n"
        "    keep[1] = { add(keep[1], i), 0 }\n"
        "  end\n"
        "end]]\n"
        "local loops, sides, seen, kept, loop = 0, 0, {}, {}\n"
        "local function look(tr)\n"
        "  local info = util.traceinfo(tr)\n"
        "  if not info or seen[tr] then return end\n"
        "  seen[tr] = true\n"
        "  local mc, addr, at_loop = util.tracemc(tr)\n"
        "  local stub = util.traceexitstub(0)\n"
        "  local side = compare(tr, info.nins, info.nexit, info.link, info.linktype, mc, addr, "
        "at_loop, stub, info.nk)\n"
        "  for sn = 0, info.nexit - 1 do\n"
        "    local snap = util.tracesnap(tr, sn)\n"
        "    compare_snap(tr, sn, snap[0], snap[1], #snap - 2)\n"
        "  end\n"
        "  for ref = 1, info.nins do\n"
        "    compare_ir(tr, ref, util.traceir(tr, ref))\n"
        "  end\n"
        "  if info.linktype == 'loop' and not side then loops = loops + 1 end\n"
        "  if side then sides = sides + 1 end\n"
        "end\n"
        "for try = 1, 5 do\n"
        "  loop = loadstring(source, '=luasample')()\n"
        "  kept[try] = loop\n"
        "  jit.attach(record, 'record')\n"
        "  jit.attach(trace, 'trace')\n"
        "  loop(230)\n"
        "  jit.attach(record)\n"
        "  jit.attach(trace)\n"
        "  for tr = 1, 20 do look(tr) end\n"
        "  if loops > 0 and sides > 0 then break end\n"
        "end\n"
        "if loops == 0 or sides == 0 then return 'a known loop was not compiled' end\n"
        "begin()\n"
        "loop(20)\n"
        "finish()\n"
        "switched(1) jit.off() switched(0) jit.on() switched(1)\n"
        "if jit.opt and pcall(jit.opt.start, 'maxtrace=4099', 'maxmcode=4127', 'hotloop=4153', "
        "'hotexit=4201') then\n"
        "  parameters(4099, 4127, 4153, 4201)\n"
        "end\n"
        "return nil, kept\n";

#define MOST_TRACES 32                  /* numbers of traces that the probe may see */

#define STATE_WORDS 512 /* of jit_State that are searched: it is followed by more of the VM's own */
#define FIRST_WORD  48                  /* of global_State, where the search for it begins */
#define GLOBAL_WORDS 160                /* of global_State that are searched */

static struct {
        const char *global;
        const char *why;
        unsigned records, calls_out;
        uint32_t parent[MOST_TRACES];   /* by trace number, as LuaJIT told; 0 = none */
        uint32_t loop;                  /* number of a trace that is a loop */
        unsigned pc_at;                 /* from global_State, 0 = not seen yet */
        uint32_t last_nins;
        uint8_t not_base[GLOBAL_WORDS]; /* 1 = this word of global_State is not jit_base */
        uint8_t not_flags[2 * STATE_WORDS];     /* 1 = these 32 bits do not follow jit.on and
                                                 * jit.off */
        uint32_t on[2 * STATE_WORDS];   /* what they were with the compiler on */
        unsigned switches;
        void *(*alloc)(void *, void *, size_t, size_t);
        void *alloc_data;
} probe;

static struct ls_patch attach_patch = { .name = "jit.attach",
                                        .replacement = (void *)ls_jit_on_attach };

static void failed(const char *why)
{
        if (!probe.why)
                probe.why = why;
}

static uint32_t number_at(lua_State *L, int index)
{
        return (uint32_t)(int64_t)ls_lua.lua_tonumber(L, index);
}

/* The words pc, fn, pt in the JIT state, which begins with a trace, an address and the
 * lua_State. */
static void find_state(const lua_State *L, const char *pc, const char *fn, const char *pt,
                       uint32_t number)
{
        enum { BEFORE = LS_TR_SIZE + 8 + 8 };
        unsigned n = 0;

        for (unsigned i = FIRST_WORD; i < FIRST_WORD + STATE_WORDS; i++) {
                const char *at = probe.global + 8 * i;

                if (LS_READ(const char *, at, 0) == pc && LS_READ(const char *, at, 8) == fn &&
                    LS_READ(const char *, at, 16) == pt &&
                    LS_READ(const lua_State *, at, -8) == L) {
                        probe.pc_at = 8 * i;
                        n++;
                }
        }
        if (n != 1 ||
            LS_READ(uint16_t, probe.global + probe.pc_at - BEFORE, LS_TR_NUMBER) != number) {
                failed("the JIT state is not in the global state");
                return;
        }
        ls_jit_facts.at.state = probe.pc_at - BEFORE;
        ls_jit_facts.at.pc = BEFORE;
}

static int on_record(lua_State *L)
{
        const char *fn = ls_lua.lua_topointer(L, 2), *pt, *pc, *state, *at;
        uint32_t nins;

        if (probe.why || !ls_fn_is_lua(fn))
                return 0;
        pt = ls_fn_proto(fn);
        pc = pt + LS_PT_SIZE + 4 * (size_t)number_at(L, 3);
        if (!probe.records++)
                find_state(L, pc, fn, pt, number_at(L, 1));
        if (probe.why)
                return 0;
        state = probe.global + ls_jit_facts.at.state;
        at = probe.global + probe.pc_at;
        nins = LS_READ(uint32_t, state, LS_TR_NINS);
        if (LS_READ(const char *, at, 0) != pc || LS_READ(const char *, at, 8) != fn ||
            LS_READ(const char *, at, 16) != pt ||
            LS_READ(uint16_t, state, LS_TR_NUMBER) != number_at(L, 1))
                failed("the JIT state does not follow what is recorded");
        if (nins <= LS_REF_BIAS || nins >= 2 * LS_REF_BIAS || nins < probe.last_nins)
                failed("the size of what was recorded is not where it was expected");
        probe.last_nins = nins;
        return 0;
}

static int on_trace(lua_State *L)
{
        const char *what = ls_lua.lua_tolstring(L, 1, NULL);

        uint32_t number = number_at(L, 2);

        probe.last_nins = 0;
        if (!strcmp(what, "start") && number < MOST_TRACES)
                probe.parent[number] = ls_lua.lua_gettop(L) == 6 ? number_at(L, 5) : 0;
        return 0;
}

static int may_point(const char *p)
{
        return p && !((uintptr_t)p & 7) && !((uintptr_t)p >> 47);
}

/* A trace of the probe's VM by its number, when the words at the place are the array of traces,
 * where the search for a free one begins and how many fit, and lead to one with this code. What
 * only looks like an address may be one of a sanitizer's own. */
__attribute__((noinline, no_sanitize_address))
static const char *trace_at(const char *place, uint32_t number, uint64_t mcode)
{
        const char *array = LS_READ(const char *, place, 0), *trace;
        uint32_t next = LS_READ(uint32_t, place, 8), n = LS_READ(uint32_t, place, 12);

        if (n <= number || n > 65536 || next > n)
                return NULL;
        if (!may_point(array) || !ls_readable(array + 8 * (size_t)number, 8))
                return NULL;
        trace = LS_READ(const char *, array, 8 * (size_t)number);
        if (!may_point(trace) || !ls_readable(trace, LS_TR_SIZE))
                return NULL;
        if (LS_READ(uint16_t, trace, LS_TR_NUMBER) != number ||
            LS_READ(uint64_t, trace, LS_TR_MCODE) != mcode)
                return NULL;
        return trace;
}

static void find_traces(uint32_t number, uint64_t mcode)
{
        const char *state = probe.global + ls_jit_facts.at.state;
        unsigned n = 0;

        for (unsigned i = ls_jit_facts.at.pc / 8; i < STATE_WORDS; i++) {
                if (!trace_at(state + 8 * i, number, mcode))
                        continue;
                ls_jit_facts.at.traces = 8 * i;
                ls_jit_facts.at.ntraces = 8 * i + 12;
                n++;
        }
        if (n != 1)
                failed("the array of traces is not in the JIT state");
}

/* Exit stubs are only needed for the ticks on the way out of a trace: without them these are less
 * exact. */
static void find_stubs(uint64_t stub)
{
        const char *state = probe.global + ls_jit_facts.at.state;
        const uint8_t *code = (const uint8_t *)(uintptr_t)stub;
        unsigned n = 0;
        int32_t rel;

        for (unsigned i = 0; i < STATE_WORDS; i++)
                if (LS_READ(uint64_t, state, 8 * i) == stub) {
                        ls_jit_facts.at.stubs = 8 * i;
                        n++;
                }
        if (n != 1 || !ls_readable(code, LS_STUBS_SIZE) || code[0] != 0x6a ||
            code[LS_STUB_SIZE] != 0x6a || code[LS_STUB_SIZE + 1] != 1 ||
            code[LS_STUB_HIGH] != 0x6a || code[LS_STUB_JUMP] != 0xe9) {
                ls_jit_facts.at.stubs = 0;
                return;
        }
        memcpy(&rel, code + LS_STUB_JUMP + 1, 4);
        ls_jit_facts.at.exit_handler = (uintptr_t)(code + LS_STUBS_SIZE + rel);
}

static const char *trace_of(uint32_t number)
{
        const char *state = probe.global + ls_jit_facts.at.state;

        return number && number < LS_READ(uint32_t, state, ls_jit_facts.at.ntraces)
                       ? LS_READ(const char *, LS_READ(const char *, state, ls_jit_facts.at.traces),
                                 8 * (size_t)number)
                       : NULL;
}

static uint32_t root_of(uint32_t number)
{
        uint32_t parent = number < MOST_TRACES ? probe.parent[number] : 0;
        const char *trace = parent ? trace_of(parent) : NULL;

        return !trace                                 ? 0
               : LS_READ(uint16_t, trace, LS_TR_ROOT) ? LS_READ(uint16_t, trace, LS_TR_ROOT)
                                                      : parent;
}

static void compare_link(lua_State *L, const char *t)
{
        const char *kind = ls_lua.lua_tolstring(L, 5, NULL);
        uint8_t number = LS_READ(uint8_t, t, LS_TR_LINKTYPE);

        if (LS_READ(uint16_t, t, LS_TR_ROOT) != root_of(number_at(L, 1)) ||
            LS_READ(uint16_t, t, LS_TR_LINK) != number_at(L, 4) ||
            (!strcmp(kind, "root") && number != 1) || (!strcmp(kind, "loop") && number != 2))
                failed("the root and the link of a trace are not where they were expected");
        if (!strcmp(kind, "loop") && number_at(L, 8))
                probe.loop = number_at(L, 1);
}

static void compare_trace(lua_State *L, const char *t)
{
        uint64_t mcode = (uint64_t)(int64_t)ls_lua.lua_tonumber(L, 7);
        size_t size = 0;
        const char *code = ls_lua.lua_tolstring(L, 6, &size), *pt, *pc;

        if (!t || LS_READ(uint16_t, t, LS_TR_NUMBER) != number_at(L, 1) ||
            LS_READ(uint64_t, t, LS_TR_MCODE) != mcode ||
            LS_READ(uint32_t, t, LS_TR_MCODE_SIZE) != size || !code ||
            memcmp((const void *)(uintptr_t)mcode, code, size)) {
                failed("the code of a trace is not where it was expected");
                return;
        }
        if (LS_READ(uint32_t, t, LS_TR_NINS) - LS_REF_BIAS != number_at(L, 2) + 1 ||
            LS_READ(uint16_t, t, LS_TR_NSNAP) != number_at(L, 3) ||
            LS_READ(uint32_t, t, LS_TR_MCLOOP) != number_at(L, 8) ||
            LS_REF_BIAS - LS_READ(uint32_t, t, LS_TR_NK) != number_at(L, 10))
                failed("the counts of a trace are not where they were expected");
        compare_link(L, t);
        pt = LS_READ(const char *, t, LS_TR_STARTPT);
        pc = LS_READ(const char *, t, LS_TR_STARTPC);
        if (!may_point(pt) || !ls_readable(pt, LS_PT_SIZE) || !ls_pt_has_pc(pt, pc + 4))
                failed("the start of a trace is not where it was expected");
}

/* compare(tr, nins, nexit, link, linktype, mcode, address, loop, stub, nk): returns 1 for a side
 * trace. */
static int compare(lua_State *L)
{
        uint32_t number = number_at(L, 1);

        if (!probe.why && !ls_jit_facts.at.traces) {
                find_traces(number, (uint64_t)(int64_t)ls_lua.lua_tonumber(L, 7));
                find_stubs((uint64_t)(int64_t)ls_lua.lua_tonumber(L, 9));
        }
        if (!probe.why)
                compare_trace(L, trace_of(number));
        if (probe.why || !root_of(number))
                return 0;
        ls_lua.lua_pushboolean(L, 1);
        return 1;
}

/* compare_snap(tr, sn, ref, nslots, nentries): besides, the bytecode of a root trace's first is in
 * the function that the trace starts in. */
static int compare_snap(lua_State *L)
{
        const char *t = probe.why ? NULL : trace_of(number_at(L, 1)), *snap, *map, *pt;
        uint64_t pc;

        if (!t)
                return 0;
        snap = LS_READ(const char *, t, LS_TR_SNAP) + LS_SNAP_SIZE * (size_t)number_at(L, 2);
        if (!ls_readable(snap, LS_SNAP_SIZE) ||
            LS_READ(uint16_t, snap, LS_SNAP_REF) - LS_REF_BIAS != number_at(L, 3) ||
            LS_READ(uint8_t, snap, LS_SNAP_NSLOTS) != number_at(L, 4) ||
            LS_READ(uint8_t, snap, LS_SNAP_NENT) != number_at(L, 5)) {
                failed("the snapshots of a trace are not where they were expected");
                return 0;
        }
        map = LS_READ(const char *, t, LS_TR_SNAPMAP) +
              4 * (size_t)LS_READ(uint32_t, snap, LS_SNAP_MAPOFS);
        if (!ls_readable(map + 4 * (size_t)number_at(L, 5), 8)) {
                failed("the entries of a snapshot are not where they were expected");
                return 0;
        }
        memcpy(&pc, map + 4 * (size_t)number_at(L, 5), 8);
        pc >>= 8;
        pt = LS_READ(const char *, t, LS_TR_STARTPT);
        if (!LS_READ(uint16_t, t, LS_TR_ROOT) && number_at(L, 2) == 0 &&
            !ls_pt_has_pc(pt, (const char *)(uintptr_t)pc + 4))
                failed("the bytecode of a snapshot is not where it was expected");
        return 0;
}

/* compare_ir(tr, ref, m, ot, op1, op2, prev): prev holds register and spill slot. */
static int compare_ir(lua_State *L)
{
        const char *t = probe.why ? NULL : trace_of(number_at(L, 1)), *ir;

        if (!t)
                return 0;
        ir = LS_READ(const char *, t, LS_TR_IR) +
             LS_IR_SIZE * (size_t)(LS_REF_BIAS + number_at(L, 2));
        if (!ls_readable(ir, LS_IR_SIZE))
                failed("the intermediate code is not where it was expected");
        else if (ls_lua.lua_gettop(L) >= 7 &&
                 (LS_READ(uint16_t, ir, LS_IR_TYPE) != number_at(L, 4) ||
                  LS_READ(uint16_t, ir, 6) != number_at(L, 7)))
                failed("the intermediate code is laid out differently");
        return 0;
}

/* 1 when a word is the base of a frame that runs the function which a trace starts in. */
static int is_base_of(uint64_t word, const char *root)
{
        const char *base = (const char *)(uintptr_t)word, *fn;

        if (!may_point(base) || !ls_readable(base - 16, 8))
                return 0;
        fn = ls_gcptr(LS_READ(uint64_t, base, -16));
        return ls_istype(LS_READ(uint64_t, base, -16), LS_T_FUNC) && ls_readable(fn, LS_FN_ADDR) &&
               ls_fn_is_lua(fn) && ls_fn_proto(fn) == LS_READ(const char *, root, LS_TR_STARTPT);
}

static void look_for_base(const char *t)
{
        const char *root =
                LS_READ(uint16_t, t, LS_TR_ROOT) ? trace_of(LS_READ(uint16_t, t, LS_TR_ROOT)) : t;

        for (unsigned i = 0; i < GLOBAL_WORDS; i++)
                if (!probe.not_base[i] &&
                    (!root || !is_base_of(LS_READ(uint64_t, probe.global, 8 * i), root)))
                        probe.not_base[i] = 1;
}

/* In place of the VM's allocator while compiled code runs that allocates: it is called from
 * there. */
static void *alloc(void *data, void *p, size_t old, size_t new)
{
        const char *L = LS_READ(const char *, probe.global, ls_vm_facts.main_offset), *frame, *back,
                   *t;
        int32_t number = LS_READ(int32_t, probe.global, ls_vm_facts.vmstate_offset);

        (void)data;
        t = number > 0 ? trace_of((uint32_t)number) : NULL;
        if (!probe.why && !p && t) {
                look_for_base(t);
                frame = (const char *)(LS_READ(uintptr_t, L, LS_L_CFRAME) & ~(uintptr_t)3);
                back = LS_READ(const char *,
                               frame - LS_TRACE_SAVED - LS_READ(uint16_t, t, LS_TR_SPADJUST), -8);
                if ((uintptr_t)back - 1 - LS_READ(uintptr_t, t, LS_TR_MCODE) >=
                    LS_READ(uint32_t, t, LS_TR_MCODE_SIZE))
                        failed("the return address of compiled code is not where it was expected");
                probe.calls_out++;
        }
        return probe.alloc(probe.alloc_data, p, old, new);
}

/* jit_base is NULL while no compiled code runs. */
static int begin_calls_out(lua_State *L)
{
        for (unsigned i = 0; i < GLOBAL_WORDS; i++)
                probe.not_base[i] = LS_READ(uint64_t, probe.global, 8 * i) != 0;
        probe.alloc = (void *(*)(void *, void *, size_t,
                                 size_t))ls_lua.lua_getallocf(L, &probe.alloc_data);
        ls_lua.lua_setallocf(L, alloc, NULL);
        return 0;
}

static int end_calls_out(lua_State *L)
{
        unsigned n = 0;

        ls_lua.lua_setallocf(L, probe.alloc, probe.alloc_data);
        probe.alloc = NULL;
        for (unsigned i = 0; i < GLOBAL_WORDS; i++)
                if (!probe.not_base[i]) {
                        ls_jit_facts.at.jit_base = 8 * i;
                        n++;
                }
        if (!probe.calls_out)
                failed("compiled code did not call out as expected");
        else if (n != 1)
                failed("the base of compiled code is not in the global state");
        return 0;
}

/* switched(on): the word of the JIT state whose lowest bit says whether the compiler is on. */
static int switched(lua_State *L)
{
        const char *state = probe.global + ls_jit_facts.at.state;
        uint32_t is_on = number_at(L, 1);
        unsigned n = 0, at = 0;

        for (unsigned i = 0; i < 2 * STATE_WORDS; i++) {
                uint32_t word = LS_READ(uint32_t, state, 4 * i);

                if (!probe.switches)
                        probe.on[i] = word;
                if ((word & 1) != is_on || (word | 1) != probe.on[i])
                        probe.not_flags[i] = 1;
                if (!probe.not_flags[i]) {
                        at = 4 * i;
                        n++;
                }
        }
        if (++probe.switches == 3)
                ls_jit_facts.at.flags = n == 1 ? at : 0;
        return 0;
}

/* parameters(maxtrace, maxmcode, hotloop, hotexit): their places, by values that nothing else
 * has. */
static int parameters(lua_State *L)
{
        unsigned *const places[] = { &ls_jit_facts.at.maxtrace, &ls_jit_facts.at.maxmcode,
                                     &ls_jit_facts.at.hotloop, &ls_jit_facts.at.hotexit };
        const char *state = probe.global + ls_jit_facts.at.state;

        for (unsigned p = 0; p < sizeof places / sizeof *places; p++) {
                uint32_t want = number_at(L, (int)p + 1);
                unsigned n = 0;

                for (unsigned i = 0; i < 2 * STATE_WORDS; i++)
                        if (LS_READ(uint32_t, state, 4 * i) == want) {
                                *places[p] = 4 * i;
                                n++;
                        }
                if (n != 1)
                        *places[p] = 0;
        }
        return 0;
}

/* address(jit.attach, debug.setmetatable or nil) */
static int address(lua_State *L)
{
        void *attach = ls_lua.lua_tocfunction(L, 1);

        if (attach != (void *)ls_jit_on_attach && attach != attach_patch.target) {
                attach_patch.target = attach;
                attach_patch.original = NULL;
        }
        ls_jit_facts.set_metatable = ls_lua.lua_tocfunction(L, 2);
        return 0;
}

static int have_api(void)
{
        return ls_lua.lua_tonumber && ls_lua.lua_tolstring && ls_lua.lua_tocfunction &&
               ls_lua.lua_getallocf && ls_lua.lua_setallocf && ls_lua.lua_call &&
               ls_lua.lua_cpcall && ls_lua.lua_rawequal && ls_lua.lua_rawget && ls_lua.lua_rawset &&
               ls_lua.lua_pushlightuserdata && ls_lua.lua_insert && ls_lua.lua_pushstring &&
               ls_lua.lua_pushvalue && ls_lua.lua_gettop && ls_lua.lua_type && ls_lua.lua_pushnil;
}

/* Runs the chunk, which returns why it gave up, and what keeps its traces alive: this stays on the
 * stack. */
static void run(lua_State *L)
{
        static int (*const functions[])(lua_State *) = { on_record,       on_trace,      compare,
                                                         compare_snap,    compare_ir,    address,
                                                         begin_calls_out, end_calls_out, switched,
                                                         parameters };
        enum { N = sizeof functions / sizeof *functions };
        const char *gave_up;

        if (ls_lua.luaL_loadbuffer(L, probe_source, sizeof probe_source - 1, "=luasample")) {
                failed("a chunk could not be loaded");
                return;
        }
        for (int i = 0; i < N; i++)
                ls_lua.lua_pushcclosure(L, functions[i], 0);
        if (ls_lua.lua_pcall(L, N, 2, 0)) {
                if (probe.alloc)
                        end_calls_out(L);
                failed("a known loop did not run as expected");
        } else if ((gave_up = ls_lua.lua_tolstring(L, -2, NULL))) {
                failed(strstr(gave_up, "off") ? "the JIT compiler is off"
                                              : "a known loop was not compiled");
        } else if (!probe.why && (probe.records < 20 || !probe.loop)) {
                failed("LuaJIT did not tell of its traces as expected");
        }
}

/* The program's own jit.attach must not take our handlers' place. */
static void patch_attach(void)
{
        static char why[96];

        if (!attach_patch.original)
                ls_patch_install(&attach_patch, 1, PROT_READ | PROT_EXEC, 0);
        ls_jit_facts.attach = (int (*)(lua_State *))attach_patch.original;
        if (ls_jit_facts.attach)
                return;
        snprintf(why, sizeof why, "jit.attach cannot be shared with the program: %s",
                 attach_patch.why);
        failed(why);
}

void ls_jit_probe(lua_State *L)
{
        int top;

        memset(&probe, 0, sizeof probe);
        ls_jit_facts.traces_known = 0;
        ls_jit_facts.why = "the runtime exports too little of Lua's API";
        if (!have_api())
                return;
        ls_jit_facts.why = NULL;
        probe.global = LS_READ(const char *, L, LS_L_GLREF);
        memset(&ls_jit_facts.at, 0, sizeof ls_jit_facts.at);
        ls_jit_facts.at.vmstate = ls_vm_facts.vmstate_offset;
        top = ls_lua.lua_gettop(L);
        run(L);
        if (!probe.why && !ls_agent.attached)
                patch_attach();
        ls_jit_facts.traces_known = !probe.why;
        ls_jit_facts.why = probe.why ? probe.why : ls_jit_find_irnames(L, trace_of(probe.loop));
        ls_lua.lua_settop(L, top);
}

const char *ls_jit_why_not(void)
{
        return ls_jit_facts.why;
}

unsigned ls_jit_traces_seen(void)
{
        return ls_jit_facts.traces_known ? ls_jit_facts.at.state + ls_jit_facts.at.traces : 0;
}

unsigned ls_jit_base_seen(void)
{
        return ls_jit_facts.traces_known ? ls_jit_facts.at.jit_base : 0;
}
