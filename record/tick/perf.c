/* The perf timer: for each thread a software event of the kernel that counts its CPU time and sends
 * the tick's signal. It is opened here, outside the program, so that the program has no descriptor
 * of it and it ends with the recorder.
 *
 * An unprivileged event may not look at the kernel: a tick that falls due in there is skipped. A
 * thread that is mostly in the kernel would get one in seven, so a look each 40 ms compares the
 * ticks with its CPU time, and while they are too few we send what is missing, as the helper timer
 * does. While no thread of the program runs the looks become fewer.
 *
 * Each time the thread gets or leaves a processor the kernel sets the timer of its event, or takes
 * it back. In a virtual machine both leave the machine, some 10 us: a server that leaves it for
 * each request, to sleep or for its client, paid 10 % of its CPU time. There the event of a thread
 * that leaves its processor twice as often as it is ticked is turned off, and we send all ticks.
 *
 * A signal of ours that comes when its thread is about to sleep ends a poll with EINTR. In a
 * program that we have started the agent keeps it away; in one that was attached to nothing is
 * interposed. There the event is turned off wherever we send, and let go for each tick, to come
 * once: a little later, in user code. */
#include "record/tick/perf.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/process/descriptors.h"
#include "record/process/proc.h"
#include "record/tick/helper.h"
#include "record/tick/request.h"
#include "record/tick/signal.h"

#define WINDOW_NS 10000000ull /* how often the event is judged while it is found wanting */
#define CALM_NS 40000000ull             /* and while it is not */
#define CALM_MOST_NS 640000000ull /* and while nothing has run since the last look, for long */
#define NEW_NS                                                                                     \
        50000000ull /* a thread that was just armed may not live that long: it is judged early */
#define PAUSE_MIN_NS 1000000ull         /* between own ticks: each costs the recorder some 20 us */
#define ONCE_NS 20000u                  /* until an event that is let go comes */

static int open_event(pid_t tid, uint64_t period_ns)
{
        struct perf_event_attr attr;
        int fd;

        memset(&attr, 0, sizeof(attr));
        attr.size = sizeof(attr);
        attr.type = PERF_TYPE_SOFTWARE;
        attr.config = PERF_COUNT_SW_TASK_CLOCK;
        attr.sample_period = period_ns;
        attr.wakeup_events = 1;
        attr.disabled = 1;
        attr.exclude_kernel = 1;
        attr.exclude_hv = 1;
        attr.remove_on_exec = 1;
        fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd < 0 && errno == EINVAL) {        /* before Linux 5.13; the handshake before exec is
                                                 * enough */
                attr.remove_on_exec = 0;
                fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
        }
        return ls_fd_above_stdio(fd < 0 ? -errno : fd);
}

int ls_ticker_perf_probe(pid_t pid)
{
        int fd = open_event(pid, 1000000);

        if (fd < 0)
                return fd;
        close(fd);
        return 0;
}

int ls_ticker_is_virtual(void)
{
        unsigned a, b, c, d;

        return __get_cpuid(1, &a, &b, &c, &d) && c >> 31;
}

static void perf_disarm(struct ls_tick_thread *h)
{
        if (h->event_fd >= 0) {
                ioctl(h->event_fd, PERF_EVENT_IOC_DISABLE, 0);
                close(h->event_fd);
        }
        h->event_fd = -1;
        ls_tick_look_close(h);
}

static void begin_window(struct ls_tick_thread *h, uint64_t now)
{
        h->window_ns = now;
        h->window_cpu_ns = ls_tick_clock(h, &h->window_times);
        h->window_sent = h->sent;
        h->window_handled = ls_tick_handled(h);
}

