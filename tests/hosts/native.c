/* Writes native stacks of known shape to the file that its argument names: for
 * tests/unit/test_record_native_unwind.c. Each scenario is a function scene_NAME that main calls
 * through its table. */
#include "tests/hosts/native_dump.h"

#include "tests/hosts/native_calls.h"

#define TICKS 150

static struct native_calls calls;

KEEP static void sample_here(struct native_calls *c)
{
        raise(DUMP_SIGNAL);
        c->left += c->zero;
}

static void take_none(struct native_calls *c)
{
        (void)c;
}

#define SCENES(prefix)                                                                             \
        KEEP static void scene_##prefix##_chain(void)                                              \
        {                                                                                          \
                prefix##_chain(&calls);                                                            \
                calls.left = 0;                                                                    \
        }                                                                                          \
        KEEP static void scene_##prefix##_sorted(void)                                             \
        {                                                                                          \
                prefix##_sorted(&calls);                                                           \
                calls.left = 0;                                                                    \
        }                                                                                          \
        KEEP static void work_##prefix##_fib(void *c)                                              \
        {                                                                                          \
                prefix##_fib(c, 18);                                                               \
                calls.left = 0;                                                                    \
        }                                                                                          \
        KEEP static void work_##prefix##_copies(void *c)                                           \
        {                                                                                          \
                prefix##_copies(c);                                                                \
                calls.left = 0;                                                                    \
        }                                                                                          \
        KEEP static void work_##prefix##_clocks(void *c)                                           \
        {                                                                                          \
                prefix##_clocks(c);                                                                \
                calls.left = 0;                                                                    \
        }                                                                                          \
        KEEP static void work_##prefix##_allocations(void *c)                                      \
        {                                                                                          \
                prefix##_allocations(c);                                                           \
                calls.left = 0;                                                                    \
        }                                                                                          \
        KEEP static void scene_##prefix##_ticks(void)                                              \
        {                                                                                          \
                dump_ticks("tick_" #prefix "_fib", TICKS, work_##prefix##_fib, &calls);            \
                dump_ticks("tick_" #prefix "_copies", TICKS, work_##prefix##_copies, &calls);      \
                dump_ticks("tick_" #prefix "_clocks", TICKS, work_##prefix##_clocks, &calls);      \
                dump_ticks("tick_" #prefix "_allocations", TICKS, work_##prefix##_allocations,     \
                           &calls);                                                                \
        }
SCENES(plain)
SCENES(fp)
SCENES(slow)

KEEP static void scene_truncated(void)
{
        dump_limit = 4096;
        plain_deep(&calls, 2000);
        dump_limit = 16384;
        calls.left = 0;
}

KEEP static void scene_deep(void)
{
        plain_deep(&calls, 100);
        calls.left = 0;
}

static void on_usr1(int sig)
{
        (void)sig;
        plain_chain(&calls);
        calls.left = 0;
}

KEEP static void scene_in_handler(void)
{
        raise(SIGUSR1);
        calls.left = 0;
}

static void *thread_main(void *arg)
{
        dump_set_stack_end();
        plain_chain(arg);
        calls.left = 0;
        return NULL;
}

KEEP static void scene_thread(void)
{
        pthread_t t;

        if (pthread_create(&t, NULL, thread_main, &calls) != 0)
                abort();
        pthread_join(t, NULL);
}

static const struct { const char *name; void (*run)(void); int by_itself; } scenes[] = {
        { "plain_chain", scene_plain_chain, 0 }, { "plain_sorted", scene_plain_sorted, 0 },
        { "fp_chain", scene_fp_chain, 0 },       { "fp_sorted", scene_fp_sorted, 0 },
        { "slow_chain", scene_slow_chain, 0 },   { "slow_sorted", scene_slow_sorted, 0 },
        { "in_handler", scene_in_handler, 0 },   { "thread", scene_thread, 0 },
        { "deep", scene_deep, 0 },               { "truncated", scene_truncated, 0 },
        { "ticks", scene_plain_ticks, 1 },       { "ticks", scene_fp_ticks, 1 },
        { "ticks", scene_slow_ticks, 1 },
};

int main(int argc, char **argv)
{
        if (argc != 2) {
                fprintf(stderr, "usage: %s FILE\n", argv[0]);
                return 129;
        }
        calls.here = sample_here;
        signal(SIGUSR1, on_usr1);
        dump_open(argv[1]);
        dump_maps();
        for (unsigned i = 0; i < sizeof(scenes) / sizeof(*scenes); i++) {
                calls.here = scenes[i].by_itself ? take_none : sample_here;
                dump_name = scenes[i].by_itself ? NULL : scenes[i].name;
                scenes[i].run();
                dump_name = NULL;
        }
        return 0;
}
