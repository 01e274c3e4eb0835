/* libsample/inject/decode.c and patch.c: instructions are measured right, patched functions still
 * work, from several threads too, and what cannot be moved safely is refused. */
#include "libsample/inject/patch.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "libsample/inject/decode.h"

#define NTHREADS 4
#define NCALLS 1000000

static void test_lengths(void **state)
{
        static const struct { uint8_t length, flow; const char *bytes;
        } rows[] = {
                { 1, LS_FLOW_NEXT, "\x55" },                                 /* push rbp */
                { 2, LS_FLOW_NEXT, "\x41\x57" },                             /* push r15 */
                { 3, LS_FLOW_NEXT, "\x48\x89\xe5" },                         /* mov rbp, rsp */
                { 4, LS_FLOW_NEXT, "\x48\x83\xec\x18" },                     /* sub rsp, 24 */
                { 7, LS_FLOW_NEXT, "\x48\x81\xec\x00\x10\x00\x00" },         /* sub rsp, 4096 */
                { 4, LS_FLOW_NEXT, "\xf3\x0f\x1e\xfa" },                     /* endbr64 */
                { 7, LS_FLOW_NEXT, "\x48\x8d\x05\x10\x00\x00\x00" },         /* lea rax, [rip+16] */
                { 5, LS_FLOW_NEXT, "\x48\x8b\x44\x24\x08" },                 /* mov rax, [rsp+8] */
                { 8, LS_FLOW_NEXT, "\x48\x8b\x04\x25\x00\x00\x00\x00" },     /* mov rax, [abs] */
                { 9, LS_FLOW_NEXT, "\x64\x48\x8b\x04\x25\x28\x00\x00\x00" }, /* mov rax, fs:[40] */
                { 10, LS_FLOW_NEXT,
                  "\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08" },  /* mov rax, imm64 */
                { 5, LS_FLOW_NEXT, "\xb8\x01\x00\x00\x00" },     /* mov eax, 1 */
                { 4, LS_FLOW_NEXT, "\x66\xb8\x01\x00" },         /* mov ax, 1 */
                { 5, LS_FLOW_NEXT, "\x66\x81\xc1\x34\x12" },     /* add cx, imm16 */
                { 3, LS_FLOW_NEXT, "\xf6\xc1\x01" },             /* test cl, 1 */
                { 2, LS_FLOW_NEXT, "\xf7\xd8" },                 /* neg eax */
                { 6, LS_FLOW_NEXT, "\xf7\xc1\x00\x01\x00\x00" }, /* test ecx, 256 */
                { 3, LS_FLOW_NEXT, "\xc5\xf8\x77" },             /* vzeroupper */
                { 4, LS_FLOW_NEXT, "\xc5\xf8\x57\xc0" },         /* vxorps xmm0, xmm0, xmm0 */
                { 5, LS_FLOW_NEXT, "\xc4\xe2\x79\x18\x00" },     /* vbroadcastss xmm0, [rax] */
                { 4, LS_FLOW_NEXT, "\x66\x0f\x6f\x00" },         /* movdqa xmm0, [rax] */
                { 6, LS_FLOW_NEXT, "\x66\x0f\x3a\x0f\xc1\x08" }, /* palignr xmm0, xmm1, 8 */
                { 9, LS_FLOW_NEXT, "\x66\x0f\x1f\x84\x00\x00\x00\x00\x00" }, /* nop */
                { 4, LS_FLOW_NEXT, "\xc8\x10\x00\x00" },                     /* enter 16, 0 */
                { 5, LS_FLOW_CALL, "\xe8\x00\x00\x00\x00" },
                { 5, LS_FLOW_JUMP, "\xe9\x00\x00\x00\x00" },
                { 2, LS_FLOW_JUMP, "\xeb\x10" },
                { 2, LS_FLOW_BRANCH, "\x74\x10" },
                { 6, LS_FLOW_BRANCH, "\x0f\x84\x00\x00\x00\x00" },
                { 2, LS_FLOW_LOOP, "\xe2\xfe" },
                { 1, LS_FLOW_END, "\xc3" },
                { 6, LS_FLOW_END, "\xff\x25\x00\x00\x00\x00" }, /* jmp [rip] */
                { 2, LS_FLOW_END, "\x0f\x0b" },                 /* ud2 */
        };

        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                uint8_t code[16] = { 0 };
                struct ls_insn insn;

                memcpy(code, rows[i].bytes, rows[i].length);
                assert_int_equal(ls_decode(code, sizeof code, &insn), 0);
                assert_int_equal(insn.length, rows[i].length);
                assert_int_equal(insn.flow, rows[i].flow);
                /* and not beyond the end of the function */
                assert_true(ls_decode(code, rows[i].length - 1u, &insn) < 0);
        }
}

