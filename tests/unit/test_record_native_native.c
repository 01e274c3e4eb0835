/* Native stacks as the agent sends them, into a trace: copies that build on each other, records
 * that lie, libraries that come and go. The stacks are this program's own; the argument is a shared
 * library to load. */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "formats/profile.h"
#include "record/native/native.h"
#include "tests/hosts/native_calls.h"
#include "tests/hosts/native_dump.h"
#include "formats/trace/reader.h"

static const char *library_path;

/* --- a stack of this program, taken in a signal handler --- */

static struct taken { struct ls_native head; uint8_t bytes[65536]; } taken;

/* All of it, also what a sanitizer has put between variables. */
__attribute__((no_sanitize("address"))) static void copy(uint8_t *to, uint64_t from, size_t n)
{
        for (size_t i = 0; i < n; i++)
                to[i] = ((const volatile uint8_t *)from)[i];
}

static void take(int sig, siginfo_t *info, void *context)
{
        const greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
        size_t size = dump_stack_end - (uint64_t)r[REG_RSP];

        (void)sig, (void)info;
        taken.head = (struct ls_native){ .ip = (uint64_t)r[REG_RIP],
                                         .sp = (uint64_t)r[REG_RSP],
                                         .bp = (uint64_t)r[REG_RBP],
                                         .bx = (uint64_t)r[REG_RBX],
                                         .r12 = (uint64_t)r[REG_R12],
                                         .r13 = (uint64_t)r[REG_R13],
                                         .r14 = (uint64_t)r[REG_R14],
                                         .r15 = (uint64_t)r[REG_R15] };
        taken.head.nbytes = (uint32_t)(size < sizeof(taken.bytes) ? size : sizeof(taken.bytes));
        taken.head.cut = size > sizeof(taken.bytes);
        copy(taken.bytes, (uint64_t)r[REG_RSP], taken.head.nbytes);
}

static void sample_here(struct native_calls *c)
{
        raise(DUMP_SIGNAL);
        c->left += c->zero;
}

int native_outer(struct native_calls *c);
KEEP int native_outer(struct native_calls *c)
{
        return plain_chain(c) + c->zero;
}

static struct native_calls calls = { .here = sample_here };

/* --- the trace --- */

static struct ls_trace_writer *writer;
static struct ls_ids ids;
static struct ls_mappings mappings;
static struct ls_native_process process;
static struct ls_native_ring ring;
static char trace_path[] = "/tmp/luasample-native-XXXXXX";
static int trace_fd;

static int setup(void **state)
{
        struct sigaction sa = { .sa_sigaction = take, .sa_flags = SA_SIGINFO };

        (void)state;
        strcpy(trace_path + sizeof(trace_path) - 7, "XXXXXX");
        trace_fd = mkstemp(trace_path);
        assert_true(trace_fd >= 0);
        assert_int_equal(ls_trace_writer_open(trace_fd, 1000000, &writer), 0);
        ls_mappings_init(&mappings, writer, NULL, &ids, getpid());
        assert_int_equal(ls_native_init(&process, &mappings), 0);
        memset(&ring, 0, sizeof(ring));
        dump_set_stack_end();
        return sigaction(DUMP_SIGNAL, &sa, NULL);
}

static int teardown(void **state)
{
        (void)state;
        ls_native_ring_done(&ring);
        ls_native_done(&process);
        ls_mappings_done(&mappings);
        if (writer)
                ls_trace_writer_close(writer);
        writer = NULL;
        close(trace_fd);
        unlink(trace_path);
        return 0;
}

/* Sends what was taken with the outermost keep bytes left out. */
static int send(uint32_t keep, const struct ls_native_frame **ret_frames, size_t *ret_n,
                enum ls_unwind_end *ret_end)
{
        static uint8_t record[sizeof(taken)];
        struct ls_native head = taken.head;

        head.nbytes -= keep;
        head.keep = keep;
        memcpy(record, &head, sizeof(head));
        memcpy(record + sizeof(head), taken.bytes, head.nbytes);
        return ls_native_stack(&process, &ring, record, sizeof(head) + head.nbytes, ret_frames,
                               ret_n, ret_end);
}

