/* record/attach/filters.c: what a seccomp filter says to a system call of which not all is
 * known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>

#include "record/attach/filters.h"

#define NR offsetof(struct seccomp_data, nr)
#define ARG_LOW(i) (offsetof(struct seccomp_data, args) + 8 * (i))
#define ARG_HIGH(i) (ARG_LOW(i) + 4)
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define IF(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define GIVE(action) BPF_STMT(BPF_RET | BPF_K, action)
#define JUDGE(code, call) judge(code, sizeof(code) / sizeof(*(code)), call, NULL)

static const struct ls_call mapping = { SYS_mmap, "mmap", 1u << 2, 0, { 0, 0, 5 } };
static const struct ls_call big = { SYS_clone, "clone", 1u << 0, 0, { 0x100000003 } };

static enum ls_verdict judge(const struct sock_filter *code, unsigned n, const struct ls_call *call,
                             int *ret_errno)
{
        unsigned budget = 1000000;
        int err;

        return ls_seccomp_judge(code, n, call, &budget, ret_errno ? ret_errno : &err);
}

static void takes_each_action(void **state)
{
        static const struct { uint32_t action; enum ls_verdict verdict; } rows[] = {
                { SECCOMP_RET_ALLOW, LS_VERDICT_ALLOWED }, { SECCOMP_RET_LOG, LS_VERDICT_ALLOWED },
                { SECCOMP_RET_ERRNO | EPERM, LS_VERDICT_FAILS },
                { SECCOMP_RET_TRACE | 1, LS_VERDICT_UNKNOWN },
                { SECCOMP_RET_USER_NOTIF, LS_VERDICT_UNKNOWN },
                { SECCOMP_RET_TRAP, LS_VERDICT_ENDS },
                { SECCOMP_RET_KILL_THREAD, LS_VERDICT_ENDS },
                { SECCOMP_RET_KILL_PROCESS, LS_VERDICT_ENDS },
                { 0x12340000, LS_VERDICT_ENDS },
        };

        (void)state;
        for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                const struct sock_filter code[] = { GIVE(rows[i].action) };
                int err = -1;

                assert_int_equal(judge(code, 1, &mapping, &err), rows[i].verdict);
                assert_int_equal(err, rows[i].verdict == LS_VERDICT_FAILS ? EPERM : 0);
        }
}

static void finds_a_call_by_its_number_and_processor(void **state)
{
        const struct sock_filter code[] = {
                LOAD(offsetof(struct seccomp_data, arch)), IF(AUDIT_ARCH_X86_64, 0, 2), LOAD(NR),
                IF(SYS_mmap, 1, 0),
                GIVE(SECCOMP_RET_KILL_PROCESS), GIVE(SECCOMP_RET_ALLOW),
        };

        (void)state;
        assert_int_equal(JUDGE(code, &mapping), LS_VERDICT_ALLOWED);
        assert_int_equal(JUDGE(code, &big), LS_VERDICT_ENDS);
}

static void knows_the_arguments_that_it_is_told(void **state)
{
        const struct sock_filter masked[] = { LOAD(ARG_LOW(2)),
                                              BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 4), IF(4, 0, 1),
                                              GIVE(SECCOMP_RET_ERRNO | EACCES),
                                              GIVE(SECCOMP_RET_ALLOW) };
        const struct sock_filter high[] = { LOAD(ARG_HIGH(0)), IF(1, 0, 1),
                                            GIVE(SECCOMP_RET_ALLOW), GIVE(SECCOMP_RET_TRAP) };
        const struct sock_filter any[] = { LOAD(ARG_LOW(0)), IF(7, 0, 1), GIVE(SECCOMP_RET_TRAP),
                                           GIVE(SECCOMP_RET_ALLOW) };
        const struct sock_filter both[] = { LOAD(ARG_LOW(0)), IF(7, 0, 1), GIVE(SECCOMP_RET_ALLOW),
                                            GIVE(SECCOMP_RET_ALLOW) };
        const struct sock_filter none[] = { LOAD(ARG_LOW(0)),
                                            BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0), IF(0, 1, 0),
                                            GIVE(SECCOMP_RET_TRAP), GIVE(SECCOMP_RET_ALLOW) };
        const struct sock_filter given[] = { LOAD(ARG_LOW(0)), BPF_STMT(BPF_RET | BPF_A, 0) };

        (void)state;
        assert_int_equal(JUDGE(masked, &mapping), LS_VERDICT_FAILS);
        assert_int_equal(JUDGE(high, &big), LS_VERDICT_ALLOWED);
        assert_int_equal(JUDGE(any, &mapping), LS_VERDICT_ENDS);        /* it could be 7 */
        assert_int_equal(JUDGE(both, &mapping), LS_VERDICT_ALLOWED);
        assert_int_equal(JUDGE(none, &mapping), LS_VERDICT_ALLOWED);
        assert_int_equal(JUDGE(given, &mapping), LS_VERDICT_UNKNOWN);
        assert_int_equal(JUDGE(given, &big), LS_VERDICT_ENDS);          /* 3 is the thread's end */
}

