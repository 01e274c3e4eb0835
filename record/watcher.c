/* The watcher's process: see watcher.h. */
#include "record/watcher.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "formats/wire/clock.h"
#include "record/process/thread_ids.h"
#include "record/worker/broker.h"
#include "record/worker/outside.h"
#include "record/worker/worker.h"

#define START_MS 1000                   /* to give up its rights and to be ready */
#define END_MS 100                      /* for its end, when it is killed */
#define LAST_MS 500                     /* for its last look and what it sends then */
#define CHANGE_MS 50                    /* the same, when another takes its place */
#define CHANGES_MOST 64u                /* a program that does nothing else is watched no more */
/* Clashes of randomly placed memory; without randomization one is as good as many. */
#define CLASHES_MOST 8u

static uint64_t now_ms(void)
{
        return ls_clock_ns(CLOCK_MONOTONIC) / 1000000u;
}

static pid_t spawn(const struct ls_memory *m, const struct ls_rights *r, int socket)
{
        const int fds[] = { socket, m->fd, m->watchers_fd };
        char uid[16], gid[16];
        const char *argv[] = { LS_WORKER_ARGV0, "watch", uid, gid, NULL };

        snprintf(uid, sizeof(uid), "%u", (unsigned)r->uid);
        snprintf(gid, sizeof(gid), "%u", (unsigned)r->gid);
        return ls_worker_spawn(argv, NULL, fds, 3);
}

/* With w->rights. */
static int start(struct ls_watcher *w, const struct ls_memory *m, pid_t target)
{
        const struct ls_watch_start first = { .shm_size = m->size,
                                              .own_size = m->watchers_size,
                                              .stride = m->ring_stride,
                                              .interval_ns = w->interval_ns,
                                              .ring_size = m->ring_size,
                                              .rings = m->of[LS_ROLE_AGENT].n,
                                              .pid = (int32_t)target,
                                              .threads = m->of[LS_ROLE_BLOCKED].n != 0,
                                              .coroutines = m->of[LS_ROLE_SUSPENDED].n != 0 };
        int socket;
        pid_t pid;

        w->broker = ls_broker_start(&w->rights, ls_thread_outer_id, &first, sizeof(first), &socket);
        if (!w->broker)
                return -errno;
        pid = spawn(m, &w->rights, socket);
        close(socket);
        if (pid < 0) {
                ls_broker_stop(w->broker);
                w->broker = NULL;
                return (int)pid;
        }
        w->pid = pid;
        if (target)
                ls_broker_target(w->broker, target);
        else
                ls_broker_await(w->broker, START_MS);   /* the program is watched from its start, or
                                                         * a little later */
        return 0;
}

int ls_watcher_start(struct ls_watcher *w, const struct ls_memory *m, pid_t target,
                     uint64_t interval_ns)
{
        int err = 0;

        *w = (struct ls_watcher){ .interval_ns = interval_ns };
        if (target)
                err = ls_rights_of(target, &w->rights);
        else
                ls_rights_own(&w->rights);
        return err < 0 ? err : start(w, m, target);
}

void ls_watcher_target(struct ls_watcher *w, pid_t pid)
{
        if (w->pid)
                ls_broker_target(w->broker, pid);
}

/* Waits until then. */
static void end(struct ls_watcher *w, uint64_t until_ms, void (*take)(void *ctx), void *ctx)
{
        const struct timespec ms = { 0, 1000000 };
        struct rusage used = { 0 };
        int gone;

        while (!(gone = wait4(w->pid, NULL, WNOHANG, &used) != 0) && now_ms() < until_ms) {
                nanosleep(&ms, NULL);
                take(ctx);
        }
        if (!gone)
                ls_worker_end(w->pid, END_MS, &used);
        ls_broker_stop(w->broker);
        w->broker = NULL;
        w->pid = 0;
        w->before_ns += ls_rusage_ns(&used);
}

void ls_watcher_told(struct ls_watcher *w)
{
        if (!w->told_ns)
                w->told_ns = now_ms() * 1000000u;
}

uint64_t ls_watcher_stop(struct ls_watcher *w, void (*take)(void *ctx), void *ctx)
{
        uint64_t used;

        if (w->pid) {
                ls_watcher_told(w);
                end(w, w->told_ns / 1000000u + LAST_MS, take, ctx);
        }
        used = w->before_ns;
        *w = (struct ls_watcher){ 0 };
        return used;
}

uint64_t ls_watcher_cpu_ns(const struct ls_watcher *w)
{
        clockid_t clock;

        return w->before_ns +
               (w->pid && clock_getcpuclockid(w->pid, &clock) == 0 ? ls_clock_ns(clock) : 0);
}

/* What it was writing when it was killed is never finished. */
static void leave_writes(const struct ls_memory *m)
{
        unsigned used = ls_memory_rings(m);

        for (unsigned role = LS_ROLE_BLOCKED; role < LS_NROLES; role++)
                for (unsigned i = 0; i < m->of[role].n && (i < used || role == LS_ROLE_SUSPENDED);
                     i++)
                        atomic_store(&ls_memory_ring(m, m->of[role].first + i)->in_write, 0);
}

/* By chance: its memory lies where the program's is. */
static int is_in_the_way(struct ls_watcher *w, const struct ls_memory *m)
{
        return atomic_load(&m->shm->watching) == LS_WATCH_CLASH && w->clashes++ < CLASHES_MOST;
}

static int has_changed(const struct ls_watcher *w, pid_t target, struct ls_rights *now)
{
        return !w->rights.is_own && ls_rights_of(target, now) == 0 &&
               (now->uid != w->rights.uid || now->gid != w->rights.gid);
}

void ls_watcher_follow(struct ls_watcher *w, const struct ls_memory *m, pid_t target,
                       void (*take)(void *ctx), void *ctx)
{
        struct ls_rights now = w->rights;

        if (!w->pid || !(is_in_the_way(w, m) || has_changed(w, target, &now)))
                return;
        kill(w->pid, SIGTERM);
        atomic_fetch_add(&m->shm->request, 1);
        syscall(SYS_futex, &m->shm->request, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        end(w, now_ms() + CHANGE_MS, take, ctx);
        leave_writes(m);
        atomic_store(&m->shm->watching, LS_WATCH_NONE);
        w->rights = now;
        if (w->changes++ == CHANGES_MOST || start(w, m, target) < 0)
                atomic_store(&m->shm->watching, LS_WATCH_FORBIDDEN);
}

#define INSTEAD                                                                                    \
        "blocked time is charged to the stack that was seen last, and suspended coroutines are "   \
        "not seen"

const char *ls_watcher_complaint(const struct ls_memory *m)
{
        static const char *const complaints[] = {
                [LS_WATCH_FORBIDDEN] = "the program's memory may not be read (see "
                                       "kernel.yama.ptrace_scope, or grant "
                                       "CAP_SYS_PTRACE): " INSTEAD,
                [LS_WATCH_UNREADABLE] = "how this Lua VM lays out its stack is not known: " INSTEAD,
                [LS_WATCH_CLASH] = "address space randomization is off: " INSTEAD,
                [LS_WATCH_NO_TIMES] = "this kernel does not say how long a thread ran "
                                      "(/proc/PID/schedstat): only the time on "
                                      "a CPU is in the trace",
                [LS_WATCH_NO_FILES] = "luasample may not open three files for each thread (raise "
                                      "it with ulimit -n): the "
                                      "blocked time of some is not in the trace",
        };
        uint32_t how = m->shm->watching;

        return how < sizeof(complaints) / sizeof(*complaints) ? complaints[how] : NULL;
}
