/* VMs of a real LuaJIT that are watched as the agent does it, for the tests of
 * libsample/jit/events.c and handler/jit_locate.c. */
#ifndef LS_TEST_JIT_WATCH_H
#define LS_TEST_JIT_WATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "libsample/agent.h"
#include "libsample/handler/ring_writer.h"
#include "libsample/handler/walk.h"
#include "libsample/jit/jit.h"
#include "libsample/jit/facts.h"
#include "libsample/handler/jit_locate.h"
#include "libsample/handler/jit_send.h"
#include "libsample/layout.h"
#include "tests/unit/vm_agent.h"

static struct ls_thread *self;
static struct ls_vm vms[8];
static unsigned nvms;

static struct ls_vm *watch(lua_State *L, int leaf)
{
        struct ls_vm *vm = &vms[nvms++ % 8];

        memset(vm, 0, sizeof *vm);
        vm->global = LS_READ(const char *, L, LS_L_GLREF);
        vm->main = L;
        vm->vm_id = nvms;
        vm->jit_leaf = (uint8_t)leaf;
        ls_thread_enter(self);
        ls_jit_open(vm, L);
        ls_thread_leave(self);
        assert_non_null(vm->jit);
        assert_int_equal(lua_gettop(L), 0);
        return vm;
}

static void close_vm(struct ls_vm *vm)
{
        ls_jit_close(vm);
        assert_null(vm->jit);
        lua_close(vm->main);
}

static void run(lua_State *L, const char *source)
{
        if (luaL_dostring(L, source))
                fail_msg("%s", lua_tostring(L, -1));
}

static struct ls_vm *new_vm(int leaf)
{
        struct ls_vm *vm = watch(luaL_newstate(), leaf);

        luaL_openlibs(vm->main);
        return vm;
}

static void empty_ring(void)
{
        self->ring->tail = self->ring->head;
}

static int probe_jit(lua_State *L)
{
        luaL_openlibs(L);
        ls_jit_probe(L);
        return 0;
}

/* The first test of a program: the others need it. */
static void probe_accepts_this_build(void **state)
{
        lua_State *L = luaL_newstate();

        (void)state;
        vm_agent_probe();
        self = ls_thread_own;
        assert_true(ls_vm_facts.ok);
        assert_int_equal(lua_cpcall(L, probe_jit, NULL), 0);
        lua_close(L);
        assert_string_equal(ls_jit_why_not() ? ls_jit_why_not() : "", "");
        assert_true(ls_jit_facts.nirnames > 6 * 50 && ls_jit_facts.at.stubs);
}

/* A loop with inlined calls and a builtin, side traces, a stitched trace, recursion, a trace that
 * is given up. */
static const char work[] =
        "local function leaf(a) return (a * 7 + 3) % 1000003 end\n"
        "local function mid(a, i)\n"
        "  if i % 3 == 0 then return leaf(a) end\n"
        "  return leaf(leaf(a)) + math.floor(a / 3)\n"
        "end\n"
        "local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end\n"
        "function work(n)\n"
        "  local a, t = 1, {}\n"
        "  for i = 1, n do a = mid(a, i) t[i % 5] = { a } end\n"
        "  for i = 1, n do t[1] = ('x'):rep(i % 3) .. i end\n"
        "  for i = 1, n do a = a + select('#', string.byte(('abc'):rep(1), 1, -1)) end\n"
        "  for i = 1, n do local f = function() return i end a = a + f() end\n"
        "  for i = 1, n do a = a + #string.dump(leaf) % 2 end\n"
        "  return a + fib(15)\n"
        "end\n";

#endif
