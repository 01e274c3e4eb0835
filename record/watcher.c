/* The watcher's process: see watcher.h. */
#include "record/watcher.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libsample/outside/outside.h"
#include "record/attach_threads.h"
#include "record/descriptors.h"

#define LAST_MS 500                     /* for its last look and what it sends then */

pid_t ls_watcher_start(const struct ls_memory *m, pid_t target, uint64_t interval_ns)
{
        pid_t pid = fork();

        if (pid)
                return pid < 0 ? -errno : pid;
        /* Nobody waits for the end of a pipe because of it. Its signals are all blocked already. */
        close_range(0, ~0u, 0);
        ls_allow_files(64 + 3 * m->agent_rings);
        ls_outside_watch(&(struct ls_outside){
                .shm = m->shm, .ring_size = m->ring_size, .own = m->watchers, .stride = m->ring_stride,
                .rings = m->agent_rings, .interval_ns = interval_ns,
                .pid = target, .outer_id = ls_thread_outer_id,
                .threads = m->watch_threads, .coroutines = m->watch_coroutines ? ls_memory_ring(m, 2 * m->agent_rings) : NULL,
        });
}

static uint64_t time_of(const struct rusage *r)
{
        return (uint64_t)(r->ru_utime.tv_sec + r->ru_stime.tv_sec) * 1000000000u +
               (uint64_t)(r->ru_utime.tv_usec + r->ru_stime.tv_usec) * 1000u;
}

uint64_t ls_watcher_stop(pid_t pid, void (*take)(void *ctx), void *ctx)
{
        const struct timespec ms = { 0, 1000000 };
        struct rusage used = { 0 };

        if (pid <= 0)
                return 0;
        for (int i = 0; i < LAST_MS; i++) {
                if (wait4(pid, NULL, WNOHANG, &used))
                        return time_of(&used);
                nanosleep(&ms, NULL);
                take(ctx);
        }
        kill(pid, SIGKILL);
        while (wait4(pid, NULL, 0, &used) < 0 && errno == EINTR)
                ;
        return time_of(&used);
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
