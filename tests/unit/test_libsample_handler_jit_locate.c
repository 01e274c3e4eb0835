/* Places in compiled code of a real LuaJIT: of calls out of it, of each byte of it, of ticks.
 * Linked with libluajit. */
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

#include "tests/unit/jit_watch.h"

/* Called by compiled code through LuaJIT's FFI: the place is the return address of the call. */
static struct {
        struct ls_vm *vm;
        unsigned calls, right, named, wrong;
} outside;

/* What the handler would say runs: the function itself, when it was called through the FFI. */
static int is_named(const char *g, uint32_t id, uint32_t offset, void *function)
{
        struct ls_guard guard;
        const uint64_t *base = LS_READ(const uint64_t *, g, ls_vm_facts.jit_base_offset);

        uintptr_t found;

        ls_guard_begin(&guard);
        found = ls_jit_callee(outside.vm->jit, &guard, g, base, id, offset);
        outside.wrong += found && found != (uintptr_t)function;
        return found == (uintptr_t)function;
}

__attribute__((noinline)) double called_by_code(void);
double called_by_code(void)
{
        const char *g = outside.vm->global;
        const lua_State *L = LS_READ(const lua_State *, g, ls_vm_facts.cur_L_offset);
        uint32_t id = 0, offset = 0, number = LS_READ(uint32_t, g, ls_vm_facts.vmstate_offset);
        uintptr_t back = (uintptr_t)__builtin_return_address(0), sp = (uintptr_t)&id;
        struct ls_jit_entry *e;

        if ((int32_t)number <= 0)
                return 0;
        outside.calls++;
        e = ls_jit_entry(outside.vm->jit, number);
        if (ls_jit_locate(outside.vm, L, (uintptr_t)called_by_code, sp & ~(uintptr_t)7, &id,
                          &offset) == LS_JIT_CALLED_OUT &&
            e && id == e->jit_id && e->mcode + offset == back - 1)
                outside.right++;
        outside.named += id && is_named(g, id, offset, (void *)called_by_code);
        return 1;
}

__attribute__((noinline)) double another(double x);
double another(double x)
{
        return x + (outside.calls > 0);
}

static void places_are_found(void **state)
{
        struct ls_vm *vm = new_vm(LS_JIT_LEAF_MAP);
        uint32_t id, offset;
        unsigned n = 0;
        uintptr_t once = 0;

        (void)state;
        outside.vm = vm;
        run(vm->main,
            "local ffi = require 'ffi' ffi.cdef 'double called_by_code(void);'\n"
            "local C, t = ffi.C, {}\n"
            "local function call(a, b, c)\n"
            "  local x = a * b + c t[a % 7] = { x } return C.called_by_code() + x\n"
            "end\n"
            "local s = 0\n"
            "for i = 1, 500 do\n"
            "  s = s + call(i, i + 1, i * 3) if i % 5 == 0 then s = s + call(s, 2, 3) end\n"
            "end");
        assert_true(outside.calls > 400);
        assert_int_equal(outside.right, outside.calls);
        assert_int_equal(outside.named, outside.calls);
        run(vm->main, work);
        run(vm->main, "work(300)");
        for (uint32_t number = 1; number < 300; number++) {
                struct ls_jit_entry *e = ls_jit_entry(vm->jit, number);

                if (!e || !e->jit_id)
                        continue;
                for (uint32_t at = 0; at < e->mcode_size; at += 5) {
                        assert_int_equal(ls_jit_locate(vm, vm->main, e->mcode + at, 0, &id,
                                                       &offset),
                                         LS_JIT_IN_TRACE);
                        assert_true(id == e->jit_id && offset == at);
                }
                once = e->mcode;
                n++;
        }
        assert_true(n >= 8);
        run(vm->main, "jit.flush()");
        assert_int_equal(ls_jit_locate(vm, vm->main, once, 0, &id, &offset), 0);
        /* a flush that was not told: code of the new traces is where that of old ones was */
        run(vm->main,
            "work(300) jit.attach(function() jit.flush() end, 'bc') loadstring('return 1')\n"
            "work(300) work(300) jit.off()");
        for (uint32_t number = 1; number < 300; number++) {
                struct ls_jit_entry *e = ls_jit_entry(vm->jit, number);

                if (e && e->jit_id && ls_jit_locate(vm, vm->main, e->mcode, 0, &id, &offset))
                        assert_int_equal(id, e->jit_id);
        }
        close_vm(vm);
        empty_ring();
}

