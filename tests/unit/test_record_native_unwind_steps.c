/* A stack walk at every instruction: LuaJIT runs step by step, and from each to the next the stack
 * may change by one frame that comes or goes, or that another one takes the place of (a jump to
 * another function). Arguments: tests/hosts/native_module.c as a module,
 * tests/lua/native_steps.lua. */
#include "tests/unit/unwind_fixture.h"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS_MAX 4000          /* between two marks */
#define STACK_MAX 32768

/* lua_State and the C frame of a LuaJIT with GC64 (lj_obj.h, lj_frame.h). */
enum { STATE_CFRAME = 80, CFRAME_PREVIOUS = 32, CFRAME_SIZE = 80 };

static const char *module_path, *script_path;

struct stepper {
        pid_t pid;
        struct space space;
        uint64_t vm, stack_end;
        int on;
        char before[16384];             /* the chain at the step before, empty = there was none */
        unsigned steps, all, jumps, incomplete, marks;
};

static uint64_t word(pid_t pid, uint64_t addr)
{
        uint64_t value = 0;
        struct iovec to = { &value, 8 }, from = { (void *)addr, 8 };

        return process_vm_readv(pid, &to, 1, &from, 1, 0) == 8 ? value : 0;
}

static void read_maps(struct stepper *s)
{
        static char text[1 << 18];
        char path[64], *line;
        size_t n;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/%d/maps", s->pid);
        f = fopen(path, "re");
        assert_non_null(f);
        n = fread(text, 1, sizeof(text) - 1, f);
        text[n] = 0;
        fclose(f);
        line = strstr(text, "[stack]");
        assert_non_null(line);
        while (line > text && line[-1] != '\n')
                line--;
        assert_int_equal(sscanf(line, "%*x-%" SCNx64, &s->stack_end), 1);
        set_maps(&s->space, text);
}

static void read_sample(struct stepper *s, struct sample *sample, uint8_t *stack)
{
        struct user_regs_struct u;
        struct iovec to = { stack, STACK_MAX }, from;
        uint64_t cframe = word(s->pid, s->vm + STATE_CFRAME) & ~UINT64_C(7);

        assert_int_equal(ptrace(PTRACE_GETREGS, s->pid, NULL, &u), 0);
        memset(sample, 0, sizeof(*sample));
        sample->stack = stack;
        sample->head.reg[LS_REG_IP] = u.rip;
        sample->head.reg[LS_REG_RSP] = u.rsp;
        sample->head.reg[LS_REG_RBP] = u.rbp;
        sample->head.reg[LS_REG_RBX] = u.rbx;
        sample->head.reg[LS_REG_R12] = u.r12;
        sample->head.reg[LS_REG_R13] = u.r13;
        sample->head.reg[LS_REG_R14] = u.r14;
        sample->head.reg[LS_REG_R15] = u.r15;
        to.iov_len = s->stack_end - u.rsp < STACK_MAX ? s->stack_end - u.rsp : STACK_MAX;
        from = (struct iovec){ (void *)u.rsp, to.iov_len };
        assert_int_equal(process_vm_readv(s->pid, &to, 1, &from, 1, 0), to.iov_len);
        sample->head.size = (uint32_t)to.iov_len;
        while (cframe && sample->head.n_cframes < DUMP_CFRAMES &&
               cframe + 2 * CFRAME_SIZE <= s->stack_end) {
                uint64_t previous = word(s->pid, cframe + CFRAME_PREVIOUS) & ~UINT64_C(7);

                sample->head.cframes[sample->head.n_cframes++] = cframe;
                if (previous && previous <= cframe)
                        break;
                cframe = previous ? previous : cframe + CFRAME_SIZE;
        }
}

/* Frames of a chain that are not at the root of the other one, to the depth where they are the
 * same. */
