/* Native stacks of programs whose calls are known: host_native, and LuaJITs that load
 * tests/hosts/native_module.c. Arguments: host_native, the module, tests/lua/native.lua. With
 * --table prints what was found, with --time what it took. */
#include "tests/unit/unwind_fixture.h"
#include "record/worker/cfi_eval.h"

#include <fnmatch.h>
#include <time.h>

static const char *host_path, *module_path, *script_path;
static int table, timing;

/* --- what is expected --- */

#define TO_MAIN "<main<*__libc_start_main*"
#define C_CHAIN(p) "*sample_here<" p "_leaf<" p "_inner<" p "_vla<" p "_aligned<" p "_chain<"

static const struct expected {
        const char *name, *pattern;
        enum ls_unwind_end end;
        unsigned percent;               /* of its samples that must be so */
} in_host[] = {
        { "plain_chain", C_CHAIN("plain") "scene_plain_chain" TO_MAIN, LS_UNWIND_COMPLETE, 100 },
        { "fp_chain", C_CHAIN("fp") "scene_fp_chain" TO_MAIN, LS_UNWIND_COMPLETE, 100 },
        { "slow_chain", C_CHAIN("slow") "scene_slow_chain" TO_MAIN, LS_UNWIND_COMPLETE, 100 },
        { "plain_sorted",
          "*sample_here<plain_leaf<plain_compare<*<plain_sorted<scene_plain_sorted" TO_MAIN,
          LS_UNWIND_COMPLETE, 100 },
        { "fp_sorted", "*sample_here<fp_leaf<fp_compare<*<fp_sorted<scene_fp_sorted" TO_MAIN,
          LS_UNWIND_COMPLETE, 100 },
        { "slow_sorted",
          "*sample_here<slow_leaf<slow_compare<*<slow_sorted<scene_slow_sorted" TO_MAIN,
          LS_UNWIND_COMPLETE, 100 },
        { "in_handler", C_CHAIN("plain") "on_usr1<*<raise<scene_in_handler" TO_MAIN,
          LS_UNWIND_COMPLETE, 100 },
        { "thread", C_CHAIN("plain") "thread_main<*", LS_UNWIND_COMPLETE, 100 },
        { "deep", "*sample_here<plain_leaf<plain_deep<*<plain_deep<scene_deep" TO_MAIN,
          LS_UNWIND_COMPLETE, 100 },
        { "truncated", "*sample_here<plain_leaf<plain_deep<*<plain_deep", LS_UNWIND_TRUNCATED,
          100 },
#define TICKS_OF(p)                                                                                \
        { "tick_" p "_fib", "*" p "_fib<*work_" p "_fib*" TO_MAIN, LS_UNWIND_COMPLETE, 98 },       \
                { "tick_" p "_copies", "*" p "_copies<work_" p "_copies*" TO_MAIN,                 \
                  LS_UNWIND_COMPLETE, 98 },                                                        \
                { "tick_" p "_clocks", "*" p "_clocks<work_" p "_clocks*" TO_MAIN,                 \
                  LS_UNWIND_COMPLETE, 98 },                                                        \
        {                                                                                          \
                "tick_" p "_allocations", "*" p "_allocations<work_" p "_allocations*" TO_MAIN,    \
                        LS_UNWIND_COMPLETE, 98                                                     \
        }
        TICKS_OF("plain"),
        TICKS_OF("fp"),
        TICKS_OF("slow"),
};

#define LUA_END "<LUA<*__libc_start_main*"
static const struct expected in_lua[] = {
        { "direct", "*native_sample" LUA_END, LS_UNWIND_COMPLETE, 100 },
        { "call", "*native_sample<LUA<*native_call" LUA_END, LS_UNWIND_COMPLETE, 100 },
        { "nested", "*native_sample<LUA<*native_call<LUA<*native_pcall<LUA<*native_pcall" LUA_END,
          LS_UNWIND_COMPLETE, 100 },
        { "luapcall", "*native_sample" LUA_END, LS_UNWIND_COMPLETE, 100 },
        { "sort", "*native_sample<LUA<*" LUA_END, LS_UNWIND_COMPLETE, 100 },
        { "gsub", "*native_sample<LUA<*" LUA_END, LS_UNWIND_COMPLETE, 100 },
        { "coroutine", "*native_sample<LUA" LUA_END, LS_UNWIND_COMPLETE, 100 },
        { "coroutines", "*native_sample<LUA<LUA<*native_pcall<LUA" LUA_END, LS_UNWIND_COMPLETE,
          100 },
        { "meta", "*native_sample" LUA_END, LS_UNWIND_COMPLETE, 100 },
        { "gc", "*native_sample<LUA<*" LUA_END, LS_UNWIND_COMPLETE, 100 },
        { "callback", "*native_sample<LUA<*native_callback<*" LUA_END, LS_UNWIND_COMPLETE, 100 },
#define LUA_TICKS(name) { "tick_" name, "*LUA<*__libc_start_main*", LS_UNWIND_COMPLETE, 98 }
        LUA_TICKS("alloc"),
        LUA_TICKS("sorts"),
        LUA_TICKS("calls"),
        LUA_TICKS("pcalls"),
        LUA_TICKS("strings"),
        LUA_TICKS("traces"),
        LUA_TICKS("math"),
        LUA_TICKS("interpreter"),
        LUA_TICKS("interpreter_math"),
        LUA_TICKS("interpreter_strings"),
        LUA_TICKS("interpreter_ffi"),
        LUA_TICKS("callbacks"),
        LUA_TICKS("jit"),
        LUA_TICKS("ffi"),
};

