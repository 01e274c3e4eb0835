/* Places in compiled code of a real LuaJIT: of calls out of it, of each byte of it, of ticks.
 * Linked with libluajit. */
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

#include "tests/unit/jit_watch.h"

/* Called by compiled code through LuaJIT's FFI: the place is the return address of the call. */
static struct {
        struct ls_vm *vm;
        unsigned calls, right;
} outside;

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
        if (ls_jit_locate(outside.vm, L, (uintptr_t)called_by_code, sp & ~(uintptr_t)7, &id, &offset) ==
            LS_JIT_CALLED_OUT && e && id == e->jit_id && e->mcode + offset == back - 1)
                outside.right++;
        return 1;
}

static void places_are_found(void **state)
{
        struct ls_vm *vm = new_vm(LS_JIT_LEAF_MAP);
        uint32_t id, offset;
        unsigned n = 0;
        uintptr_t once = 0;

        (void)state;
        outside.vm = vm;
        run(vm->main, "local ffi = require 'ffi' ffi.cdef 'double called_by_code(void);'\n"
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
        run(vm->main, work);
        run(vm->main, "work(300)");
        for (uint32_t number = 1; number < 300; number++) {
                struct ls_jit_entry *e = ls_jit_entry(vm->jit, number);

                if (!e || !e->jit_id)
                        continue;
                for (uint32_t at = 0; at < e->mcode_size; at += 5) {
                        assert_int_equal(ls_jit_locate(vm, vm->main, e->mcode + at, 0, &id, &offset), LS_JIT_IN_TRACE);
                        assert_true(id == e->jit_id && offset == at);
                }
                once = e->mcode;
                n++;
        }
        assert_true(n >= 8);
        run(vm->main, "jit.flush()");
        assert_int_equal(ls_jit_locate(vm, vm->main, once, 0, &id, &offset), 0);
        /* a flush that was not told: code of the new traces is where that of old ones was */
        run(vm->main, "work(300) jit.attach(function() jit.flush() end, 'bc') loadstring('return 1')\n"
                      "work(300) work(300) jit.off()");
        for (uint32_t number = 1; number < 300; number++) {
                struct ls_jit_entry *e = ls_jit_entry(vm->jit, number);

                if (e && e->jit_id && ls_jit_locate(vm, vm->main, e->mcode, 0, &id, &offset))
                        assert_int_equal(id, e->jit_id);
        }
        close_vm(vm);
        empty_ring();
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
                          (uintptr_t)uc->uc_mcontext.gregs[REG_RIP], (uintptr_t)uc->uc_mcontext.gregs[REG_RSP], &id,
                          &offset)) {
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
                cmocka_unit_test(ticks_are_located),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
