/* Probes and verifies the layout of a LuaJIT build in a throw-away VM. See probe.h. */

#include "libsample/vm/probe.h"

#include "libsample/agent.h"
#include "libsample/exact/exact.h"
#include "libsample/handler/names_search.h"
#include "libsample/jit/jit.h"
#include "libsample/lua_debug.h"
#include "libsample/pages.h"

__thread int ls_vm_probing;

/* Runs check() below at known places: nested calls, a vararg function, a C function between Lua
 * functions, inside a coroutine resumed by resume and one by wrap, a metamethod, and a handler of
 * errors. */
static const char probe_source[] =
        "local check, resume, create, wrap, pcall, setmeta, ipairs, xpcall = ...\n"
        "local function rec(n)\n"
        "  if n == 0 then check() else rec(n - 1) end\n"
        "  return n\n"
        "end\n"
        "local function va(...) rec(3) return ... end\n"
        "va(1, 2, 3)\n"
        "pcall(va, 1)\n"
        "resume(create(function() rec(2) end))\n"
        "wrap(function() va(2) return 1 end)()\n"
        "local o = setmeta({}, { __index = function(t, k) rec(1) return k end })\n"
        "local x = o.field\n"
        "xpcall(function()\n"
        "  local a\n"
        "  a = a + 1\n"
        "end, check)\n"
        "check(wrap(va), (ipairs({})))\n";

/* Bytecode at known places. */
static const char ops_source[] =
        "local t = {} t.a = function() end y = function() end for i = 1, 2 do end";
static const char more_ops_source[] =
        "local a, b = ... local c = a local d = b.x local e = y return function() return a end";

#define GLOBAL_WORDS 160                /* of global_State that are searched: 1280 bytes */

struct probe {
        const lua_State *main;
        const char *global;
        uint8_t maybe_cur_L[GLOBAL_WORDS];      /* 1 = held the running thread at each check so
                                                 * far */
        unsigned checks, returns;
        uint8_t set_behind[GLOBAL_WORDS];       /* 1 = the word after it was not 0 at some check */
        int jit_base_seen;
        struct ls_walk walk;
        const char *why;
};
static struct probe *probe;

static void failed(const char *why)
{
        if (!probe->why)
                probe->why = why;
}

/* Compares one frame that was read raw with what Lua's own API says of it. */
static void check_frame(lua_State *L, int level, const struct ls_wframe *frame)
{
        struct lua_Debug ar;

        if (!ls_lua.lua_getstack(L, level, &ar)) {
                failed("frames are counted differently");
                return;
        }
        ls_lua.lua_getinfo(L, "Slf", &ar);
        if (ls_lua.lua_topointer(L, -1) != frame->fn)
                failed("a function is not where it was expected");
        ls_lua.lua_settop(L, -2);
        if (!ls_fn_is_lua(frame->fn)) {
                if (ar.what[0] != 'C')
                        failed("a C frame was read as Lua");
                return;
        }
        const char *pt = ls_fn_proto(frame->fn), *name = LS_READ(const char *, pt, LS_PT_CHUNKNAME);

        if (ls_str_data(name) != ar.source || ls_str_len(name) != strlen(ar.source))
                failed("the chunk name is not where it was expected");
        if (LS_READ(int32_t, pt, LS_PT_FIRSTLINE) != ar.linedefined ||
            LS_READ(int32_t, pt, LS_PT_FIRSTLINE) + LS_READ(int32_t, pt, LS_PT_NUMLINE) !=
                    ar.lastlinedefined)
                failed("the line of a definition differs");
        if (!frame->pc || (int)ls_pt_line(pt, frame->pc) != ar.currentline)
                failed("the current line differs");
}

static void check_global(const lua_State *L)
{
        for (unsigned i = 0; i + 1 < GLOBAL_WORDS; i++)
                if (LS_READ(const lua_State *, probe->global, i * 8) != L)
                        probe->maybe_cur_L[i] = 0;
                else if (LS_READ(uint64_t, probe->global, i * 8 + 8))
                        probe->set_behind[i] = 1;
        if (LS_READ(int32_t, probe->global, ls_vm_facts.vmstate_offset) != ~1)
                failed("the VM state does not say C while a C function runs");
}

