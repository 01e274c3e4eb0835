/* pthread_create and thrd_create: a new thread gets a ring and ticks before its first instruction of the program's. */
#include "libsample/real.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "libsample/agent.h"
#include "libsample/interpose.h"
#include "libsample/pages.h"
#include "libsample/thread.h"

struct beginning {
        void *(*run)(void *);
        int (*run_c11)(void *);
        void *arg;
};

static struct beginning take(struct beginning *from)
{
        struct beginning b = *from;

        ls_pages_free(from, sizeof *from);
        if (ls_agent_live())
                ls_thread_begin();
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
        struct beginning *p = ls_agent.shm && ls_agent_live() ? ls_pages_new(sizeof *p) : NULL;

        if (p)
                *p = b;
        errno = saved;
        return p;
}

LS_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
        struct beginning *b = make((struct beginning){ .run = run, .arg = arg });
        int error = ls_libc()->pthread_create(thread, attr, b ? begin : run, b ? b : arg);

        if (error && b)
                ls_pages_free(b, sizeof *b);
        return error;
}

LS_EXPORT int thrd_create(thrd_t *thread, thrd_start_t run, void *arg)
{
        struct beginning *b = make((struct beginning){ .run_c11 = run, .arg = arg });
        int error = ls_libc()->thrd_create(thread, b ? begin_c11 : run, b ? b : arg);

        if (error != thrd_success && b)
                ls_pages_free(b, sizeof *b);
        return error;
}