struct check {
        const struct expected *expected;
        size_t n;
        unsigned seen[64], good[64];
        unsigned unknown;
};

static void check_sample(void *ctx, struct space *space, const struct sample *sample)
{
        struct check *c = ctx;
        enum ls_unwind_end end;
        char chain[16384];
        size_t i = 0;

        while (i < c->n && strcmp(c->expected[i].name, sample->head.name))
                i++;
        if (i == c->n) {
                c->unknown++;
                return;
        }
        chain_of(space, sample, chain, sizeof(chain), &end);
        c->seen[i]++;
        if (fnmatch(c->expected[i].pattern, chain, 0) == 0 && end == c->expected[i].end)
                c->good[i]++;
        else if (table || c->expected[i].percent == 100)
                print_message("%s: %.700s: end %d\n", sample->head.name, chain, (int)end);
}

static void check_dump(const char *path, const struct expected *expected, size_t n)
{
        struct check c = { .expected = expected, .n = n };
        static struct space space;
        int bad = 0;

        space_init(&space);
        read_dump(path, &space, check_sample, &c);
        space_done(&space);
        for (size_t i = 0; i < n; i++) {
                int ok = c.seen[i] && c.good[i] * 100 >= expected[i].percent * c.seen[i];

                if (table || !ok)
                        print_message("%-24s %u of %u%s\n", expected[i].name, c.good[i], c.seen[i],
                                      ok ? "" : "  FAILED");
                bad += !ok;
        }
        assert_int_equal(c.unknown, 0);
        assert_int_equal(bad, 0);
}

/* --- running programs --- */

struct times { uint64_t ns, frames, samples; int cold; };

static void time_sample(void *ctx, struct space *space, const struct sample *sample)
{
        struct times *sum = ctx;
        struct ls_native_frame frames[FRAMES];
        struct ls_unwind_input in;
        struct timespec a, b;
        enum ls_unwind_end end;

        to_input(sample, &in);
        if (sum->cold)
                ls_unwind_forget(space->unwinder, 0, UINT64_MAX);
        clock_gettime(CLOCK_MONOTONIC, &a);
        sum->frames += ls_unwind(space->unwinder, &in, frames, FRAMES, &end);
        clock_gettime(CLOCK_MONOTONIC, &b);
        sum->ns += (uint64_t)(b.tv_sec - a.tv_sec) * 1000000000u +
                   (uint64_t)(b.tv_nsec - a.tv_nsec);
        sum->samples++;
}

static void time_dump(const char *path)
{
        static const char *const names[] = { "first", "again", "again",
                                             "each as if it were the first" };
        static struct space space;

        space_init(&space);
        for (int round = 0; round < 4; round++) {
                struct times sum = { .cold = round == 3 };

                read_dump(path, &space, time_sample, &sum);
                print_message("%" PRIu64 " samples of %.1f frames, us a sample: %.2f (%s)\n",
                              sum.samples, (double)sum.frames / (double)sum.samples,
                              (double)sum.ns / 1e3 / (double)sum.samples, names[round]);
        }
        space_done(&space);
}

static void test_host(void **state)
{
        char *argv[] = { (char *)host_path, dump_path, NULL };

        (void)state;
        new_dump();
        run(argv, NULL);
        if (timing)
                time_dump(dump_path);
        check_dump(dump_path, in_host, sizeof(in_host) / sizeof(*in_host));
        unlink(dump_path);
}

static void check_luajit(const char *luajit, char *const settings[])
{
        char *argv[] = { (char *)luajit, (char *)script_path, (char *)module_path, dump_path,
                         NULL };

        print_message("%s\n", luajit);
        new_dump();
        run(argv, settings);
        if (timing)
                time_dump(dump_path);
        check_dump(dump_path, in_lua, sizeof(in_lua) / sizeof(*in_lua));
        unlink(dump_path);
}

static void test_luajit(void **state)
{
        (void)state;
        if (access("/usr/bin/luajit", X_OK) != 0)
                skip();
        check_luajit("/usr/bin/luajit", NULL);
}