static int enable(struct ls_tick_thread *h)
{
        struct f_owner_ex owner = { F_OWNER_TID, h->tid };

        if (fcntl(h->event_fd, F_SETFL, O_ASYNC | O_NONBLOCK) < 0 ||
            fcntl(h->event_fd, F_SETSIG, LS_TICK_SIGNAL) < 0 ||
            fcntl(h->event_fd, F_SETOWN_EX, &owner) < 0 ||
            ioctl(h->event_fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
                return -errno;
        return 0;
}

static int perf_arm(struct ls_ticker *t, struct ls_tick_thread *h)
{
        int err;

        if (!ls_proc_has_task(t->pid, h->tid))
                return -ESRCH;
        h->event_fd = open_event(h->tid, t->interval_ns);
        if (h->event_fd < 0)
                return h->event_fd;
        /* Its number may have gone to a stranger's thread meanwhile, which a tick would kill. */
        err = ls_proc_has_task(t->pid, h->tid) ? enable(h) : -ESRCH;
        if (err < 0) {
                perf_disarm(h);
                return err;
        }
        ls_tick_look_open(h);           /* without it there is only the event */
        h->starved = h->off = 0;
        h->armed_ns = ls_clock_ns(CLOCK_MONOTONIC);
        begin_window(h, h->armed_ns);
        return 0;
}

/* 1 when a system call of the program is not safe from a signal of ours. */
static int is_bare(const struct ls_ticker *t)
{
        return atomic_load(&t->shm->agent_tid) != 0;
}

/* Turns the event off or on again. */
static void set_off(struct ls_tick_thread *h, int off)
{
        struct ls_ticker *t = h->ticker;
        uint64_t period = off ? ONCE_NS : t->interval_ns;

        if (h->off == off || ioctl(h->event_fd, PERF_EVENT_IOC_DISABLE, 0) < 0)
                return;
        h->once = off && is_bare(t);
        if (is_bare(t))
                ioctl(h->event_fd, PERF_EVENT_IOC_PERIOD, &period);
        if (!off)
                ioctl(h->event_fd, PERF_EVENT_IOC_ENABLE, 0);
        h->off = off;
        h->starved = 0;
        if (off)
                ls_tick_grid_begin(t);
}

/* The event brings too few: we send what is missing, or all. */
static void set_starved(struct ls_tick_thread *h, int starved)
{
        if (starved && is_bare(h->ticker))
                set_off(h, 1);
        h->starved = starved;
}

/* Compares the ticks of the event with the CPU time of the window, and begins the next one. Returns
 * 1 when the thread has run. */
static int judge(const struct ls_ticker *t, struct ls_tick_thread *h, uint64_t now)
{
        uint32_t handled = ls_tick_handled(h) - h->window_handled;
        uint64_t times, own = h->sent - h->window_sent,
                        cpu = ls_tick_clock(h, &times) - h->window_cpu_ns;
        uint64_t due = cpu / t->interval_ns, came = handled > own ? handled - own : 0;

        times -= h->window_times;
        /* On a busy machine a thread that never sleeps loses its processor once a ms or so: the
         * event's ticks are the better. */
        if (h->off)
                set_off(h, h->starved || (due >= 2 && times >= due + due / 2));
        else if (t->is_virtual && due >= 4 && times > 2 * due)
                set_off(h, 1);
        /* A long interval leaves little to compare, and costs little. */
        else if (t->interval_ns >= WINDOW_NS / 2)
                set_starved(h, 1);
        else if (due >= 4)
                set_starved(h, came < due / 2);
        begin_window(h, now);
        return cpu != 0;
}

/* Returns 1 when the thread has run, or that is not known. */
static int look_after(const struct ls_ticker *t, struct ls_tick_thread *h, uint64_t now)
{
        uint32_t handled = ls_tick_handled(h);

        if (h->off ||
            (h->starved && handled == h->last_handled && now - h->sent_ns >= t->interval_ns))
                ls_tick_try(h, now);
        h->last_handled = handled;
        return now - h->window_ns < (h->off ? CALM_NS : WINDOW_NS) || judge(t, h, now);
}

/* How long nothing has to be done; 0: the grid's ticks are to be sent. */
static uint64_t calm(const struct ls_ticker *t, uint64_t now)
{
        uint64_t pause = t->calm_ns > CALM_NS ? t->calm_ns : CALM_NS;
        int starved = 0;

        for (unsigned i = 0; i < t->used; i++) {
                const struct ls_tick_thread *h = &t->threads[i];

                if (h->armed && h->off)
                        return 0;
                starved |= h->armed && h->starved;
                if (h->armed && now - h->armed_ns < NEW_NS)
                        pause = WINDOW_NS;
        }
        if (starved) {
                pause = t->interval_ns > PAUSE_MIN_NS ? t->interval_ns : PAUSE_MIN_NS;
                pause = pause < LS_TICKER_IDLE_NS ? pause : LS_TICKER_IDLE_NS;
        }
        return pause;
}

static void perf_wait(struct ls_ticker *t, uint32_t request)
{
        uint64_t now = ls_clock_ns(CLOCK_MONOTONIC), pause = calm(t, now);
        int ran = 0;

        if (pause)
                ls_ticker_sleep(t, request, pause);
        else if (!ls_tick_grid_wait(t, request))
                return;
        if (atomic_load(&t->shm->request) != request)
                return;
        now = ls_clock_ns(CLOCK_MONOTONIC);
        for (unsigned i = 0; i < t->used; i++)
                if (t->threads[i].armed && t->threads[i].look_fd >= 0)
                        ran |= look_after(t, &t->threads[i], now);
        t->calm_ns = ran || !pause ? CALM_NS : 2 * pause < CALM_MOST_NS ? 2 * pause : CALM_MOST_NS;
}

const struct ls_tick_source ls_tick_source_perf = {
        .name = "perf",
        .arm = perf_arm,
        .disarm = perf_disarm,
        .wait = perf_wait,
};