/* By what a program says what it calls: its calls, and those that have the function's name. */
static void calls_of(const char *program, unsigned *ret_calls, unsigned *ret_named)
{
        struct ls_vm *vm = new_vm(LS_JIT_LEAF_MAP);

        outside.vm = vm;
        outside.calls = outside.right = outside.named = outside.wrong = 0;
        run(vm->main, "ffi = require 'ffi' ffi.cdef 'double called_by_code(void); double "
                      "another(double x);'");
        run(vm->main, program);
        *ret_calls = outside.calls;
        *ret_named = outside.named;
        close_vm(vm);
        empty_ring();
}

static void callees_are_named(void **state)
{
        static const char *const known[] = {
                "local C = ffi.C for i = 1, 500 do C.another(i) C.called_by_code() C.another(1) "
                "end",
                /* a variable of the loop, and two functions in it by turns */
                "local function loop(f, x) for i = 1, 200 do f() ffi.C.another(x) end end\n"
                "for i = 1, 3 do loop(ffi.C.called_by_code, i) end",
                "local f, g = ffi.C.called_by_code, ffi.C.another for i = 1, 500 do g(1) f() g(2) "
                "end",
                /* on a side trace */
                "local C, s = ffi.C, 0 for i = 1, 900 do if i % 3 == 0 then s = s + "
                "C.called_by_code() else s = s + 1 end end",
                "local p = ffi.cast('double (*)(void)', ffi.C.called_by_code) for i = 1, 500 do "
                "p() end",
        };
        unsigned calls, named;

        (void)state;
        for (unsigned i = 0; i < sizeof known / sizeof *known; i++) {
                calls_of(known[i], &calls, &named);
                assert_true(calls > 200);
                if (named != calls)
                        print_error("%s: %u of %u\n", known[i], named, calls);
                assert_int_equal(named, calls);
                assert_int_equal(outside.wrong, 0);
        }
}

/* What was called when the loop was compiled may be another function now: no name is given, or the
 * right one. */
static void another_callee_has_no_false_name(void **state)
{
        unsigned calls, named;

        (void)state;
        calls_of("local other = ffi.cast('double (*)(void)', ffi.C.called_by_code)\n"
                 "local t = { ffi.cast('double (*)(void)', ffi.C.another), other }\n"
                 "for i = 1, 500 do t[1]() end for i = 1, 500 do t[i % 2 + 1]() end",
                 &calls, &named);
        assert_true(calls >= 200);
        assert_int_equal(outside.wrong, 0);
        calls_of("local function loop(f) for i = 1, 300 do f() end end\n"
                 "local p = ffi.cast('double (*)(void)', ffi.C.another)\n"
                 "loop(p) loop(ffi.cast('double (*)(void)', ffi.C.called_by_code))",
                 &calls, &named);
        assert_true(calls > 250);
        assert_int_equal(named, calls);
        assert_int_equal(outside.wrong, 0);
}

/* Ticks in compiled code, and what it calls. */
static volatile sig_atomic_t ticks, located, exact;

static void on_tick(int sig, siginfo_t *info, void *context)
{
        const ucontext_t *uc = context;
        const char *g = outside.vm->global;
        uint32_t id, offset;

        (void)sig, (void)info;
        if (self->busy || LS_READ(int32_t, g, ls_vm_facts.vmstate_offset) <= 0)
                return;
        ticks++;
        if (ls_jit_locate(outside.vm, LS_READ(const lua_State *, g, ls_vm_facts.cur_L_offset),
                          (uintptr_t)uc->uc_mcontext.gregs[REG_RIP],
                          (uintptr_t)uc->uc_mcontext.gregs[REG_RSP], &id, &offset)) {
                located++;
                exact += offset != LS_JIT_NO_OFFSET;
        }
}

static void ticks_are_located(void **state)
{
        struct ls_vm *vm = new_vm(LS_JIT_LEAF_MAP);
        struct sigaction sa = { .sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART };
        struct itimerval each = { { 0, 1000 }, { 0, 1000 } }, never = { 0 };

        (void)state;
        outside.vm = vm;
        run(vm->main, work);
        run(vm->main, "work(300)");
        sigaction(SIGPROF, &sa, NULL);
        setitimer(ITIMER_PROF, &each, NULL);
        for (int i = 0; i < 3000 && ticks < 100; i++) {
                run(vm->main, "work(3000)");
                empty_ring();
        }
        setitimer(ITIMER_PROF, &never, NULL);
        signal(SIGPROF, SIG_IGN);
        assert_true(ticks >= 50);
        assert_int_equal(located, ticks);
        assert_true(exact >= ticks - 1 - ticks / 50);
        close_vm(vm);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(probe_accepts_this_build),
                cmocka_unit_test(places_are_found),
                cmocka_unit_test(callees_are_named),
                cmocka_unit_test(another_callee_has_no_false_name),
                cmocka_unit_test(ticks_are_located),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
