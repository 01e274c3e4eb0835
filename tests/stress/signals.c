/* The program's own signals on the thread that is sampled: timers of all kinds, handlers on a stack
 * of their own, jumps out of handlers, a hook that a handler sets, and C stacks that the program
 * switches itself. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/stress/stress.h"

static volatile sig_atomic_t seen[65];
static volatile sig_atomic_t wrong;
static char own_stack[64 * 1024];
static volatile int on_own_stack;       /* signal whose handler runs there */

static void handler(int sig)
{
        char block[2048];
        int saved = errno;

        memset(block, sig, sizeof(block));
        if (sig == on_own_stack && (uintptr_t)block - (uintptr_t)own_stack >= sizeof(own_stack))
                wrong = 1;
        for (volatile int i = 0; i < 200; i++)
                block[i % 2048]++;
        seen[sig]++;
        errno = saved;
}

static void on_signal(int sig, void (*fn)(int), int flags)
{
        struct sigaction act = { .sa_handler = fn, .sa_flags = flags };

        if (sigaction(sig, &act, NULL))
                exit(1);
}

static void set_timer(__itimer_which_t which, int us, int again)
{
        struct itimerval value = { { 0, again ? us : 0 }, { 0, us } };

        setitimer(which, &value, NULL);
}

static const char *const work = "local n, seed = ...\n"
                                "local x, t = seed, {}\n"
                                "for i = 1, n do x = (x * 5 + i) % 65521 t[i % 64 + 1] = { x } if "
                                "i % 50 == 0 then x = x + #tostring(x) end end\n"
                                "return x\n";

int stress_timers(lua_State *L)
{
        static const struct {
                int sig, which;
        } timers[] = { { SIGALRM, ITIMER_REAL },
                       { SIGPROF, ITIMER_PROF },
                       { SIGVTALRM, ITIMER_VIRTUAL } };
        stack_t mine = { .ss_sp = own_stack, .ss_size = sizeof(own_stack) },
                none = { .ss_flags = SS_DISABLE };
        int seed = (int)lua_tointeger(L, 1), all = 0;
        double sum = 0;

        memset((void *)seen, 0, sizeof(seen));
        sigaltstack(&mine, NULL);
        on_own_stack = SIGUSR1;
        on_signal(SIGUSR1, handler, SA_ONSTACK);
        for (int i = 0; i < 3; i++) {
                on_signal(timers[i].sig, handler, SA_RESTART);
                set_timer((__itimer_which_t)timers[i].which, 700 + 100 * i, 1);
        }
        for (int i = 0; i < 2000 && all != 3; i++) {
                double one;

                errno = 77;
                one = stress_run(L, work, 4000, seed);
                wrong |= i && one != sum;
                sum = one;
                raise(SIGUSR1);
                all = (seen[SIGALRM] > 3) + (seen[SIGPROF] > 1) + (seen[SIGVTALRM] > 1);
        }
        errno = 77;
        for (volatile int i = 0; i < 300000; i++)
                ;
        wrong |= errno != 77;
        for (int i = 0; i < 3; i++) {
                set_timer((__itimer_which_t)timers[i].which, 0, 0);
                on_signal(timers[i].sig, SIG_IGN, 0);
        }
        sigaltstack(&none, NULL);
        lua_pushnumber(L, sum + all * 1000000 + wrong * 0.5);
        return 1;
}

static sigjmp_buf back;

static void jump(int sig)
{
        siglongjmp(back, sig);
}

/* An alarm that leaves work in C by a jump, with a tick's handler below it now and then. */
int stress_jumps(lua_State *L)
{
        volatile int jumps = 0;
        volatile unsigned x = 0;

        on_signal(SIGALRM, jump, 0);
        while (jumps < 25) {
                if (sigsetjmp(back, 1)) {
                        jumps++;
                        continue;
                }
                set_timer(ITIMER_REAL, 400 + 37 * jumps, 0);
                for (;;)
                        x = x * 3 + 1;
        }
        on_signal(SIGALRM, SIG_IGN, 0);
        lua_pushnumber(L, jumps + stress_run(L, work, 2000, lua_tonumber(L, 1)));
        return 1;
}

static lua_State *interrupted;

static void stop_lua(lua_State *L, lua_Debug *ar)
{
        (void)ar;
        lua_sethook(L, NULL, 0, 0);
        luaL_error(L, "interrupted");
}

static void interrupt(int sig)
{
        (void)sig;
        lua_sethook(interrupted, stop_lua, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
}

static int arm(lua_State *L)
{
        set_timer(ITIMER_REAL, 900 + 50 * (int)lua_tointeger(L, 1), 0);
        return 0;
}

/* As LuaJIT's own program stops a script: the handler sets a hook that throws. */
int stress_interrupts(lua_State *L)
{
        static const char *const text = "local number, seed = ...\n"
                                        "local function loop() local x = 0 arm(number) while true "
                                        "do x = x + #tostring(x) end end\n"
                                        "jit.off(loop)\n"
                                        "local ok, why = pcall(loop)\n"
                                        "return #why:match('interrupted') + seed\n";
        double sum = 0;

        interrupted = host_new();
        on_signal(SIGALRM, interrupt, SA_RESTART);
        lua_register(interrupted, "arm", arm);
        for (int i = 0; i < 10; i++)
                sum += stress_run(interrupted, text, i, lua_tonumber(L, 1));
        on_signal(SIGALRM, SIG_IGN, 0);
        lua_close(interrupted);
        lua_pushnumber(L, sum);
        return 1;
}

/* VMs that run on C stacks of their own and switch to each other in the middle of Lua. */
#define STACKS 3
#define STACK_SIZE (256 * 1024)
static ucontext_t contexts[STACKS + 1];
static double results[STACKS];
static int current, left;

static int switch_stack(lua_State *L)
{
        int from = current;

        (void)L;
        current = (current + 1) % STACKS;
        swapcontext(&contexts[from], &contexts[current]);
        return 0;
}

static void run_on_stack(int number)
{
        static const char *const text =
                "local seed, number = ...\n"
                "local x = seed\n"
                "for i = 1, 60 do\n"
                "  for j = 1, 300 do x = (x * 7 + j + number) % 65521 end\n"
                "  local t = {} for j = 1, 20 do t[j] = { j } end\n"
                "  pcall(coroutine.wrap(function() switch() end))\n"
                "end\n"
                "return x\n";
        lua_State *L = host_new();
        int next;

        lua_register(L, "switch", switch_stack);
        results[number] = stress_run(L, text, left, number);
        lua_close(L);
        next = number + 1;
        current = next % STACKS;
        setcontext(next == STACKS ? &contexts[STACKS] : &contexts[next]);
}

int stress_stacks(lua_State *L)
{
        char *memory = mmap(NULL, STACKS * STACK_SIZE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        double sum = 0;

        if (memory == MAP_FAILED)
                exit(1);
        left = (int)lua_tointeger(L, 1);
        for (int i = 0; i < STACKS; i++) {
                getcontext(&contexts[i]);
                contexts[i].uc_stack.ss_sp = memory + i * STACK_SIZE;
                contexts[i].uc_stack.ss_size = STACK_SIZE;
                contexts[i].uc_link = NULL;
                makecontext(&contexts[i], (void (*)(void))run_on_stack, 1, i);
        }
        current = 0;
        swapcontext(&contexts[STACKS], &contexts[0]);
        for (int i = 0; i < STACKS; i++)
                sum += results[i];
        munmap(memory, STACKS * STACK_SIZE);
        lua_pushnumber(L, sum);
        return 1;
}
