/* Writes pictures of a process with a VM (vm_image.h), which is this one: gen_vm FILE FILE. In the
 * first a coroutine's C function runs, in the second one that compiled code has called. The VM has
 * all kinds of objects, and the tables that the agent keeps of it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "libsample/agent.h"
#include "libsample/handler/functions.h"
#include "libsample/handler/ring_writer.h"
#include "libsample/handler/walk.h"
#include "libsample/jit/jit.h"
#include "libsample/jit/facts.h"
#include "libsample/handler/jit_locate.h"
#include "libsample/handler/jit_send.h"
#include "libsample/handler/labels.h"
#include "libsample/rawtab.h"
#include "libsample/handler/ready.h"
#include "libsample/vm/view.h"
#include "libsample/handler/zones.h"
#include "tests/gen/vm_image.h"
#include "tests/unit/vm_agent.h"
#include "libsample/handler/builtins.h"

#define PLACES_MOST 16384u
#define RANGES_MOST 512u
#define EACH_MOST   160u                /* places of one kind */

static struct image_head head;
static struct image_place places[PLACES_MOST];
static struct image_range ranges[RANGES_MOST];
static const char *outputs[2];
static unsigned written;

static struct ls_view view;
static struct ls_vm_labels labels;
static struct ls_vm_zones zones;
static struct ls_vm_ready ready;
static const char *name;                /* GCstr: that of the C function that takes the picture */

static void die(const char *what)
{
        fprintf(stderr, "gen_vm: %s\n", what);
        exit(1);
}

static void add(enum place_kind kind, const void *at, uint64_t size)
{
        static unsigned of_kind[PLACE_KINDS];

        if (!head.n_places)
                memset(of_kind, 0, sizeof of_kind);
        if (head.n_places < PLACES_MOST && size && of_kind[kind]++ < EACH_MOST)
                places[head.n_places++] =
                        (struct image_place){ (uintptr_t)at, kind,
                                              size < 65536 ? (uint32_t)size : 65536 };
}

static void add_object(const char *o)
{
        switch (LS_READ(uint8_t, o, LS_GC_TYPE)) {
        case LS_T_THREAD:
                add(PLACE_STATE, o, LS_L_CFRAME + 16);
                add(PLACE_LUA_STACK, LS_READ(const char *, o, LS_L_STACK),
                    LS_READ(uint64_t, o, LS_L_TOP) - LS_READ(uint64_t, o, LS_L_STACK) + 64);
                break;
        case LS_T_PROTO:
                add(PLACE_PROTO, o, LS_READ(uint32_t, o, LS_PT_SIZEPT));
                add(PLACE_STR, LS_READ(const char *, o, LS_PT_CHUNKNAME), LS_STR_DATA + 16);
                for (uint32_t i = 0; i < LS_READ(uint32_t, o, LS_PT_SIZEKGC) && i < 4; i++) {
                        const char *k = (const char *)(uintptr_t)LS_READ(const uint64_t *, o,
                                                                         LS_PT_K)[-1 - (int64_t)i];

                        if (LS_READ(uint8_t, k, LS_GC_TYPE) == LS_T_STR)
                                add(PLACE_STR, k, LS_STR_DATA + 16);
                }
                break;
        case LS_T_FUNC:
                add(PLACE_FUNC, o, LS_FN_UPVALUES + 8 * LS_READ(uint8_t, o, LS_FN_NUPVALUES));
                for (int i = 0; ls_fn_is_lua(o) && i < LS_READ(uint8_t, o, LS_FN_NUPVALUES); i++)
                        add(PLACE_UPVALUE, LS_READ(const char *, o, LS_FN_UPVALUES + 8 * i),
                            LS_UV_VALUE + 8);
                break;
        case 9:
                add(PLACE_TRACE, o, LS_TR_SIZE);
                break;
        case LS_T_CDATA:
                add(PLACE_CDATA, o, LS_CDATA_VALUE + 8);
                break;
        case LS_T_TAB:
                add(PLACE_TAB, o, LS_TAB_HMASK + 4);
                if (LS_READ(uint32_t, o, LS_TAB_HMASK))
                        add(PLACE_NODES, LS_READ(const char *, o, LS_TAB_NODE),
                            (uint64_t)ls_tab_nodes(o) * LS_NODE_SIZE);
                add(PLACE_ARRAY, LS_READ(const char *, o, LS_TAB_ARRAY),
                    8 * (uint64_t)LS_READ(uint32_t, o, LS_TAB_ASIZE));
                break;
        case LS_T_UDATA:
                add(PLACE_UDATA, o, 48);
                break;
        default:
                break;
        }
}