static void differing(const char *a, const char *b, unsigned *ret_a, unsigned *ret_b)
{
        size_t i = strlen(a), j = strlen(b), same_i = i, same_j = j;

        while (i && j && a[i - 1] == b[j - 1]) {
                i--, j--;
                if ((!i || a[i - 1] == '<') && (!j || b[j - 1] == '<'))
                        same_i = i, same_j = j;
        }
        *ret_a = *ret_b = 0;
        for (size_t k = 0; k < same_i; k++)
                *ret_a += a[k] == '<' || k + 1 == same_i;
        for (size_t k = 0; k < same_j; k++)
                *ret_b += b[k] == '<' || k + 1 == same_j;
        *ret_a -= same_i && a[same_i - 1] == '<';
        *ret_b -= same_j && b[same_j - 1] == '<';
}

static void look(struct stepper *s)
{
        static uint8_t stack[STACK_MAX];
        struct sample sample;
        enum ls_unwind_end end;
        unsigned gone = 0, come = 0;
        char chain[sizeof(s->before)];

        read_sample(s, &sample, stack);
        chain_of(&s->space, &sample, chain, sizeof(chain), &end);
        s->all++;
        if (end != LS_UNWIND_COMPLETE) {
                s->incomplete++;
                print_message("end %d: %s\n", (int)end, chain);
        }
        if (*s->before)
                differing(s->before, chain, &gone, &come);
        if (gone > 1 || come > 1) {
                s->jumps++;
                print_message("from %.300s\n  to %.300s\n", s->before, chain);
        }
        strcpy(s->before, chain);
}

static void stopped(struct stepper *s, int sig)
{
        struct user_regs_struct u;
        siginfo_t info;
        int pass = sig == SIGTRAP ? 0 : sig;

        assert_int_equal(ptrace(PTRACE_GETSIGINFO, s->pid, NULL, &info), 0);
        if (sig == SIGTRAP && info.si_code == SI_KERNEL) {              /* a mark */
                assert_int_equal(ptrace(PTRACE_GETREGS, s->pid, NULL, &u), 0);
                s->vm = u.rax;
                s->on = !s->on;
                s->steps = 0;
                s->marks++;
                *s->before = 0;
                if (s->on)
                        read_maps(s);
        } else if (s->on && sig == SIGTRAP && ++s->steps <= STEPS_MAX) {
                look(s);
        }
        ptrace(s->on && s->steps <= STEPS_MAX ? PTRACE_SINGLESTEP : PTRACE_CONT, s->pid, NULL,
               (void *)(intptr_t)pass);
}

static void check_luajit(const char *luajit, char *const settings[])
{
        static struct stepper s;
        int status;

        memset(&s, 0, sizeof(s));
        space_init(&s.space);
        s.pid = fork();
        assert_true(s.pid >= 0);
        if (s.pid == 0) {
                for (int i = 0; settings && settings[i]; i++)
                        putenv(settings[i]);
                ptrace(PTRACE_TRACEME, 0, NULL, NULL);
                execl(luajit, luajit, script_path, module_path, (char *)NULL);
                _exit(127);
        }
        /* The first stop is exec's. */
        assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
        assert_true(WIFSTOPPED(status));
        ptrace(PTRACE_CONT, s.pid, NULL, NULL);
        while (waitpid(s.pid, &status, 0) == s.pid && WIFSTOPPED(status))
                stopped(&s, WSTOPSIG(status));
        space_done(&s.space);
        print_message("%s: %u instructions, %u stacks incomplete, %u jumps\n", luajit, s.all,
                      s.incomplete, s.jumps);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_int_equal(s.marks, 16);
        assert_true(s.all > 5000);
        assert_int_equal(s.incomplete, 0);
        /* Entering a callback of the FFI, in code that the JIT compiler made for it. */
        assert_true(s.jumps <= 4);
}

static void every_instruction(void **state)
{
        (void)state;
        if (access("/usr/bin/luajit", X_OK) != 0)
                skip();
        check_luajit("/usr/bin/luajit", NULL);
}

static void every_instruction_of_others(void **state)
{
        (void)state;
        each_luajit(check_luajit);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_instruction), cmocka_unit_test(every_instruction_of_others),
        };

        if (argc != 3)
                return 129;
        module_path = argv[1];
        script_path = argv[2];
        return cmocka_run_group_tests(tests, NULL, NULL);
}
