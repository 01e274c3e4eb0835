/* pthread_create and thrd_create: a new thread gets a ring and ticks before its first instruction
 * of the program's. */
#include "libsample/libc/real.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "libsample/agent.h"
#include "libsample/interpose/interpose.h"
#include "libsample/pages.h"
#include "libsample/recording/threads.h"
#include "libsample/thread.h"

struct beginning {
        void *(*run)(void *);
        int (*run_c11)(void *);
        void *arg;
        size_t stack_size;
};

static struct beginning take(struct beginning *from)
{
        struct beginning b = *from;

        ls_pages_free(from, sizeof *from);
        if (ls_agent_live())
                ls_thread_begin(b.stack_size);
        return b;
}

static void *begin(void *arg)
{
        struct beginning b = take(arg);

        return b.run(b.arg);
}

static int begin_c11(void *arg)
{
        struct beginning b = take(arg);

        return b.run_c11(b.arg);
}

static struct beginning *make(struct beginning b)
{
        int saved = errno;
        /* A forked child that goes on with its parent's runtime is recorded from the first thread
         * on. */
        struct beginning *p = ls_agent_live() || (ls_lua.path && ls_process_join())
                                      ? ls_pages_new(sizeof *p)
                                      : NULL;

        if (p)
                *p = b;
        errno = saved;
        return p;
}

/* Bytes of a new thread's stack. */
static size_t stack_size(const pthread_attr_t *attr)
{
        struct rlimit limit;
        size_t size = 0;

        if (attr && ls_libc()->pthread_attr_getstacksize(attr, &size) == 0)
                return size;
        return getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < 1u << 30
                       ? (size_t)limit.rlim_cur
                       : 0;
}

LS_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                             void *arg)
{
        struct beginning *b =
                make((struct beginning){ .run = run, .arg = arg, .stack_size = stack_size(attr) });
        int error = ls_libc()->pthread_create(thread, attr, b ? begin : run, b ? b : arg);

        if (error && b)
                ls_pages_free(b, sizeof *b);
        return error;
}

LS_EXPORT int thrd_create(thrd_t *thread, thrd_start_t run, void *arg)
{
        struct beginning *b = make(
                (struct beginning){ .run_c11 = run, .arg = arg, .stack_size = stack_size(NULL) });
        int error = ls_libc()->thrd_create(thread, b ? begin_c11 : run, b ? b : arg);

        if (error != thrd_success && b)
                ls_pages_free(b, sizeof *b);
        return error;
}