static void test_unknown_instructions(void **state)
{
        static const char *const rows[] = { "\x62\xf1\x7c\x48\x28\xc0",
                                            "\x67\x8b\x00",
                                            "\x06",
                                            "\x9a",
                                            "\xd6",
                                            "\x48\x48\x89\xe5",
                                            "\x66\xe8\x00\x00\x00\x00",
                                            "\x0f\x04" };
        struct ls_insn insn;

        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                uint8_t code[16] = { 0 };

                memcpy(code, rows[i], strlen(rows[i]) + 1);
                assert_true(ls_decode(code, sizeof code, &insn) < 0);
        }
}

/* No sequence of bytes may read beyond its end or give a length of nothing. */
static void test_any_bytes(void **state)
{
        uint32_t seed = 1;

        (void)state;
        for (int i = 0; i < 300000; i++) {
                uint8_t code[15];
                struct ls_insn insn;
                size_t n = 1 + (size_t)i % sizeof code;

                for (size_t k = 0; k < n; k++)
                        code[k] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
                if (ls_decode(code, n, &insn) == 0) {
                        assert_in_range(insn.length, 1, n);
                        if (insn.rel_at)
                                assert_in_range(insn.rel_at + insn.rel_size, 2, insn.length);
                }
        }
}

/* Counter is what add_counter reads. Its first instruction is as long as the jump that replaces it,
 * whatever the compiler's options are: no thread can stand within those bytes. Where one could,
 * ls_patch_hold is needed. */
int counter = 7;
int add_counter(int a, int b);
__asm__(".text\n"
        ".balign 16\n"
        ".type add_counter, @function\n"
        "add_counter:\n"
        "       movl counter(%rip), %eax\n"
        "       imull %esi, %edi\n"
        "       addl %edi, %eax\n"
        "       ret\n"
        ".size add_counter, .-add_counter\n");

static struct ls_patch simple = { .name = "add_counter", .target = (void *)add_counter };

static int replacement(int a, int b)
{
        return ((int (*)(int, int))simple.original)(a, b) + 1000;
}

static volatile int wrong;

static void *call_often(void *arg)
{
        int (*volatile fn)(int, int) = add_counter;

        for (int i = 0; i < NCALLS; i++) {
                int got = fn(i, 3), want = 7 + i * 3;

                if (got != want && got != want + 1000)
                        wrong = 1;
                if (arg && got != want + 1000)
                        wrong = 1;
        }
        return NULL;
}

static void test_patched_while_threads_run(void **state)
{
        pthread_t threads[NTHREADS];

        (void)state;
        simple.replacement = (void *)replacement;
        for (int i = 0; i < NTHREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, call_often, NULL), 0);
        ls_patch_install(&simple, 1, PROT_READ | PROT_EXEC, 0);
        if (simple.why)
                print_error("%s\n", simple.why);
        assert_null(simple.why);
        for (int i = 0; i < NTHREADS; i++)
                pthread_join(threads[i], NULL);
        for (int i = 0; i < NTHREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, call_often, &simple), 0);
        for (int i = 0; i < NTHREADS; i++)
                pthread_join(threads[i], NULL);
        assert_int_equal(wrong, 0);
}

/* Hand-made functions at a chosen place in a page of code. */
static uint8_t *code_page;

static void *place(size_t offset, const char *bytes, size_t n)
{
        if (!code_page)
                code_page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(code_page, MAP_FAILED);
        memset(code_page, 0xcc, 4096);
        memcpy(code_page + offset, bytes, n);
        return code_page + offset;
}