static void add_places(void)
{
        const struct ls_vm *vm = &ls_vms[0];
        const char *global = vm->global,
                   *L = LS_READ(const char *, global, ls_vm_facts.cur_L_offset);

        head.n_places = 0;
        add(PLACE_REGS, NULL, 32);
        add(PLACE_VIEW, &view, sizeof view);
        add(PLACE_FACTS, &ls_vm_facts, sizeof ls_vm_facts);
        add(PLACE_VM, vm, sizeof *vm);
        add(PLACE_THREAD, ls_thread_own, sizeof *ls_thread_own);
        add(PLACE_BUILTINS, view.builtins, 256 * 40);
        add(PLACE_INTERPOSED, ls_interposed, sizeof ls_interposed);
        add(PLACE_JIT, vm->jit, sizeof *vm->jit);
        add(PLACE_JIT_ENTRIES, vm->jit->chunks[0], 64 * sizeof(struct ls_jit_entry));
        add(PLACE_JIT_RANGES, vm->jit->ranges, vm->jit->nranges * sizeof *vm->jit->ranges);
        add(PLACE_LABELS, &labels, 64);
        add(PLACE_ZONES, &zones, 64);
        add(PLACE_READY, &ready, 64);
        add(PLACE_GLOBAL, global, 4096);
        add(PLACE_STR, name, LS_STR_DATA + 16);
        add_object(ls_gcptr(LS_READ(const uint64_t *, L, LS_L_BASE)[-2]));
        add(PLACE_CSTACK, (const void *)head.sp, 4096);
        for (const char *cf = ls_cframe_of((const lua_State *)L); cf;
             cf = (const char *)(LS_READ(uintptr_t, cf, LS_CF_PREV) & ~(uintptr_t)3))
                add(PLACE_CFRAME, cf, LS_CF_SIZE);
        add_object(L);
        for (const char *o = LS_READ(const char *, global, ls_vm_facts.objects_offset);
             o && o != (const char *)vm->main; o = LS_READ(const char *, o, 0))
                add_object(o);
        add_object((const char *)vm->main);
}

/* All that may be written, and compiled code. */
static void find_ranges(void)
{
        char line[512], path[256];
        FILE *f = fopen("/proc/self/maps", "re");

        head.n_ranges = 0;
        while (f && fgets(line, sizeof line, f)) {
                struct image_range r = { 0 };
                unsigned long low, high;
                int n;

                *path = 0;
                n = sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &low, &high, r.rights, path);
                if (n < 3 || r.rights[0] != 'r' || !strncmp(path, "[v", 2) ||
                    (r.rights[1] != 'w' && (r.rights[2] != 'x' || *path)) || high - low > 64u << 20)
                        continue;
                r.start = low;
                r.end = high;
                if (head.n_ranges == RANGES_MOST)
                        die("too many mappings");
                ranges[head.n_ranges++] = r;
        }
        if (f)
                fclose(f);
}

static void put(int fd, const void *p, size_t n)
{
        while (n) {
                ssize_t did = write(fd, p, n);

                if (did <= 0)
                        die("cannot write");
                p = (const char *)p + did;
                n -= (size_t)did;
        }
}

