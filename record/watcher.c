/* The watcher's process: see watcher.h. */
#include "record/watcher.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
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

static pid_t spawn(const struct ls_memory *m, const struct ls_rights *r, int socket)
{
        const int fds[] = { socket, m->fd, m->watchers_fd };
        char uid[16], gid[16];
        const char *argv[] = { LS_WORKER_ARGV0, "watch", uid, gid, NULL };

        snprintf(uid, sizeof(uid), "%u", (unsigned)r->uid);
        snprintf(gid, sizeof(gid), "%u", (unsigned)r->gid);
        return ls_worker_spawn(argv, NULL, fds, 3);
}

int ls_watcher_start(struct ls_watcher *w, const struct ls_memory *m, pid_t target, uint64_t interval_ns)
{
        const struct ls_watch_start first = { .shm_size = m->size, .own_size = m->watchers_size, .stride = m->ring_stride,
                .interval_ns = interval_ns, .ring_size = m->ring_size, .rings = m->of[LS_ROLE_AGENT].n, .pid = (int32_t)target,
                .threads = m->of[LS_ROLE_BLOCKED].n != 0, .coroutines = m->of[LS_ROLE_SUSPENDED].n != 0 };
        struct ls_rights rights;
        int socket, err = 0;

        if (target)
                err = ls_rights_of(target, &rights);
        else
                ls_rights_own(&rights);
        if (err < 0)
                return err;
        w->broker = ls_broker_start(&rights, ls_thread_outer_id, &first, sizeof(first), &socket);
        if (!w->broker)
                return -errno;
        w->pid = spawn(m, &rights, socket);
        close(socket);
        if (w->pid < 0) {
                err = (int)w->pid;
                ls_broker_stop(w->broker);
                *w = (struct ls_watcher){ 0 };
                return err;
        }
        if (target)
                ls_broker_target(w->broker, target);
        else
                ls_broker_await(w->broker, START_MS);   /* the program is watched from its start, or a little later */
        return 0;
}

void ls_watcher_target(struct ls_watcher *w, pid_t pid)
{
        if (w->pid)
                ls_broker_target(w->broker, pid);
}

uint64_t ls_watcher_stop(struct ls_watcher *w, void (*take)(void *ctx), void *ctx)
{
        const struct timespec ms = { 0, 1000000 };
        struct rusage used = { 0 };
        int gone = 0;

        if (!w->pid)
                return 0;
        for (int i = 0; i < LAST_MS && !gone; i++) {
                gone = wait4(w->pid, NULL, WNOHANG, &used) != 0;
                if (gone)
                        break;
                nanosleep(&ms, NULL);
                take(ctx);
        }
        if (!gone)
                ls_worker_end(w->pid, END_MS, &used);
        ls_broker_stop(w->broker);
        *w = (struct ls_watcher){ 0 };
        return ls_rusage_ns(&used);
}

#define INSTEAD "blocked time is charged to the stack that was seen last, and suspended coroutines are not seen"

const char *ls_watcher_complaint(const struct ls_memory *m)
{
        static const char *const complaints[] = {
                [LS_WATCH_FORBIDDEN] = "the program's memory may not be read (see kernel.yama.ptrace_scope, or grant "
                                       "CAP_SYS_PTRACE): " INSTEAD,
                [LS_WATCH_UNREADABLE] = "how this Lua VM lays out its stack is not known: " INSTEAD,
                [LS_WATCH_CLASH] = "address space randomization is off: " INSTEAD,
                [LS_WATCH_NO_TIMES] = "this kernel does not say how long a thread ran (/proc/PID/schedstat): only the time on "
                                      "a CPU is in the trace",
                [LS_WATCH_NO_FILES] = "luasample may not open three files for each thread (raise it with ulimit -n): the "
                                      "blocked time of some is not in the trace",
        };
        uint32_t how = m->shm->watching;

        return how < sizeof(complaints) / sizeof(*complaints) ? complaints[how] : NULL;
}