static void test_other_luajits(void **state)
{
        (void)state;
        each_luajit(check_luajit);
}

/* --- input that lies --- */

static void hostile_sample(void *ctx, struct space *space, const struct sample *sample)
{
        struct ls_native_frame frames[16];
        struct ls_unwind_input in;
        enum ls_unwind_end end;
        unsigned *seed = ctx;
        struct sample copy = *sample;

        copy.stack = malloc(sample->head.size + 1);
        for (int round = 0; round < 20; round++) {
                memcpy(copy.stack, sample->stack, sample->head.size);
                for (int i = 0; i < 20 && sample->head.size > 8; i++) {
                        uint64_t value = ((uint64_t)rand_r(seed) << 33) ^ (uint64_t)rand_r(seed);
                        size_t at = (size_t)rand_r(seed) % (sample->head.size - 8) & ~(size_t)7;

                        /* wild, into the stack, or into code */
                        value = i % 3 == 0   ? value
                                : i % 3 == 1 ? sample->head.reg[LS_REG_RSP] + value % 16384
                                             : sample->head.reg[LS_REG_IP] + value % 4096;
                        memcpy(copy.stack + at, &value, 8);
                }
                to_input(&copy, &in);
                in.stack_len = round % 4 ? copy.head.size
                                         : (size_t)rand_r(seed) % (copy.head.size + 1);
                in.reg[rand_r(seed) % LS_NREGS] ^= (uint64_t)rand_r(seed) << (rand_r(seed) % 40);
                in.known = (uint32_t)rand_r(seed) | AGENT_KNOWS;
                for (size_t n = ls_unwind(space->unwinder, &in, frames, 16, &end); n > 1; n--)
                        assert_true(frames[n - 1].sp > frames[n - 2].sp);
        }
        free(copy.stack);
}

static void test_hostile(void **state)
{
        char *argv[] = { (char *)host_path, dump_path, NULL };
        static struct space space;
        unsigned seed = 1;

        (void)state;
        new_dump();
        run(argv, NULL);
        space_init(&space);
        read_dump(dump_path, &space, hostile_sample, &seed);
        space_done(&space);
        unlink(dump_path);
}

static void test_eval(void **state)
{
        /* what the linker writes for a PLT: rsp + 8 + ((rip & 15) >= 11 ? 8 : 0) */
        const Dwarf_Op plt[] = { { 0x77, 8, 0, 0 }, { 0x80, 0, 0, 0 }, { 0x3f, 0, 0, 0 },
                                 { 0x1a, 0, 0, 0 }, { 0x3b, 0, 0, 0 }, { 0x2a, 0, 0, 0 },
                                 { 0x33, 0, 0, 0 }, { 0x24, 0, 0, 0 }, { 0x22, 0, 0, 0 } };
        const Dwarf_Op empty_stack[] = { { 0x22, 0, 0, 0 } },
                       drop[] = { { 0x33, 0, 0, 0 }, { 0x13, 0, 0, 0 } };
        Dwarf_Op many[40];
        uint64_t reg[LS_NREGS] = { 0 }, value;
        struct ls_cfi_values v = { .reg = reg, .known = 1u << LS_REG_RSP | 1u << LS_REG_IP };

        (void)state;
        reg[LS_REG_RSP] = 0x1000;
        reg[LS_REG_IP] = 0x400006;
        assert_int_equal(ls_cfi_eval(plt, 9, &v, &value), 0);
        assert_int_equal(value, 0x1008);
        reg[LS_REG_IP] = 0x40000b;
        assert_int_equal(ls_cfi_eval(plt, 9, &v, &value), 0);
        assert_int_equal(value, 0x1010);
        assert_int_equal(ls_cfi_eval(empty_stack, 1, &v, &value), -EINVAL);
        assert_int_equal(ls_cfi_eval(drop, 2, &v, &value), -EINVAL);
        for (int i = 0; i < 40; i++)
                many[i] = drop[0];
        assert_int_equal(ls_cfi_eval(many, 40, &v, &value), -EINVAL);
        v.known = 0;
        assert_int_equal(ls_cfi_eval(plt, 9, &v, &value), -EINVAL);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_eval),    cmocka_unit_test(test_host),
                cmocka_unit_test(test_luajit),  cmocka_unit_test(test_other_luajits),
                cmocka_unit_test(test_hostile),
        };

        for (; argc > 1 && !strncmp(argv[1], "--", 2); argc--, argv++) {
                table |= !strcmp(argv[1], "--table");
                timing |= !strcmp(argv[1], "--time");
        }
        if (argc != 4)
                return 129;
        host_path = argv[1];
        module_path = argv[2];
        script_path = argv[3];
        return cmocka_run_group_tests(tests, NULL, NULL);
}