/* The names of a stack in the trace, "leaf<caller<...", after the recording has ended. */
static void names_of(uint32_t stack, char *ret_names, size_t size)
{
        struct ls_sample_row row = { .event = LS_EVENT_CPU, .stack = stack, .weight = 1 };
        struct ls_profile *p;
        const char *error;

        ls_trace_event(writer, LS_EVENT_CPU, 1000000);
        ls_trace_sample(writer, &row);
        ls_mappings_name_functions(&mappings);
        assert_int_equal(ls_trace_writer_close(writer), 0);
        writer = NULL;
        assert_int_equal(ls_profile_open(trace_path, &p, &error), 0);
        *ret_names = 0;
        for (; stack; stack = p->stacks[stack].parent) {
                const struct ls_function *f =
                        &p->functions[p->locations[p->stacks[stack].location].function];
                size_t len = strlen(ret_names);

                assert_int_equal(f->kind, LS_FUNC_NATIVE);
                assert_true(f->mapping > 0);
                snprintf(ret_names + len, size - len, "%s%s", len ? "<" : "", f->name.s);
        }
        ls_profile_close(p);
}

static uint32_t intern(const struct ls_native_frame *frames, size_t n)
{
        uint32_t stack = 0;

        while (n-- > 0)
                stack = ls_trace_stack(writer, stack, frames[n].label);
        return stack;
}

static void stacks_get_their_names(void **state)
{
        const struct ls_native_frame *frames;
        enum ls_unwind_end end;
        char names[8192];
        size_t n;

        (void)state;
        native_outer(&calls);
        assert_int_equal(send(0, &frames, &n, &end), 0);
        assert_int_equal(end, LS_UNWIND_COMPLETE);
        names_of(intern(frames, n), names, sizeof(names));
        assert_non_null(
                strstr(names,
                       "sample_here<plain_leaf<plain_inner<plain_vla<plain_aligned<plain_chain<"
                       "native_outer<stacks_get_their_names<"));
        assert_non_null(strstr(names, "<main<"));
        assert_int_equal(process.ends[LS_UNWIND_COMPLETE], 1);
}

static void stacks_build_on_the_one_before(void **state)
{
        const struct ls_native_frame *frames;
        struct ls_native_frame whole[LS_NATIVE_FRAMES_MAX];
        enum ls_unwind_end end;
        size_t n, n_whole;

        (void)state;
        native_outer(&calls);
        assert_int_equal(send(0, &frames, &n_whole, &end), 0);
        memcpy(whole, frames, n_whole * sizeof(*frames));
        for (uint32_t keep = 0; keep <= taken.head.nbytes; keep += 8) {
                assert_int_equal(send(keep, &frames, &n, &end), 0);
                assert_int_equal(end, LS_UNWIND_COMPLETE);
                assert_int_equal(n, n_whole);
                assert_memory_equal(frames, whole, n * sizeof(*frames));
        }
        /* After a gap there is nothing to build on. */
        ls_native_gap(&ring);
        assert_int_equal(send(64, &frames, &n, &end), -EINVAL);
        assert_int_equal(send(0, &frames, &n, &end), 0);
        assert_int_equal(send(64, &frames, &n, &end), 0);
        assert_int_equal(process.bad, 1);
}

static void what_was_not_copied_is_told(void **state)
{
        const struct ls_native_frame *frames;
        uint32_t all;
        enum ls_unwind_end end;
        size_t n;

        (void)state;
        native_outer(&calls);
        all = taken.head.nbytes;
        taken.head.nbytes = 256;
        taken.head.cut = 1;
        assert_int_equal(send(0, &frames, &n, &end), 0);
        assert_int_equal(end, LS_UNWIND_TRUNCATED);
        assert_true(n >= 1);
        taken.head.cut = 0;
        assert_int_equal(send(0, &frames, &n, &end), 0);
        assert_int_equal(end, LS_UNWIND_BAD_STACK);
        taken.head.nbytes = 0;
        assert_int_equal(send(0, &frames, &n, &end), 0);
        assert_int_equal(n, 1);
        taken.head.nbytes = all;
}

static void lengths_that_lie_are_refused(void **state)
{
        const struct ls_native_frame *frames;
        struct ls_native head;
        enum ls_unwind_end end;
        size_t n;
        static const struct { uint32_t ncframes, nbytes, keep;
        } lies[] = {
                { 0, 8, 0 },
                { 1, 0, 0 },
                { UINT32_MAX, 0, 0 },
                { 0, UINT32_MAX, 0 },
                { 0, 0, UINT32_MAX },
                { 0x10000000, 0, 0 },
                { 0x0fffffff, UINT32_MAX, 0 },
                { 0, 0, 8 },
        };

        (void)state;
        native_outer(&calls);
        for (unsigned i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
                head = taken.head;
                head.ncframes = lies[i].ncframes;
                head.nbytes = lies[i].nbytes;
                head.keep = lies[i].keep;
                assert_int_equal(ls_native_stack(&process, &ring, &head, sizeof(head), &frames, &n,
                                                 &end),
                                 -EINVAL);
        }
        for (size_t size = 0; size < sizeof(head); size++)
                assert_int_equal(ls_native_stack(&process, &ring, &taken.head, size, &frames, &n,
                                                 &end),
                                 -EINVAL);
        assert_int_equal(process.bad, sizeof(lies) / sizeof(*lies) + sizeof(head));
}

