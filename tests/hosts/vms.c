/* VMs and threads whose shares the host measures itself: vms split|nested|loop|migrate|cfunction.
 * Prints lines KEY NS, CPU time by the thread's clock, for tests/integration/main/threads.py and
 * states.py. */
#include "tests/hosts/host.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const loops =
        "function work(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end\n"
        "function repeated(times) for i = 1, times do work(100000) end end\n";

static uint64_t now(void)
{
        return host_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void call_number(lua_State *L, const char *name, double n)
{
        lua_getglobal(L, name);
        lua_pushnumber(L, n);
        host_check(L, lua_pcall(L, 1, 0, 0));
}

static lua_State *new_with(const char *text, const char *name)
{
        lua_State *L = host_new();

        host_run(L, loops, name);
        if (text)
                host_run(L, text, name);
        return L;
}

/* As host_spin_ms, but with few system calls: ticks that are due in the kernel come late. */
static void spin_ms(unsigned ms)
{
        static __thread volatile uint64_t x;
        uint64_t end = now() + ms * 1000000ull;

        while (now() < end)
                for (int i = 0; i < 20000; i++)
                        x = x + (uint64_t)i;
}

static void name_thread(const char *prefix, unsigned n)
{
        char name[16];

        snprintf(name, sizeof name, "%s%u", prefix, n);
        pthread_setname_np(pthread_self(), name);
}

static void print_thread(const char *prefix, unsigned n, uint64_t ns)
{
        printf("%s%u-%ld %llu\n", prefix, n, syscall(SYS_gettid), (unsigned long long)ns);
}

/* What the threads of split need after their work: a tick that falls due there in the kernel may
 * not come before they end. */
static _Atomic uint64_t ending_ns;

/* split: threads with 40, 30, 20 and 10 parts of work in a VM each, and one of 20 parts that runs
 * no Lua. */
static void *split_lua(void *arg)
{
        unsigned parts = (unsigned)(uintptr_t)arg;
        uint64_t worked;
        lua_State *L;

        name_thread("lua", parts);
        L = new_with(NULL, "=split");
        call_number(L, "repeated", parts * 20);
        worked = now();
        lua_close(L);
        print_thread("lua", parts, now());
        ending_ns += now() - worked;
        return NULL;
}

static void *split_c(void *arg)
{
        name_thread("c", (unsigned)(uintptr_t)arg);
        spin_ms(200);
        print_thread("c", (unsigned)(uintptr_t)arg, now());
        return NULL;
}

static void split(void)
{
        static const unsigned parts[] = { 40, 30, 20, 10 };
        lua_State *first = host_new();          /* threads are sampled as soon as there is a VM */
        pthread_t thread[5];

        for (unsigned i = 0; i < 4; i++)
                pthread_create(&thread[i], NULL, split_lua, (void *)(uintptr_t)parts[i]);
        pthread_create(&thread[4], NULL, split_c, (void *)(uintptr_t)20);
        for (unsigned i = 0; i < 5; i++)
                pthread_join(thread[i], NULL);
        lua_close(first);
        printf("ending %llu\n", (unsigned long long)ending_ns);
}

/* nested: VM a calls a C function that runs VM b, whose C function runs a again. */
static lua_State *vm_a, *vm_b;
static uint64_t in_a, in_b, in_again, in_c;

static int run_again(lua_State *L)
{
        uint64_t start = now();

        (void)L;
        lua_State *co = lua_newthread(vm_a);

        lua_getglobal(co, "again");
        host_check(co, lua_pcall(co, 0, 0, 0));
        lua_pop(vm_a, 1);
        in_again += now() - start;
        return 0;
}

static int run_b(lua_State *L)
{
        uint64_t start = now(), again = in_again;

        (void)L;
        call_number(vm_b, "outer_b", 30);
        in_b += now() - start - (in_again - again);
        start = now();
        spin_ms(10);
        in_c += now() - start;
        return 0;
}

static void nested(void)
{
        uint64_t start;

        vm_a = new_with("function again() repeated(10) end\n"
                        "function outer_a(n) for i = 1, 20 do repeated(n) run_b() end end\n", "=a");
        vm_b = new_with("function outer_b(n) repeated(n) run_again() repeated(n) end\n", "=b");
        lua_register(vm_a, "run_b", run_b);
        lua_register(vm_b, "run_again", run_again);
        start = now();
        call_number(vm_a, "outer_a", 40);
        in_a = now() - start - in_b - in_c - in_again;
        lua_close(vm_b);
        lua_close(vm_a);
        printf("a %llu\nb %llu\nagain %llu\nrun_b %llu\n", (unsigned long long)in_a,
               (unsigned long long)in_b, (unsigned long long)in_again, (unsigned long long)in_c);
}

/* loop: 200 VMs one after the other, each beside one that stays. */
static void loop(void)
{
        uint64_t ns = 0, start;
        lua_State *stays = new_with(NULL, "=stays");

        for (int i = 0; i < 200; i++) {
                lua_State *L = new_with("function in_short(n) repeated(n) return 1 end", "=short");

                start = now();
                call_number(L, "in_short", 20);
                ns += now() - start;
                lua_close(L);
                call_number(stays, "repeated", 10);
        }
        printf("in_short %llu\nall %llu\n", (unsigned long long)ns, (unsigned long long)now());
        lua_close(stays);
}

/* migrate: coroutines made in the first thread, resumed by turns in this one and in another. */
static lua_State *coroutine[2];
static sem_t go[2];
static uint64_t ns_of[2][2];            /* by thread and coroutine */

static void *turns(void *arg)
{
        int me = (int)(uintptr_t)arg;

        if (me)
                name_thread("migrate", (unsigned)me);
        for (int i = 0; i < 40; i++) {
                sem_wait(&go[me]);
                for (int c = 0; c < 2; c++) {
                        uint64_t start = now();
                        int status = lua_resume(coroutine[c], 0);

                        if (status != LUA_YIELD)
                                host_check(coroutine[c], status ? status : LUA_ERRRUN);
                        ns_of[me][c] += now() - start;
                }
                sem_post(&go[!me]);
        }
        print_thread("thread", (unsigned)me, ns_of[me][0] + ns_of[me][1]);
        return NULL;
}

static void migrate(void)
{
        lua_State *L =
                new_with("function long() while true do repeated(60) coroutine.yield() end end\n"
                         "function short() while true do repeated(20) coroutine.yield() end end\n",
                         "=migrate");
        pthread_t thread;

        for (int c = 0; c < 2; c++) {
                coroutine[c] = lua_newthread(L);
                lua_getglobal(coroutine[c], c ? "short" : "long");
        }
        sem_init(&go[0], 0, 1);
        sem_init(&go[1], 0, 0);
        pthread_create(&thread, NULL, turns, (void *)1);
        turns(NULL);
        pthread_join(thread, NULL);
        printf("long %llu\nshort %llu\n", (unsigned long long)(ns_of[0][0] + ns_of[1][0]),
               (unsigned long long)(ns_of[0][1] + ns_of[1][1]));
        lua_close(L);
}

/* cfunction: functions of the host, each busy for 50 ms at a time, one of them around calls back
 * into Lua. */
static uint64_t busy_ns, around_ns, back_ns;

static int busy(lua_State *L)
{
        uint64_t start = now();

        (void)L;
        spin_ms(50);
        busy_ns += now() - start;
        return 0;
}

static int around(lua_State *L)
{
        for (int i = 0; i < 10; i++) {
                uint64_t start = now(), called;

                spin_ms(5);
                called = now();
                lua_pushvalue(L, 1);
                lua_call(L, 0, 0);
                back_ns += now() - called;
                around_ns += called - start;
        }
        return 0;
}

static void cfunction(void)
{
        lua_State *L =
                new_with("function callback() repeated(8) end\n"
                         "function calls() host_busy() host_around(callback) repeated(200) end\n",
                         "=cfunction");
        uint64_t start = now();

        lua_register(L, "host_busy", busy);
        lua_register(L, "host_around", around);
        for (int i = 0; i < 12; i++) {
                lua_getglobal(L, "calls");
                host_check(L, lua_pcall(L, 0, 0, 0));
        }
        printf("host_busy %llu\nhost_around %llu\ncallback %llu\nall %llu\n",
               (unsigned long long)busy_ns, (unsigned long long)around_ns,
               (unsigned long long)back_ns, (unsigned long long)(now() - start));
        lua_close(L);
}

int main(int argc, char **argv)
{
        static const struct { const char *name; void (*run)(void); } actions[] = {
                { "split", split },     { "nested", nested },       { "loop", loop },
                { "migrate", migrate }, { "cfunction", cfunction },
        };

        for (unsigned i = 0; argc == 2 && i < sizeof actions / sizeof *actions; i++)
                if (!strcmp(argv[1], actions[i].name)) {
                        actions[i].run();
                        return 0;
                }
        fprintf(stderr, "usage: vms split|nested|loop|migrate|cfunction\n");
        return 129;
}