/* Inside a coroutine: the word at the place of the return address is one of Lua's own resumes. */
static void check_resumer(const lua_State *L)
{
        const char *cf = (const char *)(LS_READ(uintptr_t, L, LS_L_CFRAME) & ~(uintptr_t)3), *prev;

        while ((prev = (const char *)(LS_READ(uintptr_t, cf, LS_CF_PREV) & ~(uintptr_t)3)))
                cf = prev;
        const lua_State *resumer = LS_READ(const lua_State *, cf, LS_CF_SIZE + LS_CF_L);

        if (resumer != probe->main || (LS_READ(uintptr_t, resumer, LS_L_CFRAME) & ~(uintptr_t)3) !=
                                              (uintptr_t)(cf + LS_CF_SIZE)) {
                failed("the resumer of a coroutine is not where it was expected");
                return;
        }
        const char *back = LS_READ(const char *, cf, LS_CF_RETURN);

        for (unsigned i = 0; i < probe->returns; i++)
                if (ls_vm_facts.resume_return[i] == back)
                        return;
        if (probe->returns < 3)
                ls_vm_facts.resume_return[probe->returns++] = back;
}

static int check(lua_State *L)
{
        struct lua_Debug ar;
        int level = 0;
        size_t own;

        probe->checks++;
        check_global(L);
        if (ls_lua.lua_gettop(L) == 2) {
                ls_vm_facts.ffid_wrap_aux =
                        LS_READ(uint8_t, ls_lua.lua_topointer(L, 1), LS_FN_FFID);
                ls_vm_facts.ffid_ipairs_aux =
                        LS_READ(uint8_t, ls_lua.lua_topointer(L, 2), LS_FN_FFID);
        }
        if (L != probe->main)
                check_resumer(L);
        if (ls_walk_stack(&probe->walk, L)) {
                failed("a stack could not be read");
                return 0;
        }
        own = probe->walk.body + 1;
        for (size_t i = 0; i < own; i++)
                check_frame(L, level++, &probe->walk.frames[i]);
        if (ls_lua.lua_getstack(L, level, &ar))
                failed("frames are missing");
        if (L != probe->main && probe->walk.n <= own)
                failed("the resumer's frames are missing");
        return 0;
}

/* A table with an array and a hash part, read raw. */
static void check_table(lua_State *L)
{
        ls_lua.lua_createtable(L, 4, 4);
        for (int i = 1; i <= 4; i++) {
                ls_lua.lua_pushnumber(L, 100 + i);
                ls_lua.lua_rawseti(L, -2, i);
        }
        ls_lua.lua_pushlstring(L, "value", 5);
        ls_lua.lua_setfield(L, -2, "key");
        const char *t = ls_lua.lua_topointer(L, -1);
        uint32_t asize = LS_READ(uint32_t, t, LS_TAB_ASIZE),
                 hmask = LS_READ(uint32_t, t, LS_TAB_HMASK), found = 0;
        double three = asize > 3 ? LS_READ(double, LS_READ(const char *, t, LS_TAB_ARRAY), 3 * 8)
                                 : 0;
        const char *node = LS_READ(const char *, t, LS_TAB_NODE);

        for (uint32_t i = 0; hmask < 64 && i <= hmask; i++, node += LS_NODE_SIZE) {
                uint64_t key = LS_READ(uint64_t, node, LS_NODE_KEY),
                         val = LS_READ(uint64_t, node, LS_NODE_VAL);

                if (ls_istype(key, LS_T_STR) && ls_istype(val, LS_T_STR) &&
                    ls_str_len(ls_gcptr(key)) == 3 &&
                    !memcmp(ls_str_data(ls_gcptr(key)), "key", 3) &&
                    !memcmp(ls_str_data(ls_gcptr(val)), "value", 6))
                        found++;
        }
        if (asize != 5 || three != 103.0 || found != 1)
                failed("a table is laid out differently");
        ls_lua.lua_settop(L, -2);
}

static uint8_t op_at(const char *pt, unsigned i)
{
        return LS_READ(uint8_t, pt, LS_PT_SIZE + 4 * i);
}