static __attribute__((noinline)) void take_picture(uintptr_t ip)
{
        FILE *f;

        if (written == 2)
                return;
        head.magic = IMAGE_MAGIC;
        head.ip = ip;
        head.sp = (uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)7;
        head.view = (uintptr_t)&view;
        head.thread = (uintptr_t)ls_thread_own;
        head.stack_low = ls_thread_own->stack_low;
        head.stack_high = ls_thread_own->stack_high;
        view.size = sizeof view;
        add_places();
        find_ranges();
        f = fopen(outputs[written++], "we");
        if (!f)
                die("cannot open the file");
        put(fileno(f), &head, sizeof head);
        put(fileno(f), ranges, head.n_ranges * sizeof *ranges);
        put(fileno(f), places, head.n_places * sizeof *places);
        for (unsigned i = 0; i < head.n_ranges; i++)
                put(fileno(f), (const void *)ranges[i].start, ranges[i].end - ranges[i].start);
        fclose(f);
}

static int picture(lua_State *L)
{
        take_picture((uintptr_t)picture);
        return lua_gettop(L);
}

/* By its name, from the FFI. */
__attribute__((noinline, visibility("default"))) double picture_of_code(double x);
double picture_of_code(double x)
{
        if (written == 1 && LS_READ(int32_t, ls_vms[0].global, ls_vm_facts.vmstate_offset) > 0)
                take_picture((uintptr_t)picture_of_code);
        return x;
}

/* mark(coroutine, slot): what the agent's own Lua code would put into its tables. */
static int mark(lua_State *L)
{
        const lua_State *co = lua_tothread(L, 1);
        uint32_t slot = ((ls_label_hash((uint32_t)(uintptr_t)co)) & (LS_LABEL_SLOTS - 1)) + 1;
        int n = (int)lua_tointeger(L, 2);

        labels.own[slot] = (int32_t)(uintptr_t)co;
        zones.own[n] = (int32_t)(uintptr_t)co;
        zones.own[0] = n;
        ready.slots[ls_ready_hash((uintptr_t)co)].L = (uintptr_t)co;
        ready.slots[ls_ready_hash((uintptr_t)co)].since_ns = 1;
        lua_pushinteger(L, (lua_Integer)slot);
        return 1;
}

/* tables(live, sets, names) */
static int tables(lua_State *L)
{
        labels.live = lua_topointer(L, 1);
        labels.sets = lua_topointer(L, 2);
        zones.names = lua_topointer(L, 3);
        zones.tracked = 1;
        ls_vms[0].labels = &labels;
        ls_vms[0].zones = &zones;
        ls_vms[0].ready = &ready;
        return 0;
}

static const char program[] =
        "local ffi = require 'ffi'\n"
        "ffi.cdef 'double picture_of_code(double); int getpid(void);'\n"
        "live, sets, names = {}, {}, {}\n"
        "for i = 1, 4097 do live[i] = false sets[i] = false end\n"
        "for i = 1, 8 do names[i] = i % 3 == 0 and i / 2 or 'zone ' .. i end\n"
        "tables(live, sets, names)\n"
        "local function label(co, n)\n"
        "  local slot = mark(co, n)\n"
        "  live[slot] = co sets[slot] = { 'key', 'value ' .. n, 'other', n }\n"
        "end\n"
        "local app = { sub = { deep = {} } }\n"
        "setmetatable(app, { __index = { inherited = function() end } })\n"
        "package.loaded.app = app _G.app = app\n"
        "function app.sub.deep.leaf(x) return x * 7 % 1000003 end\n"
        "function app:method(f, ...) local a, b = f, ... return (f(a, b)) end\n"
        "local function varargs(...) local t = { ... } coroutine.yield(t) return select('#', ...) "
        "end\n"
        "local function nested(n) if n == 0 then coroutine.yield() return 1 end local r = nested(n "
        "- 1) return r + 1 end\n"
        "cos = {}\n"
        "for i = 1, 12 do\n"
        "  local co = coroutine.create(i % 3 == 0 and varargs or i % 3 == 1 and nested or "
        "function(n)\n"
        "    pcall(function() string.gsub('x', 'x', function() end) end)\n"
        "    local ok = pcall(coroutine.yield, n) return ok\n"
        "  end)\n"
        "  cos[i] = co label(co, i % 8 + 1) coroutine.resume(co, i * 3)\n"
        "end\n"
        "local text = loadstring('return function(a) local upvalue = a return function() return "
        "upvalue end end')\n"
        "inner = text()(1)\n"
        "local s = 0\n"
        "for i = 1, 300 do s = s + app.sub.deep.leaf(i) if i % 5 == 0 then s = s + #tostring(i) "
        "end end\n"
        "for i = 1, 300 do s = s + inner() local f = function() return i end s = s + f() end\n"
        "io.stdout:setvbuf('no')\n"
        "local function code() local x = 0 for i = 1, 300 do x = x + ffi.C.picture_of_code(i) + "
        "app.sub.deep.leaf(i) end return x end\n"
        "local wrapped = coroutine.wrap(function(a, ...)\n"
        "  local inside = coroutine.wrap(function(x)\n"
        "    label(coroutine.running(), 3)\n"
        "    local r = app:method(function(p) local local_fn = picture local_fn(p) return "
        "pcall(picture, p) end, x)\n"
        "    code()\n"
        "    return r\n"
        "  end)\n"
        "  table.sort({ 3, 1, 2 }, function(p, q) if inside then inside(q) inside = nil end return "
        "p < q end)\n"
        "  return a, ...\n"
        "end)\n"
        "wrapped(1, 2, 3)\n";