/* A library that was loaded after the mappings were read, and another one in its place. */
static void libraries_come_and_go(void **state)
{
        const struct ls_native_frame *frames;
        int (*chain)(struct native_calls *);
        enum ls_unwind_end end;
        uint64_t addr;
        void *library;
        size_t n;
        int range;

        (void)state;
        native_outer(&calls);
        assert_int_equal(send(0, &frames, &n, &end), 0);
        assert_true(mappings.maps_read_ns != 0);
        library = dlopen(library_path, RTLD_NOW);
        assert_non_null(library);
        chain = (int (*)(struct native_calls *))dlsym(library, "lib_chain");
        assert_non_null(chain);
        chain(&calls);
        /* Not known yet, and the process was looked at a moment ago. */
        assert_int_equal(send(0, &frames, &n, &end), 0);
        assert_int_not_equal(end, LS_UNWIND_COMPLETE);
        mappings.maps_read_ns = 0;
        assert_int_equal(send(0, &frames, &n, &end), 0);
        assert_int_equal(end, LS_UNWIND_COMPLETE);
        addr = (uint64_t)chain;
        range = ls_mappings_find(&mappings, addr);
        assert_true(range >= 0);
        assert_string_equal(strrchr(mappings.ranges[range].path, '/'), strrchr(library_path, '/'));
        dlclose(library);
        /* What an address that nobody knows brings to light. */
        mappings.maps_read_ns = 0;
        assert_int_equal(ls_mappings_find(&mappings, 0x1000), -ENOENT);
        assert_int_equal(mappings.ranges[range].gone, 1);
        assert_true(ls_mappings_find(&mappings, addr) < 0);
        assert_int_equal(send(0, &frames, &n, &end), 0);
        assert_int_not_equal(end, LS_UNWIND_COMPLETE);
}

/* The agent patches code: the kernel then has several mappings where there is one segment. */
static void a_segment_in_pieces_is_one(void **state)
{
        void *library = dlopen(library_path, RTLD_NOW);
        uint64_t addr = (uint64_t)dlsym(library, "lib_chain");
        const struct ls_map_range *r;
        struct ls_rec_mapping rec;
        char path[4096];
        int range;
        uint32_t n;

        (void)state;
        range = ls_mappings_find(&mappings, addr);
        assert_true(range >= 0);
        r = &mappings.ranges[range];
        assert_true(r->file_offset >= 4096);
        /* As the agent has it: longer than what the kernel shows of it in one line. */
        rec = (struct ls_rec_mapping){ .start = r->start - 4096,
                                       .end = r->end + 4096,
                                       .file_offset = r->file_offset - 4096,
                                       .path_len = (uint32_t)strlen(r->path) };
        snprintf(path, sizeof(path), "%s", r->path);
        ls_mappings_done(&mappings);
        ls_mappings_init(&mappings, writer, NULL, &ids, getpid());
        assert_int_equal(ls_mappings_add(&mappings, &rec, path, (const uint8_t *)""), 0);
        assert_int_equal(mprotect((void *)(addr & ~UINT64_C(4095)), 1,
                                  PROT_READ | PROT_WRITE | PROT_EXEC),
                         0);
        ls_mappings_find(&mappings, 0x1000);
        n = mappings.n_ranges;
        assert_true(n > 1);
        for (uint32_t i = 1; i < n; i++)
                assert_true(mappings.ranges[i].start < rec.start ||
                            mappings.ranges[i].start >= rec.end);
        assert_int_equal(mappings.ranges[0].gone, 0);
        assert_int_equal(ls_mappings_find(&mappings, addr), 0);
        dlclose(library);
}

static void memory_of_no_file_is_told_apart(void **state)
{
        uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        uint64_t read_ns;

        (void)state;
        assert_true(code != MAP_FAILED);
        assert_int_equal(ls_mappings_find(&mappings, (uint64_t)code), -ENOEXEC);
        read_ns = mappings.maps_read_ns;
        assert_int_equal(ls_mappings_find(&mappings, (uint64_t)code + 100), -ENOEXEC);
        assert_int_equal(mappings.maps_read_ns, read_ns);
        munmap(code, 4096);
}