/* FUNCV TNEW FNEW TSETS FNEW GSET KSHORT KSHORT KSHORT FORI FORL RET0 */
static void check_ops(lua_State *L)
{
        if (ls_lua.luaL_loadbuffer(L, ops_source, sizeof ops_source - 1, "=luasample")) {
                failed("a chunk could not be loaded");
                return;
        }
        const char *pt = ls_fn_proto(ls_lua.lua_topointer(L, -1));

        ls_vm_facts.op_fnew = op_at(pt, 2);
        ls_vm_facts.op_tsets = op_at(pt, 3);
        ls_vm_facts.op_gset = op_at(pt, 5);
        ls_vm_facts.op_fori = op_at(pt, 9);
        if (LS_READ(uint32_t, pt, LS_PT_SIZEBC) != 12 || op_at(pt, 4) != ls_vm_facts.op_fnew ||
            op_at(pt, 10) != ls_vm_facts.op_fori + 2 || op_at(pt, 11) != ls_vm_facts.op_fori - 2 ||
            op_at(pt, 0) != ls_vm_facts.op_fori + 15)
                failed("bytecode is numbered differently");
        ls_lua.lua_settop(L, -2);
}

/* FUNCV VARG MOV TGETS GGET FNEW UCLO RET1, and FUNCF UGET RET1. */
static void check_more_ops(lua_State *L)
{
        if (ls_lua.luaL_loadbuffer(L, more_ops_source, sizeof more_ops_source - 1, "=luasample")) {
                failed("a chunk could not be loaded");
                return;
        }
        const char *pt = ls_fn_proto(ls_lua.lua_topointer(L, -1));
        const uint64_t *k = LS_READ(const uint64_t *, pt, LS_PT_K);
        const char *child = NULL;

        for (uint32_t i = 0; i < LS_READ(uint32_t, pt, LS_PT_SIZEKGC); i++)
                if (LS_READ(uint8_t, (const char *)(uintptr_t)k[-1 - (int64_t)i], LS_GC_TYPE) ==
                    LS_T_PROTO)
                        child = (const char *)(uintptr_t)k[-1 - (int64_t)i];
        ls_vm_facts.op_mov = op_at(pt, 2);
        ls_vm_facts.op_tgets = op_at(pt, 3);
        ls_vm_facts.op_gget = op_at(pt, 4);
        if (!child || op_at(pt, 5) != ls_vm_facts.op_fnew ||
            LS_READ(uint8_t, child, LS_PT_SIZEUV) != 1 ||
            LS_READ(uint32_t, pt, LS_PT_SIZEPT) <
                    LS_PT_SIZE + 4 * LS_READ(uint32_t, pt, LS_PT_SIZEBC))
                failed("bytecode is numbered differently");
        else
                ls_vm_facts.op_uget = op_at(child, 1);
        ls_lua.lua_settop(L, -2);
}

static void find_main(const lua_State *L)
{
        probe->global = LS_READ(const char *, L, LS_L_GLREF);
        for (unsigned i = 1; i < GLOBAL_WORDS && !ls_vm_facts.main_offset; i++)
                if (LS_READ(const lua_State *, probe->global, i * 8) == L)
                        ls_vm_facts.main_offset = i * 8;
        ls_vm_facts.vmstate_offset = ls_vm_facts.main_offset - 8;
        ls_vm_facts.main_to_global = (uint64_t)((uintptr_t)probe->global - (uintptr_t)L);
        if (!ls_vm_facts.main_offset)
                failed("the main thread is not in the global state");
        memset(probe->maybe_cur_L, 1, sizeof probe->maybe_cur_L - 1);
}

/* Without it methods of userdata have no names. */
static void find_registry(lua_State *L)
{
        uint64_t registry = ls_tagged(ls_lua.lua_topointer(L, LS_LUA_REGISTRYINDEX), LS_T_TAB);

        for (unsigned i = 1; i < GLOBAL_WORDS && !ls_vm_facts.registry_offset; i++)
                if (LS_READ(uint64_t, probe->global, i * 8) == registry)
                        ls_vm_facts.registry_offset = i * 8;
}

/* The word that holds the newest object, whichever that is. Without it only the coroutines that
 * run are found from outside. */
