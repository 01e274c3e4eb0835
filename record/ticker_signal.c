/* Tick signals that the recorder itself sends: looks whether the program's thread is on a processor at that moment (or
 * waits for one), and sends it one if so. A thread that sleeps in the kernel is not signalled, so its poll and nanosleep
 * are not interrupted. Used by ticker_helper.c for each tick and by ticker_perf.c where the kernel sends too few.
 *
 * The CPU clock of another process would be the other way to see it, but the kernel brings that up to date only at its
 * own tick. */
#include "record/ticker_private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OUTSTANDING_MAX_NS 200000000ull         /* a signal not handled for so long may be blocked, or lost in an exec */

static int open_file(pid_t pid, pid_t tid, const char *name)
{
        char path[64];
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return ls_fd_above_stdio(fd < 0 ? -errno : fd);
}

static ssize_t read_start(int fd, char buf[128])
{
        ssize_t n = pread(fd, buf, 127, 0);

        buf[n > 0 ? n : 0] = 0;
        return n;
}

/* The system call that the thread is in, or "running": 1 us. Needs the right to trace the thread. */
static int running_by_syscall(int fd)
{
        char buf[128];

        read_start(fd, buf);
        return *buf == 'r';
}

/* Its state letter, after the name in parentheses: 3 us. */
static int running_by_stat(int fd)
{
        char buf[128];
        const char *p;

        read_start(fd, buf);
        p = strrchr(buf, ')');
        return p && p[1] == ' ' && p[2] == 'R';
}

/* Best first. */
static const struct { const char *file; int (*is_running)(int fd); } looks[] = {
        { "syscall", running_by_syscall },
        { "stat", running_by_stat },
};

/* Opens the first file that can also be read. Returns the descriptor, and which one it is. */
static int open_look(pid_t pid, pid_t tid, unsigned *ret_look)
{
        char buf[128];
        int fd = -ENOENT;

        for (unsigned i = 0; i < sizeof(looks) / sizeof(*looks); i++) {
                fd = open_file(pid, tid, looks[i].file);
                if (fd >= 0 && read_start(fd, buf) > 0) {
                        *ret_look = i;
                        return fd;
                }
                if (fd >= 0) {
                        close(fd);
                        fd = -EACCES;
                }
        }
        return fd;
}

int ls_ticker_helper_probe(pid_t pid)
{
        unsigned look;
        int fd = open_look(pid, pid, &look);

        if (fd < 0)
                return fd;
        close(fd);
        return 0;
}

int ls_tick_look_open(struct ls_ticker *t, pid_t tid)
{
        t->look_fd = open_look(t->pid, tid, &t->look);
        if (t->look_fd < 0)
                return t->look_fd;
        t->tid = tid;
        t->outstanding = 0;
        return 0;
}

void ls_tick_look_close(struct ls_ticker *t)
{
        if (t->look_fd >= 0)
                close(t->look_fd);
        t->look_fd = -1;
}

/* 1 while a signal that we sent may still be waiting to be handled. */
static int is_outstanding(struct ls_ticker *t, uint64_t now)
{
        if (t->outstanding && (atomic_load(&t->shm->ticks_handled) != t->handled ||
                               now - t->sent_ns > OUTSTANDING_MAX_NS))
                t->outstanding = 0;
        return t->outstanding;
}

static void send_tick(struct ls_ticker *t, uint64_t now)
{
        t->handled = atomic_load(&t->shm->ticks_handled);
        atomic_store(&t->shm->sending, 1);
        if (atomic_load(&t->shm->armed)) {
                if (syscall(SYS_tgkill, t->pid, t->tid, LS_TICK_SIGNAL) == 0) {
                        t->outstanding = 1;
                        t->sent_ns = now;
                        atomic_fetch_add_explicit(&t->totals.sent, 1, memory_order_relaxed);
                } else if (errno != ESRCH) {    /* else it has just ended */
                        atomic_fetch_add_explicit(&t->totals.failed, 1, memory_order_relaxed);
                }
        }
        atomic_store(&t->shm->sending, 0);
}

int ls_tick_try(struct ls_ticker *t, uint64_t now)
{
        if (is_outstanding(t, now) || !looks[t->look].is_running(t->look_fd)) {
                atomic_fetch_add_explicit(&t->totals.skipped, 1, memory_order_relaxed);
                return 0;
        }
        send_tick(t, now);
        return 1;
}
