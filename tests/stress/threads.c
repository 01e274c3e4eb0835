/* Threads and processes: VMs that are made and closed in several threads at once, threads that
 * begin and end, coroutines of one VM that several threads resume in turn, children. */
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/stress/stress.h"

#define THREADS 4

static const char *const vm_text =
        "local a, b = ...\n"
        "local x, t = 0, {}\n"
        "for i = 1, 3000 do x = (x * 7 + i * a + b) % 65521 t[i % 50] = { x } end\n"
        "local f = coroutine.wrap(function() for i = 1, 30 do coroutine.yield(i * a) end return 0 "
        "end)\n"
        "for i = 1, 30 do x = x + f() end\n"
        "newproxy(true) getmetatable(newproxy(true)).__gc = function() local y = {} for i = 1, 100 "
        "do y[i] = {} end end\n"
        "return x + #tostring(pcall(error, t))\n";

struct job {
        int number, seed;
        double result;
};

static void *make_vms(void *arg)
{
        struct job *job = arg;

        for (int i = 0; i < 6; i++)
                job->result += stress_run_new(vm_text, job->number + i, job->seed);
        return NULL;
}

static _Atomic uint64_t short_ns;       /* CPU time of threads that end before their first tick may
                                         * come */

static void *compute(void *arg)
{
        struct job *job = arg;
        volatile unsigned x = (unsigned)job->seed;

        for (int i = 0; i < 20000; i++)
                x = x * 31 + (unsigned)i;
        job->result = x % 65521;
        atomic_fetch_add(&short_ns, host_ns(CLOCK_THREAD_CPUTIME_ID));
        return NULL;
}

double stress_short_s(void)
{
        return (double)atomic_load(&short_ns) / 1e9;
}

static double run_all(void *(*run)(void *), int seed)
{
        struct job jobs[THREADS] = { 0 };
        pthread_t threads[THREADS];
        double sum = 0;

        for (int i = 0; i < THREADS; i++) {
                jobs[i] = (struct job){ i + 1, seed, 0 };
                if (pthread_create(&threads[i], NULL, run, &jobs[i])) {
                        fprintf(stderr, "stress: no thread\n");
                        exit(1);
                }
        }
        for (int i = 0; i < THREADS; i++) {
                pthread_join(threads[i], NULL);
                sum += jobs[i].result;
        }
        return sum;
}

int stress_vms(lua_State *L)
{
        lua_pushnumber(L, run_all(make_vms, (int)lua_tointeger(L, 1)));
        return 1;
}

int stress_threads(lua_State *L)
{
        double sum = 0;

        for (int i = 0; i < 20; i++)
                sum += run_all(compute, (int)lua_tointeger(L, 1) + i);
        lua_pushnumber(L, sum);
        return 1;
}

/* A VM whose coroutines are resumed by each thread in turn. */
struct handed {
        lua_State *co[THREADS];
        pthread_mutex_t lock;
        pthread_cond_t changed;
        int turn, left;
        double sum;
};
static struct handed handed;

static void *take_turns(void *arg)
{
        int self = (int)(intptr_t)arg;

        pthread_mutex_lock(&handed.lock);
        while (handed.left) {
                if (handed.turn != self) {
                        pthread_cond_wait(&handed.changed, &handed.lock);
                        continue;
                }
                lua_State *co = handed.co[(handed.left + self) % THREADS];

                lua_pushinteger(co, self);
                if (lua_resume(co, 1) != LUA_YIELD) {
                        fprintf(stderr, "stress: %s\n", lua_tostring(co, -1));
                        exit(1);
                }
                handed.sum += lua_tonumber(co, -1);
                lua_settop(co, 0);
                handed.left--;
                handed.turn = (self + 1) % THREADS;
                pthread_cond_broadcast(&handed.changed);
        }
        pthread_mutex_unlock(&handed.lock);
        return NULL;
}

int stress_handed(lua_State *L)
{
        static const char *const text =
                "local first = ...\n"
                "local v, x = first, 0\n"
                "while true do\n"
                "  for i = 1, 600 do x = (x * 3 + v + i) % 65521 end\n"
                "  local t = {} for i = 1, 30 do t[i] = { i } end\n"
                "  v = coroutine.yield(x + #t)\n"
                "end\n";
        lua_State *vm = host_new();
        pthread_t threads[THREADS];

        handed = (struct handed){ .lock = PTHREAD_MUTEX_INITIALIZER,
                                  .changed = PTHREAD_COND_INITIALIZER,
                                  .left = 400 };
        for (int i = 0; i < THREADS; i++) {
                handed.co[i] = lua_newthread(vm);
                host_check(handed.co[i],
                           luaL_loadbuffer(handed.co[i], text, __builtin_strlen(text), "=handed"));
        }
        for (int i = 0; i < THREADS; i++)
                if (pthread_create(&threads[i], NULL, take_turns, (void *)(intptr_t)i))
                        exit(1);
        for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        lua_close(vm);
        lua_pushnumber(L, handed.sum + lua_tonumber(L, 1));
        return 1;
}

int stress_forks(lua_State *L)
{
        extern char **environ;
        char *const argv[] = { "true", NULL };
        int seed = (int)lua_tointeger(L, 1), status, sum = 0;
        pid_t pid;

        for (int i = 0; i < 3; i++) {
                pid = fork();
                if (pid == 0)
                        _exit((int)stress_run_new(vm_text, i, seed) % 100);
                if (pid < 0 || waitpid(pid, &status, 0) != pid)
                        exit(1);
                sum = sum * 256 + status / 256;
        }
        if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) ||
            waitpid(pid, &status, 0) != pid)
                exit(1);
        lua_pushinteger(L, sum + status);
        return 1;
}