static void find_objects(lua_State *L)
{
        const char *newest[3];
        uint8_t maybe[GLOBAL_WORDS];
        unsigned found = 0;

        memset(maybe, 1, sizeof maybe);
        for (unsigned n = 0; n < 3; n++) {
                ls_lua.lua_createtable(L, 0, 0);
                newest[n] = ls_lua.lua_topointer(L, -1);
                for (unsigned i = 0; i < GLOBAL_WORDS; i++)
                        if (LS_READ(const char *, probe->global, i * 8) != newest[n])
                                maybe[i] = 0;
        }
        for (unsigned i = 0; i < GLOBAL_WORDS; i++)
                if (maybe[i] && LS_READ(const char *, newest[2], 0) == newest[1]) {
                        ls_vm_facts.objects_offset = i * 8;
                        found++;
                }
        if (found != 1)
                ls_vm_facts.objects_offset = 0;
        ls_lua.lua_settop(L, -4);
}

/* What lua_gc can be asked. */
enum { GC_STOP = 0, GC_RESTART = 1, GC_COLLECT = 2, GC_COUNT = 3, GC_COUNTB = 4, GC_STEP = 5 };

static int counts_heap(lua_State *L)
{
        uint64_t kib = (uint64_t)ls_lua.lua_gc(L, GC_COUNT, 0),
                 rest = (uint64_t)ls_lua.lua_gc(L, GC_COUNTB, 0);

        return LS_READ(uint64_t, probe->global, LS_G_TOTAL) == (kib << 10) + rest;
}

static uint8_t collector_byte(unsigned offset)
{
        return LS_READ(uint8_t, probe->global, offset);
}

/* Size, threshold, colour and phase, each by what changes it. Without them a recording has no heap
 * over time. */
static void find_collector(lua_State *L)
{
        uint64_t stopped, total;
        uint8_t white;
        int good;

        if (!ls_lua.lua_gc)
                return;
        ls_lua.lua_gc(L, GC_COLLECT, 0);
        good = counts_heap(L) && collector_byte(LS_G_PHASE) == LS_GC_PAUSE;
        white = collector_byte(LS_G_WHITE) & LS_GC_WHITES;
        ls_lua.lua_gc(L, GC_COLLECT, 0);
        good &= (white == 1 || white == 2) &&
                (collector_byte(LS_G_WHITE) & LS_GC_WHITES) == (white ^ LS_GC_WHITES);
        ls_lua.lua_createtable(L, 1000, 0);
        good &= counts_heap(L);
        ls_lua.lua_settop(L, -2);
        ls_lua.lua_gc(L, GC_STOP, 0);
        stopped = LS_READ(uint64_t, probe->global, LS_G_THRESHOLD);
        ls_lua.lua_gc(L, GC_RESTART, 0);
        total = LS_READ(uint64_t, probe->global, LS_G_TOTAL);
        good &= stopped > UINT64_C(1) << 40 &&
                LS_READ(uint64_t, probe->global, LS_G_THRESHOLD) == total;
        ls_lua.lua_gc(L, GC_STEP, 0);
        good &= collector_byte(LS_G_PHASE) == LS_GC_MARK;
        ls_vm_facts.collector = (uint8_t)good;
}

static void no_hook(lua_State *L, struct lua_Debug *ar)
{
        (void)L, (void)ar;
}

/* The two bytes that follow what is set with lua_sethook. */
static void find_hookmask(lua_State *L)
{
        static const struct {
                uint8_t mask, dispatch;
        } steps[] = { { 1, 1 }, { 2, 2 }, { 4, 4 }, { 8, 4 }, { 3, 3 }, { 0, 0 } };
        uint8_t maybe[GLOBAL_WORDS * 8];
        unsigned found = 0;

        memset(maybe, 1, sizeof maybe);
        for (unsigned s = 0; s < sizeof steps / sizeof *steps; s++) {
                ls_lua.lua_sethook(L, no_hook, steps[s].mask, 1000000);
                for (unsigned i = 0; i + 1 < sizeof maybe; i++)
                        if (LS_READ(uint8_t, probe->global, i) != steps[s].mask ||
                            (LS_READ(uint8_t, probe->global, i + 1) & 7) != steps[s].dispatch)
                                maybe[i] = 0;
        }
        for (unsigned i = 1; i + 1 < sizeof maybe; i++)
                if (maybe[i]) {
                        ls_vm_facts.hookmask_offset = i;
                        found++;
                }
        if (found != 1)
                failed("the hook mask is not in the global state");
}

static void push_base_function(lua_State *L, const char *table, const char *name)
{
        if (table) {
                ls_lua.lua_getfield(L, LS_LUA_GLOBALSINDEX, table);
                ls_lua.lua_getfield(L, -1, name);
                ls_lua.lua_remove(L, -2);
        } else {
                ls_lua.lua_getfield(L, LS_LUA_GLOBALSINDEX, name);
        }
}

