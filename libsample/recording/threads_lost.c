/* CPU time of a thread that has had no tick: why. Called by threads.c when the thread's ticks end.
 * Normal context. */

#include "libsample/recording/threads_lost.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsample/agent.h"
#include "libsample/handler/sample.h"
#include "libsample/recording/notice.h"

#define SAID_MOST  8
#define BLOCKED_NS                                                                                 \
        UINT64_C(                                                                                  \
                20000000) /* for less than that any thread may block, such as one that waits for a lock of ours */

/* A file of the thread in /proc, as a string. */
static void read_of(const struct ls_thread *t, const char *name, char *buf, size_t size)
{
        char path[64];
        ssize_t n;
        int fd;

        snprintf(path, sizeof path, "/proc/self/task/%d/%s", t->tid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? 0 : read(fd, buf, size - 1);
        if (fd >= 0)
                close(fd);
        buf[n > 0 ? n : 0] = 0;
}

static int blocks_ticks(const struct ls_thread *t)
{
        char status[2048], *mask;

        read_of(t, "status", status, sizeof status);
        mask = strstr(status, "\nSigBlk:\t");
        return mask && (strtoull(mask + 9, NULL, 16) >> (LS_TICK_SIGNAL - 1) & 1);
}

void ls_thread_lose_rest(const struct ls_thread *t, uint64_t ticks, int own_blocks)
{
        uint64_t ns = ticks * ls_agent.shm->interval_ns;
        static unsigned said;
        char name[32];

        if (ns < BLOCKED_NS || !(t == ls_thread_own ? own_blocks : blocks_ticks(t))) {
                ls_lose(LS_LOSS_NO_SAFE_POINT, ticks);
                return;
        }
        ls_lose(LS_LOSS_SIGNAL_BLOCKED, ticks);
        if (said++ >= SAID_MOST)
                return;
        read_of(t, "comm", name, sizeof name);
        name[strcspn(name, "\n")] = 0;
        ls_agent_notice("thread %d (%s) blocks signal %d (SIGSTKFLT), with which samples are "
                        "taken: %llu ms of it were not sampled",
                        t->tid, name, LS_TICK_SIGNAL, (unsigned long long)(ns / 1000000));
}
