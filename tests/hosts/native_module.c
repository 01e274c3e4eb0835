/* A Lua module that writes native stacks of the program that loads it, LuaJIT with GC64, to a file: for
 * tests/unit/test_record_native_unwind.c.
 *   native.open(FILE)         native.sample(NAME)          one sample in this C function
 *   native.call(F)            F called with lua_call       native.pcall(F)   with lua_pcall
 *   native.ticks(NAME|nil)    samples at an interval, whatever runs, with the C frames of the calling coroutine
 *   native.taken()            samples since the latest native.ticks
 *   native.mark()             stops in a debugger that shows each instruction from here to the next mark
 * native_busy(N) and native_callback(F, N) are for the FFI. */
#include "tests/hosts/native_dump.h"

#include <lauxlib.h>
#include <lua.h>

/* lua_State and the C frame of a LuaJIT with GC64 on x86-64 (lj_obj.h, lj_frame.h). */
enum { STATE_CFRAME = 80, CFRAME_PREVIOUS = 32, CFRAME_SIZE = 80 };

static lua_State *volatile sampled;
static char tick_name[40];

static uint64_t word(uint64_t addr)
{
        return *(const volatile uint64_t *)addr;
}

static void read_cframes(struct dump_record *r)
{
        uint64_t cframe = sampled ? word((uint64_t)sampled + STATE_CFRAME) & ~UINT64_C(7) : 0;

        while (cframe && r->n_cframes < DUMP_CFRAMES) {
                r->cframes[r->n_cframes++] = cframe;
                if (cframe + 2 * CFRAME_SIZE > dump_stack_end)
                        return;
                /* A coroutine's first one has none before it; that of Lua code that has resumed it
                 * is beside it. */
                cframe = word(cframe + CFRAME_PREVIOUS) & ~UINT64_C(7)
                                 ? word(cframe + CFRAME_PREVIOUS) & ~UINT64_C(7)
                                 : cframe + CFRAME_SIZE;
                if (cframe < r->cframes[r->n_cframes - 1] || cframe + CFRAME_SIZE > dump_stack_end)
                        return;
        }
}

static int native_open(lua_State *L)
{
        dump_open(luaL_checkstring(L, 1));
        dump_cframes = read_cframes;
        dump_maps();
        return 0;
}

static int native_sample(lua_State *L)
{
        sampled = L;
        dump_name = luaL_checkstring(L, 1);
        raise(DUMP_SIGNAL);
        dump_name = NULL;
        return 0;
}

static int native_call(lua_State *L)
{
        lua_settop(L, 1);
        lua_call(L, 0, 0);
        lua_pushboolean(L, 1);
        return 1;
}

static int native_pcall(lua_State *L)
{
        lua_settop(L, 1);
        lua_pushboolean(L, lua_pcall(L, 0, 0, 0) == 0);
        return 1;
}

static int native_ticks(lua_State *L)
{
        struct itimerval on = { { 0, 300 }, { 0, 300 } }, off = { { 0, 0 }, { 0, 0 } };

        setitimer(ITIMER_REAL, &off, NULL);
        dump_name = NULL;
        if (lua_isnil(L, 1))
                return 0;
        dump_maps();
        snprintf(tick_name, sizeof(tick_name), "%s", luaL_checkstring(L, 1));
        sampled = L;
        dump_taken = 0;
        dump_name = tick_name;
        setitimer(ITIMER_REAL, &on, NULL);
        return 0;
}

static int native_taken(lua_State *L)
{
        lua_pushinteger(L, dump_taken);
        return 1;
}

/* For tests/unit/test_record_native_unwind_steps.c: it finds the VM in rax. */
static int native_mark(lua_State *L)
{
        __asm__ volatile("int3" : : "a"(L) : "memory");
        return 0;
}

int native_busy(int n);
__attribute__((visibility("default"), noinline)) int native_busy(int n)
{
        volatile int x = 0;

        for (int i = 0; i < n; i++)
                x = x + i;
        return x;
}

int native_callback(int (*f)(int), int n);
__attribute__((visibility("default"), noinline)) int native_callback(int (*f)(int), int n)
{
        int sum = 0;

        for (int i = 0; i < n; i++)
                sum += f(i);
        return sum;
}

int luaopen_native(lua_State *L);
__attribute__((visibility("default"))) int luaopen_native(lua_State *L)
{
        static const luaL_Reg functions[] = {
                { "open", native_open },   { "sample", native_sample },
                { "call", native_call },   { "pcall", native_pcall },
                { "ticks", native_ticks }, { "taken", native_taken },
                { "mark", native_mark },   { NULL, NULL },
        };

        lua_newtable(L);
        luaL_register(L, NULL, functions);
        return 1;
}