static void computes_as_the_kernel_does(void **state)
{
        static const struct { uint16_t op; uint32_t k, want; } rows[] = {
                { BPF_ADD, 3, 15 }, { BPF_SUB, 13, 0xffffffff }, { BPF_MUL, 3, 36 },
                { BPF_DIV, 5, 2 }, { BPF_AND, 10, 8 },
                { BPF_OR, 3, 15 }, { BPF_XOR, 6, 10 }, { BPF_LSH, 2, 48 }, { BPF_RSH, 2, 3 },
                { BPF_NEG, 0, 0xfffffff4 },
        };

        (void)state;
        for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
                for (unsigned x = 0; x < 2; x++) {
                        const struct sock_filter code[] = {
                                BPF_STMT(BPF_LDX | BPF_IMM, rows[i].k), BPF_STMT(BPF_STX, 5),
                                BPF_STMT(BPF_LDX | BPF_IMM, 0),
                                BPF_STMT(BPF_LDX | BPF_MEM, 5), BPF_STMT(BPF_LD | BPF_IMM, 12),
                                BPF_STMT(BPF_ALU | rows[i].op | (x ? BPF_X : BPF_K), rows[i].k),
                                BPF_STMT(BPF_MISC | BPF_TAX, 0),
                                BPF_STMT(BPF_LD | BPF_IMM, rows[i].want),
                                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
                                GIVE(SECCOMP_RET_ALLOW), GIVE(SECCOMP_RET_TRAP),
                        };

                        assert_int_equal(JUDGE(code, &mapping), LS_VERDICT_ALLOWED);
                }
}

/* A hostile filter: no ways without number, no way behind its end, no instruction that filters do
 * not have. */
static void gives_up_within_its_bounds(void **state)
{
        static struct sock_filter code[BPF_MAXINSNS];
        const struct sock_filter beyond[] = { BPF_JUMP(BPF_JMP | BPF_JA, 0xfffffff0u, 0, 0),
                                              GIVE(SECCOMP_RET_ALLOW) };
        const struct sock_filter odd[] = { BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
                                           GIVE(SECCOMP_RET_ALLOW) };
        const struct sock_filter far[] = { LOAD(64), GIVE(SECCOMP_RET_ALLOW) };
        const struct sock_filter cell[] = { BPF_STMT(BPF_ST, 16), GIVE(SECCOMP_RET_ALLOW) };
        const struct sock_filter zero[] = { BPF_STMT(BPF_LDX | BPF_IMM, 0),
                                            BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0),
                                            GIVE(SECCOMP_RET_ALLOW) };
        unsigned budget = 100000;
        int err;

        (void)state;
        for (unsigned i = 0; i + 1 < BPF_MAXINSNS; i++)
                code[i] = i % 2 ? (struct sock_filter)IF(i, 0,
                1) : (struct sock_filter)LOAD(ARG_LOW(0));
        code[BPF_MAXINSNS - 1] = (struct sock_filter)GIVE(SECCOMP_RET_ALLOW);
        assert_int_equal(ls_seccomp_judge(code, BPF_MAXINSNS, &mapping, &budget, &err),
        LS_VERDICT_UNKNOWN);
        assert_int_equal(budget, 0);
        assert_int_equal(JUDGE(beyond, &mapping), LS_VERDICT_UNKNOWN);
        assert_int_equal(JUDGE(odd, &mapping), LS_VERDICT_UNKNOWN);
        assert_int_equal(JUDGE(far, &mapping), LS_VERDICT_UNKNOWN);
        assert_int_equal(JUDGE(cell, &mapping), LS_VERDICT_UNKNOWN);
        assert_int_equal(JUDGE(zero, &mapping), LS_VERDICT_UNKNOWN);
        assert_int_equal(judge(beyond, 0, &mapping, NULL), LS_VERDICT_UNKNOWN);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(takes_each_action),
                cmocka_unit_test(finds_a_call_by_its_number_and_processor),
                cmocka_unit_test(knows_the_arguments_that_it_is_told),
                cmocka_unit_test(computes_as_the_kernel_does),
                cmocka_unit_test(gives_up_within_its_bounds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