static const char *try_patch(void *target, size_t size, int single_threaded, void **ret_original)
{
        struct ls_patch patch = {
                .name = "x", .target = target, .size = size, .replacement = (void *)replacement
        };

        ls_patch_install(&patch, 1, PROT_READ | PROT_WRITE | PROT_EXEC, single_threaded);
        if (ret_original)
                *ret_original = patch.original;
        return patch.why;
}

static void test_refused(void **state)
{
        static const struct { const char *bytes; size_t n; const char *why;
        } rows[] = {
                { "\xc3", 1, "short" },
                { "\x90\x90\x90\xc3", 4, "short" },
                { "\xeb\x10\x90\x90\x90\x90", 6, "short" }, /* jumps away at once */
                { "\x62\xf1\x7c\x48\x28\xc0\xc3", 7, "not known" },
                { "\xb8\x01\x00\x00\x00\x90\x62\xf1\xc3", 9, "not known" },
                { "\x90\x90\x90\x90\x90\x90\xeb\xfb", 8, "branches" }, /* back to its fourth byte */
                { "\x90\x90\x90\x90\x90\x0f\x84\xf7\xff\xff\xff\xc3", 12, "branches" },
                { "\xe2\xfe\x90\x90\x90\x90\xc3", 7, "moved" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                void *target = place(64, rows[i].bytes, rows[i].n);
                uint8_t before[64];
                const char *why;

                memcpy(before, target, sizeof before);
                why = try_patch(target, rows[i].n, 1, NULL);
                assert_non_null(why);
                assert_non_null(strstr(why, rows[i].why));
                assert_memory_equal(before, target, sizeof before);
        }
        assert_non_null(try_patch(NULL, 0, 1, NULL));
}

/* A branch back to the entry itself is as good as a call of it. */
static void test_branch_to_entry(void **state)
{
        void *target = place(64, "\x90\x90\x90\x90\x90\xeb\xf9", 7);

        (void)state;
        assert_null(try_patch(target, 7, 1, NULL));
}

/* A branch and data relative to rip in the part that moves. */
static void test_relative_operands(void **state)
{
        static const char branch[] = "\x85\xff"                 /* test edi, edi */
                                     "\x74\x07"                 /* je 11 */
                                     "\x8d\x04\x3f"             /* lea eax, [rdi+rdi] */
                                     "\x83\xc0\x01"             /* add eax, 1 */
                                     "\xc3"
                                     "\xb8\x2a\x00\x00\x00\xc3";/* mov eax, 42; ret */
        static const char data[] = "\x8b\x05\x02\x00\x00\x00"   /* mov eax, [rip+2] */
                                   "\xc3\x90\x39\x30\x00\x00";  /* 12345 */
        void *original;
        void *target = place(128, branch, sizeof branch - 1);

        (void)state;
        assert_null(try_patch(target, sizeof branch - 1, 0, &original));
        assert_int_equal(((int (*)(int))original)(0), 42);
        assert_int_equal(((int (*)(int))original)(5), 11);
        assert_int_equal(*(uint8_t *)target, 0xe9);
        target = place(256, data, sizeof data - 1);
        assert_null(try_patch(target, 7, 0, &original));
        assert_int_equal(((int (*)(void))original)(), 12345);
}

/* One store must cover the entry unless nobody else runs. */
static void test_alignment(void **state)
{
        static const char fn[] = "\xb8\x07\x00\x00\x00\xc3";    /* mov eax, 7; ret */

        (void)state;
        for (size_t offset = 0; offset < 16; offset++) {
                void *original, *target = place(512 + offset, fn, sizeof fn - 1);
                const char *why = try_patch(target, sizeof fn - 1, 0, &original);

                assert_int_equal(why != NULL, offset > 11);
                if (why)
                        assert_null(try_patch(target, sizeof fn - 1, 1, &original));
                assert_int_equal(((int (*)(void))original)(), 7);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lengths),
                cmocka_unit_test(test_unknown_instructions),
                cmocka_unit_test(test_any_bytes),
                cmocka_unit_test(test_patched_while_threads_run),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_branch_to_entry),
                cmocka_unit_test(test_relative_operands),
                cmocka_unit_test(test_alignment),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