static void read_version(lua_State *L)
{
        const char *version;

        memcpy(ls_vm_facts.version, "LuaJIT", 7);
        if (!ls_lua.luaopen_jit || !ls_lua.lua_tolstring)
                return;
        ls_lua.lua_pushcclosure(L, ls_lua.luaopen_jit, 0);
        if (ls_lua.lua_pcall(L, 0, 0, 0) == 0) {
                push_base_function(L, "jit", "version");
                version = ls_lua.lua_tolstring(L, -1, NULL);
                if (version)
                        strncpy(ls_vm_facts.version, version, sizeof ls_vm_facts.version - 1);
        }
        ls_lua.lua_settop(L, 0);
}

/* Names of the builtins, where no program has given them others. Protected; those that cannot be
 * had here are looked for in the program's VM. */
static int read_builtins(lua_State *L)
{
        static const char iterators[] = "return (string.gmatch('', ''))";
        const char *fn;
        static const char open_hidden[] =
                "for _, name in ipairs({'ffi', 'jit.util', 'jit.profile'}) do\n"
                "  local open = package.preload[name]\n"
                "  if open then package.loaded[name] = open(name) end\n"
                "end\n"
                "local ffi, loaded = package.loaded.ffi, package.loaded\n"
                "if not ffi then return end\n"
                "loaded['ffi.clib'] = debug.getmetatable(ffi.C)\n"
                "loaded['ffi.cdata'] = debug.getmetatable(ffi.new('int'))\n"
                "return loaded['ffi.cdata'].__call\n";

        ls_lua.luaL_openlibs(L);
        ls_lua.lua_settop(L, 0);
        if (!ls_lua.luaL_loadbuffer(L, open_hidden, sizeof open_hidden - 1, "=luasample") &&
            !ls_lua.lua_pcall(L, 0, 1, 0) && (fn = ls_lua.lua_topointer(L, -1)) &&
            LS_READ(uint8_t, fn, LS_GC_TYPE) == LS_T_FUNC &&
            LS_READ(uint8_t, fn, LS_FN_FFID) > LS_FFID_C)
                ls_vm_facts.ffid_ffi_call = LS_READ(uint8_t, fn, LS_FN_FFID);
        ls_names_builtins(L);
        ls_lua.lua_settop(L, 0);
        if (!ls_lua.luaL_loadbuffer(L, iterators, sizeof iterators - 1, "=luasample") &&
            !ls_lua.lua_pcall(L, 0, 1, 0) && (fn = ls_lua.lua_topointer(L, -1)) &&
            LS_READ(uint8_t, fn, LS_GC_TYPE) == LS_T_FUNC)
                ls_vm_facts.ffid_gmatch_aux = LS_READ(uint8_t, fn, LS_FN_FFID);
        ls_names_builtins(L);
        return 0;
}

static int probe_jit(lua_State *L)
{
        ls_jit_probe(L);
        if (ls_agent.shm && ls_agent.shm->exact)
                ls_exact_probe(L);
        return 0;
}

/* Runs protected: an error, such as no memory, only fails the probe. */
static int run(lua_State *L)
{
        ls_lua.lua_pushcclosure(L, ls_lua.luaopen_base, 0);
        ls_lua.lua_pcall(L, 0, 0, 0);
        read_version(L);
        find_main(L);
        if (probe->why)
                return 0;
        check_table(L);
        find_registry(L);
        find_objects(L);
        find_collector(L);
        check_ops(L);
        check_more_ops(L);
        find_hookmask(L);
        if (ls_lua.luaL_loadbuffer(L, probe_source, sizeof probe_source - 1, "=luasample")) {
                failed("a chunk could not be loaded");
                return 0;
        }
        ls_lua.lua_pushcclosure(L, check, 0);
        push_base_function(L, "coroutine", "resume");
        push_base_function(L, "coroutine", "create");
        push_base_function(L, "coroutine", "wrap");
        push_base_function(L, NULL, "pcall");
        push_base_function(L, NULL, "setmetatable");
        push_base_function(L, NULL, "ipairs");
        push_base_function(L, NULL, "xpcall");
        if (ls_lua.lua_pcall(L, 8, 0, 0) || probe->checks != 7)
                failed("a known chunk did not run as expected");
        if (!probe->why && ls_lua.luaL_openlibs) {
                ls_lua.lua_pushcclosure(L, read_builtins, 0);
                ls_lua.lua_pcall(L, 0, 0, 0);
        }
        return 0;
}

