/* Tick signals that the recorder itself sends: looks whether the program's thread is on a processor
 * at that moment (or waits for one), and sends it one if so. A thread that sleeps in the kernel is
 * not signalled, so its poll and nanosleep are not interrupted. Used by helper.c for each tick and
 * by perf.c where the kernel sends too few.
 *
 * The CPU clock of another process would be the other way to see it, but the kernel brings that up
 * to date only at its own tick. */
#include "record/tick/signal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/process/descriptors.h"
#include "record/process/proc.h"
#include "record/tick/request.h"

#define OUTSTANDING_MAX_NS                                                                         \
        200000000ull /* a signal not handled for so long may be blocked, or lost in an exec */

static int open_file(pid_t pid, pid_t tid, const char *name)
{
        return ls_fd_above_stdio(ls_proc_open(pid, tid, name, O_RDONLY));
}

static ssize_t read_start(int fd, char buf[128])
{
        ssize_t n = pread(fd, buf, 127, 0);

        buf[n > 0 ? n : 0] = 0;
        return n;
}

/* The system call that the thread is in, or "running": 1 us. Needs the right to trace the
 * thread. */
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

int ls_tick_look_open(struct ls_tick_thread *h)
{
        h->cpu_fd = open_file(h->ticker->pid, h->tid,
                              "schedstat"); /* without it there are only the ticks */
        h->look_fd = open_look(h->ticker->pid, h->tid, &h->look);
        if (h->look_fd < 0)
                return h->look_fd;
        h->outstanding = 0;
        return 0;
}

void ls_tick_look_close(struct ls_tick_thread *h)
{
        if (h->look_fd >= 0)
                close(h->look_fd);
        if (h->cpu_fd >= 0)
                close(h->cpu_fd);
        h->look_fd = h->cpu_fd = -1;
}

uint64_t ls_tick_clock(const struct ls_tick_thread *h, uint64_t *ret_times)
{
        char buf[128], *end = buf;
        uint64_t cpu;

        *buf = 0;
        if (h->cpu_fd >= 0)
                read_start(h->cpu_fd, buf);
        cpu = strtoull(end, &end, 10);
        strtoull(end, &end, 10);        /* waited for one */
        *ret_times = strtoull(end, NULL, 10);
        return cpu;
}

uint32_t ls_tick_handled(const struct ls_tick_thread *h)
{
        return atomic_load(&h->ring->ticks_handled);
}

/* 1 while a signal that we sent may still be waiting to be handled. */
static int is_outstanding(struct ls_tick_thread *h, uint64_t now)
{
        if (h->outstanding &&
            (ls_tick_handled(h) != h->handled || now - h->sent_ns > OUTSTANDING_MAX_NS))
                h->outstanding = 0;
        return h->outstanding;
}

static void announce(struct ls_tick_thread *h, uint32_t sending)
{
        atomic_store(&h->ring->sending, sending);
}

/* Returns 0, or -1 and errno. */
static int send_it(const struct ls_tick_thread *h)
{
        if (h->once)
                return ioctl(h->event_fd, PERF_EVENT_IOC_REFRESH, 1);
        return (int)syscall(SYS_tgkill, h->ticker->pid, h->tid, LS_TICK_SIGNAL);
}

static void send_tick(struct ls_tick_thread *h, uint64_t now)
{
        struct ls_ticker *t = h->ticker;
        uint64_t times;

        h->handled = ls_tick_handled(h);
        /* The look cannot tell a thread that runs from one that waits for its turn; by these the
         * agent can. */
        atomic_store(&h->ring->sent_cpu_ns, ls_tick_clock(h, &times));
        atomic_store(&h->ring->sent_ns, ls_clock_ns(CLOCK_MONOTONIC));
        announce(h, 1);
        if (ls_tick_is_wanted(h)) {
                if (send_it(h) == 0) {
                        h->outstanding = 1;
                        h->sent_ns = now;
                        h->sent++;
                        atomic_fetch_add_explicit(&t->totals.sent, 1, memory_order_relaxed);
                } else if (errno != ESRCH) {    /* else it has just ended */
                        atomic_fetch_add_explicit(&t->totals.failed, 1, memory_order_relaxed);
                }
        }
        announce(h, 0);
}

int ls_tick_try(struct ls_tick_thread *h, uint64_t now)
{
        if (is_outstanding(h, now) || !looks[h->look].is_running(h->look_fd)) {
                atomic_fetch_add_explicit(&h->ticker->totals.skipped, 1, memory_order_relaxed);
                return 0;
        }
        send_tick(h, now);
        return 1;
}