static int probe_jit(lua_State *L)
{
        luaL_openlibs(L);
        ls_jit_probe(L);
        return 0;
}

static void watch(lua_State *L)
{
        struct ls_vm *vm = &ls_vms[0];
        size_t size;

        vm->main = L;
        vm->vm_id = 1;
        vm->engine = LS_ENGINE_WALK;
        vm->jit_leaf = LS_JIT_LEAF_MAP;
        vm->taken = 1;
        atomic_store(&vm->global, LS_READ(const char *, L, LS_L_GLREF));
        atomic_store(&ls_vms_used, 1);
        ls_thread_enter(ls_thread_own);
        ls_jit_open(vm, L);
        ls_thread_leave(ls_thread_own);
        if (!vm->jit)
                die("traces cannot be watched");
        view = (struct ls_view){ sizeof view,        sizeof(struct ls_vm),
                                 sizeof ls_vm_facts, sizeof(struct ls_thread),
                                 &ls_vm_facts,       ls_vms,
                                 &ls_vms_used,       &ls_vms_closed,
                                 ls_jit_functions,   (const char(*)[40])ls_builtin_table(&size),
                                 ls_interposed };
}

static void *run(void *arg)
{
        lua_State *L = luaL_newstate();
        pthread_attr_t attr;
        void *low = NULL;
        size_t size = 0;

        (void)arg;
        vm_agent_probe();
        if (!ls_vm_facts.ok || lua_cpcall(L, probe_jit, NULL) || ls_jit_why_not())
                die("this LuaJIT cannot be read");
        lua_close(L);
        if (pthread_getattr_np(pthread_self(), &attr) || pthread_attr_getstack(&attr, &low, &size))
                die("where is the stack?");
        ls_thread_own->stack_low = (uintptr_t)low;
        ls_thread_own->stack_high = (uintptr_t)low + size;
        L = luaL_newstate();
        watch(L);
        luaL_openlibs(L);
        lua_register(L, "picture", picture);
        lua_pushliteral(L, "picture");
        name = lua_tostring(L, -1) - LS_STR_DATA;
        lua_pop(L, 1);
        lua_register(L, "mark", mark);
        lua_register(L, "tables", tables);
        if (luaL_dostring(L, program))
                die(lua_tostring(L, -1));
        return NULL;
}

int main(int argc, char **argv)
{
        pthread_attr_t attr;
        pthread_t thread;

        if (argc != 3)
                die("usage: gen_vm FILE FILE");
        outputs[0] = argv[1];
        outputs[1] = argv[2];
        /* a small stack: all of it is in the picture */
        if (pthread_attr_init(&attr) || pthread_attr_setstacksize(&attr, 256u << 10) ||
            pthread_create(&thread, &attr, run, NULL) || pthread_join(thread, NULL))
                die("no thread");
        if (written != 2)
                die("compiled code did not call");
        return 0;
}