/* The word behind cur_L is jit_base: it was NULL at each check, in C functions that the
 * interpreter had called. That it is the base of what compiled code runs on is verified by
 * jit/probe.c where there are traces. */
static void find_jit_base(void)
{
        ls_vm_facts.why_no_walk = "the base of compiled code is not in the global state";
        if (!probe->jit_base_seen)
                ls_vm_facts.jit_base_offset = ls_vm_facts.cur_L_offset + 8;
}

static void find_cur_L(void)
{
        unsigned found = 0;

        for (unsigned i = 0; i < GLOBAL_WORDS; i++)
                if (probe->maybe_cur_L[i] && i * 8 != ls_vm_facts.main_offset) {
                        ls_vm_facts.cur_L_offset = i * 8;
                        probe->jit_base_seen = probe->set_behind[i];
                        found++;
                }
        if (found != 1)
                failed("the running thread is not in the global state");
        find_jit_base();
        if (probe->returns < 1)
                failed("no resume was seen");
}

static int have_api(void)
{
        return ls_lua.luaL_newstate && ls_lua.lua_close && ls_lua.lua_pushcclosure &&
               ls_lua.lua_pcall && ls_lua.luaL_loadbuffer && ls_lua.lua_getstack &&
               ls_lua.lua_getinfo && ls_lua.lua_topointer && ls_lua.lua_getfield &&
               ls_lua.lua_setfield && ls_lua.lua_createtable && ls_lua.lua_rawseti &&
               ls_lua.lua_pushnumber && ls_lua.lua_pushlstring && ls_lua.lua_settop &&
               ls_lua.lua_remove && ls_lua.lua_sethook && ls_lua.luaopen_base;
}

/* Closes the VM of the probe, which gives all its memory back: do such calls come to us? */
static void close_and_watch(lua_State *L)
{
        const void *first =
                           LS_READ(const void *, LS_READ(const char *, L, LS_L_GLREF), LS_G_ALLOCF),
                   *alloc = NULL;
        uint64_t unmaps = atomic_load(&ls_unmaps.begun);
        void *data;

        if (ls_lua.lua_getallocf)
                alloc = (const void *)(uintptr_t)ls_lua.lua_getallocf(L, &data);
        ls_lua.lua_close(L);
        if (!alloc || alloc != first || atomic_load(&ls_unmaps.begun) == unmaps)
                return;
        ls_vm_facts.heap_alloc = alloc;
        atomic_store(&ls_heap_is_watched, 1);
}

void ls_vm_probe(void)
{
        struct probe state = { 0 };
        lua_State *L;

        ls_vm_facts.why = "the runtime exports too little of Lua's API";
        if (!have_api())
                return;
        probe = &state;
        ls_vm_probing = 1;
        L = ls_lua.luaL_newstate();
        ls_vm_facts.why = "no memory for a VM to try things on";
        if (L) {
                state.main = L;
                ls_lua.lua_pushcclosure(L, run, 0);
                if (ls_lua.lua_pcall(L, 0, 0, 0))
                        failed("an error was raised");
                if (!state.why)
                        find_cur_L();
                ls_lua.lua_settop(L, 0);
                ls_lua.lua_pushcclosure(L, probe_jit, 0);
                if (!state.why && ls_lua.luaL_openlibs)
                        ls_lua.lua_pcall(L, 0, 0, 0);
                if (ls_jit_base_seen() && ls_jit_base_seen() != ls_vm_facts.jit_base_offset) {
                        ls_vm_facts.why_no_walk =
                                "the base of compiled code is not where it was expected";
                        ls_vm_facts.jit_base_offset = 0;
                }
                ls_vm_facts.traces_offset = ls_jit_traces_seen();
                if (state.why)
                        ls_lua.lua_close(L);
                else
                        close_and_watch(L);
                ls_vm_facts.why = state.why;
                ls_vm_facts.ok = !state.why;
        }
        ls_vm_probing = 0;
        ls_pages_free(state.walk.frames, state.walk.room * sizeof *state.walk.frames);
        probe = NULL;
}