static void the_kernel_is_named_as_such(void **state)
{
        int range = ls_mappings_find(&mappings, UINT64_C(0xffffffff81000000));

        (void)state;
        assert_true(range >= 0);
        assert_string_equal(mappings.ranges[range].path, "[kernel]");
        assert_int_equal(ls_mappings_find(&mappings, UINT64_C(0xffffffff81000010)), range);
        mappings.maps_read_ns = 0;
        ls_mappings_find(&mappings, 0x1000);
        assert_int_equal(ls_mappings_find(&mappings, UINT64_C(0xffffffff81000000)), range);
}

/* --- one stack from two --- */

#define C(label_, function_) { .ip = 1, .label = label_, .function = function_ }
#define VM(cframe_) { .ip = 1, .label = 99, .cframe = cframe_, .flags = LS_NATIVE_LUA_VM }
#define JIT(cframe_) { .ip = 1, .cframe = cframe_, .flags = LS_NATIVE_JIT }

static const struct mixing {
        const char *what;
        struct ls_native_frame frames[8];
        struct ls_native_cframe cframes[4];
        struct ls_native_lua lua[6];            /* from the root */
        uint32_t jit;
        uint32_t want[12];                      /* innermost first */
} mixings[] = {
        { "no Lua", { C(11, 1), C(12, 2) }, { { 0 } }, { { 0 } }, 0, { 11, 12 } },
        { "C above and below Lua",
          { C(11, 1), C(12, 2), VM(100), C(13, 3) },
          { { 100, 0, 0 } },
          { { 0, 21 }, { 0, 22 } },
          0,
          { 11, 12, 22, 21, 13 } },
        { "a C function that Lua called is there once",
          { C(11, 1), C(12, 2), VM(100), C(13, 3) },
          { { 100, 0, 0 } },
          { { 0, 21 }, { 2, 22 } },
          0,
          { 11, 22, 21, 13 } },
        { "but not another one",
          { C(11, 1), C(12, 2), VM(100), C(13, 3) },
          { { 100, 0, 0 } },
          { { 0, 21 }, { 1, 22 } },
          0,
          { 11, 12, 22, 21, 13 } },
        { "Lua called by C called by Lua",
          { VM(100), C(11, 1), C(12, 2), VM(200), C(13, 3) },
          { { 100, 0, 0 }, { 200, 1, 0 } },
          { { 0, 21 }, { 2, 22 }, { 0, 23 } },
          0,
          { 23, 11, 22, 21, 13 } },
        { "one coroutine resumed by another",
          { C(11, 1), VM(100), VM(200), C(13, 3) },
          { { 100, 0, 0 }, { 200, 1, 0 } },
          { { 0, 21 }, { 0, 22 } },
          0,
          { 11, 22, 21, 13 } },
        { "compiled code",
          { JIT(100), C(13, 3) },
          { { 100, 0, 0 } },
          { { 0, 21 } },
          31,
          { 31, 21, 13 } },
        { "C called by compiled code",
          { C(11, 1), JIT(100), C(13, 3) },
          { { 100, 0, 0 } },
          { { 0, 21 } },
          31,
          { 11, 31, 21, 13 } },
        { "cut before Lua",
          { C(11, 1) },
          { { 100, 0, 0 } },
          { { 0, 21 }, { 0, 22 } },
          31,
          { 11, 31, 22, 21 } },
        { "cut after some Lua",
          { C(11, 1), VM(100), C(12, 2) },
          { { 100, 0, 0 }, { 200, 1, 0 } },
          { { 0, 21 }, { 0, 22 } },
          0,
          { 11, 22, 12, 21 } },
        { "a C frame that was passed by",
          { C(11, 1), VM(200), C(12, 2) },
          { { 100, 0, 0 }, { 200, 1, 0 } },
          { { 0, 21 }, { 0, 22 } },
          0,
          { 11, 22, 21, 12 } },
        { "an interpreter that nobody knows",
          { C(11, 1), VM(50), C(12, 2), VM(100), C(13, 3) },
          { { 100, 0, 0 } },
          { { 0, 21 } },
          0,
          { 11, 12, 21, 13 } },
        { "counts that lie",
          { C(11, 1), VM(100), C(12, 2), VM(200), C(13, 3) },
          { { 100, 0, 0 }, { 200, UINT32_MAX, 0 }, { 300, 1, 0 } },
          { { 0, 21 }, { 0, 22 } },
          0,
          { 11, 22, 21, 12, 13 } },
        { "frames that one stands for",
          { C(11, 1), VM(100), C(13, 3) },
          { { 100, 0, 0 } },
          { { 0, 21 }, { 0, 22 }, { 5, 0 } },
          0,
          { 11, 22, 21, 13 } },
        { "machine code without Lua", { C(11, 1), JIT(0) }, { { 0 } }, { { 0 } }, 0, { 11, 1 } },
};

