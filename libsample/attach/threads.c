/* See threads.h. The agent's thread lists the process's own now and then, and makes what each
 * needs; a thread finds it at its first tick, by its id. */

#include "libsample/attach/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "libsample/agent.h"
#include "libsample/handler/guard.h"
#include "libsample/handler/sample.h"
#include "libsample/handler/tick.h"
#include "libsample/lock.h"
#include "libsample/recording/threads.h"
#include "libsample/recording/tick_action.h"

#define QUIET_NS UINT64_C(20000000)     /* a handler that is about to say that it runs needs less */
#define HANDLER_NS                                                                                 \
        UINT64_C(2000000000) /* the longest that one is waited for; its thread may be stopped */

#ifndef HWCAP2_FSGSBASE
#define HWCAP2_FSGSBASE 2u
#endif
#define SELF_AT 16u                     /* in thread data: its own address */

static unsigned tid_at;                 /* 0 = what the thread register holds cannot be read */

void ls_attach_threads_begin(unsigned tid_offset)
{
        tid_at = getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE ? tid_offset : 0;
}

/* A process that was forked by a bare system call has its parent's id there. */
static int is_own_data(uintptr_t data, int tid)
{
        if (data % sizeof(data) || !ls_readable((const void *)data, SELF_AT + sizeof(data)) ||
            !ls_readable((const void *)(data + tid_at), sizeof(tid)))
                return 0;
        return *(const uintptr_t *)(data + SELF_AT) == data &&
               (*(const int *)(data + tid_at) == tid || tid == (int)syscall(SYS_getpid));
}

int ls_attach_threads_have_data(void)
{
        struct ls_thread *t;
        uintptr_t data;
        int tid;

        if (!tid_at)
                return 1;
        __asm__ volatile("rdfsbase %0" : "=r"(data));
        tid = (int)syscall(SYS_gettid);
        t = ls_thread_of(tid);
        if (t && t->data == data && data)
                return 1;
        if (!data || !is_own_data(data, tid))
                return 0;
        if (t)
                t->data = data;
        return 1;
}

struct ls_thread *ls_attach_threads_newcomer(const void *context)
{
        const ucontext_t *uc = context;
        struct ls_thread *t = ls_thread_of((int)syscall(SYS_gettid));
        stack_t stack;

        if (!t)
                return NULL;
        if (sigaltstack(NULL, &stack) == 0 && !(stack.ss_flags & SS_DISABLE) &&
            ls_tick_action_is_small(stack.ss_size)) {
                ls_tick_action_leave_signal_stacks();
                if (stack.ss_flags & SS_ONSTACK)
                        return NULL;
        }
        ls_thread_find_stack(t, 0, (uintptr_t)uc->uc_mcontext.gregs[REG_RSP]);
        ls_thread_own_it(t);
        atomic_fetch_add(&ls_agent.shm->nthreads_seen, 1);
        return t;
}

struct entry {                          /* struct linux_dirent64 */
        uint64_t ino;
        int64_t off;
        uint16_t len;
        uint8_t type;
        char name[];
};

/* Marks the thread as seen, or makes what it needs. Returns 1 when there is no ring for it. */
static unsigned look_at(const char *name, uint8_t seen[LS_THREADS_MOST])
{
        struct ls_thread *t;
        int tid = 0;

        for (; *name >= '0' && *name <= '9'; name++)
                tid = tid * 10 + (*name - '0');
        if (tid == 0 || *name)
                return 0;
        t = ls_thread_of(tid);
        if (!t) {
                t = ls_thread_make(tid);
                if (t && ls_threads_are_arming())
                        ls_thread_arm(t);
        }
        if (t)
                seen[t->index] = 1;
        return !t;
}

/* How many are not recorded at one time. */
static void note_unrecorded(unsigned n)
{
        if (n > atomic_load(&ls_agent.shm->nthreads_unrecorded))
                atomic_store(&ls_agent.shm->nthreads_unrecorded, n);
}

/* A living thread may be missing: the kernel goes on by number, so that one is passed over when
 * another before it ends meanwhile. */
static void list(uint8_t seen[LS_THREADS_MOST])
{
        char buf[4096] __attribute__((aligned(8)));
        int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        unsigned unrecorded = 0;
        long n = -1;

        while (fd >= 0 && (n = syscall(SYS_getdents64, fd, buf, sizeof buf)) > 0)
                for (long at = 0; at < n;) {
                        const struct entry *e = (const struct entry *)(const void *)(buf + at);

                        unrecorded += look_at(e->name, seen);
                        at += e->len;
                }
        if (fd >= 0)
                close(fd);
        note_unrecorded(unrecorded);
}

/* Asks for the thread's CPU clock, as each tick asks for its own. A living one has what belongs to
 * t in hand at each of its ticks, and a new one that was given the same id takes it at its first:
 * so it is hidden first, and asked about then. Returns 1 when it is nobody's, and stays hidden. */
static int has_ended(struct ls_thread *t)
{
        struct timespec cpu;

        ls_thread_hide(t);
        if (clock_gettime(ls_thread_clock(t->tid), &cpu) && errno == EINVAL)
                return 1;
        ls_thread_show(t);
        return 0;
}

void ls_attach_threads_refresh(void)
{
        uint8_t seen[LS_THREADS_MOST] = { 0 };
        struct ls_thread *gone[LS_THREADS_MOST];
        unsigned n = 0;
        sigset_t mask;

        ls_lock(&ls_threads_lock, &mask);
        list(seen);
        for (unsigned i = 0; i < LS_THREADS_MOST; i++) {
                struct ls_thread *t = ls_threads[i];

                if (!t || seen[i] || !has_ended(t))
                        continue;
                t->sampler->inside = 0;         /* killed in the middle of it */
                ls_thread_unmake(t);
                gone[n++] = t;
        }
        ls_unlock(&ls_threads_lock, &mask);
        while (n)
                ls_thread_free(gone[--n]);
}

/* Until no thread is inside a handler. */
static void wait_for_handlers(void)
{
        const struct timespec moment = { 0, 1000000 };
        uint64_t start = ls_now_ns();
        int running;

        do {
                running = 0;
                nanosleep(&moment, NULL);
                for (unsigned i = 0; i < LS_THREADS_MOST; i++)
                        running |= ls_threads[i] && ls_threads[i]->sampler->inside;
        } while (ls_now_ns() - start < QUIET_NS || (running && ls_now_ns() - start < HANDLER_NS));
}

void ls_attach_threads_end(void)
{
        struct ls_thread *t;
        sigset_t mask;

        wait_for_handlers();
        ls_lock(&ls_threads_lock, &mask);
        for (unsigned i = 0; i < LS_THREADS_MOST; i++) {
                t = ls_threads[i];
                if (!t || t->quiet)
                        continue;
                if (t->sampler->inside) {               /* its thread is stopped: what it uses
                                                         * stays */
                        ls_thread_hide(t);
                        ls_threads[i] = NULL;
                        continue;
                }
                ls_thread_unmake(t);
                ls_thread_free(t);
        }
        ls_unlock(&ls_threads_lock, &mask);
}