static void native_and_lua_frames_are_put_together(void **state)
{
        (void)state;
        for (unsigned i = 0; i < sizeof(mixings) / sizeof(*mixings); i++) {
                const struct mixing *m = &mixings[i];
                uint32_t n = 0, n_cframes = 0, n_lua = 0, n_want = 0, n_mixed;

                while (n < 8 && m->frames[n].ip)
                        n++;
                while (n_cframes < 4 && m->cframes[n_cframes].address)
                        n_cframes++;
                while (n_lua < 6 && (m->lua[n_lua].location || m->lua[n_lua].addr))
                        n_lua++;
                while (n_want < 12 && m->want[n_want])
                        n_want++;
                assert_int_equal(ls_native_mix(&process, m->frames, n, m->cframes, n_cframes,
                                               m->lua, n_lua, m->jit, &n_mixed),
                                 0);
                if (n_mixed != n_want ||
                    memcmp(process.mixed, m->want, n_want * sizeof(*m->want)) != 0)
                        fail_msg("%s: %u locations, first %u", m->what, n_mixed,
                                 n_mixed ? process.mixed[0] : 0);
        }
}

/* The whole way, with Lua frames where the native stack has none: they follow. */
static void mixed_stacks_reach_the_trace(void **state)
{
        static uint8_t record[sizeof(taken)];
        struct ls_function_def def = { .kind = LS_FUNC_PSEUDO };
        struct ls_native_lua lua[2] = { { 0 } };
        enum ls_unwind_end end;
        uint32_t stack, again;
        size_t size;

        (void)state;
        def.identity_name = ls_trace_string(writer, "lua", 3);
        lua[0].location = lua[1].location =
                ls_trace_location(writer, ls_trace_function(writer, &def), 7);
        native_outer(&calls);
        memcpy(record, &taken.head, sizeof(taken.head));
        memcpy(record + sizeof(taken.head), taken.bytes, taken.head.nbytes);
        size = sizeof(taken.head) + taken.head.nbytes;
        assert_int_equal(ls_native_sample(&process, &ring, record, size, lua, 2, 0, &stack, &end),
                         0);
        assert_int_equal(end, LS_UNWIND_COMPLETE);
        assert_true(ring.depth > 8);
        assert_int_equal(ring.locations[0], lua[0].location);
        assert_int_equal(ring.locations[1], lua[0].location);
        assert_int_equal(ring.stacks[ring.depth - 1], stack);
        assert_int_equal(ls_native_sample(&process, &ring, record, size, lua, 2, 0, &again, &end),
                         0);
        assert_int_equal(again, stack);
        assert_int_equal(ls_native_sample(&process, &ring, record, size, lua, 0, 0, &again, &end),
                         0);
        assert_int_not_equal(again, stack);
        assert_int_equal(ls_native_sample(&process, &ring, record, 10, lua, 2, 0, &again, &end),
                         -EINVAL);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(stacks_get_their_names, setup, teardown),
                cmocka_unit_test_setup_teardown(stacks_build_on_the_one_before, setup, teardown),
                cmocka_unit_test_setup_teardown(what_was_not_copied_is_told, setup, teardown),
                cmocka_unit_test_setup_teardown(lengths_that_lie_are_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(libraries_come_and_go, setup, teardown),
                cmocka_unit_test_setup_teardown(a_segment_in_pieces_is_one, setup, teardown),
                cmocka_unit_test_setup_teardown(memory_of_no_file_is_told_apart, setup, teardown),
                cmocka_unit_test_setup_teardown(the_kernel_is_named_as_such, setup, teardown),
                cmocka_unit_test_setup_teardown(native_and_lua_frames_are_put_together, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(mixed_stacks_reach_the_trace, setup, teardown),
        };

        if (argc != 2)
                return 129;
        library_path = argv[1];
        return cmocka_run_group_tests(tests, NULL, NULL);
}
