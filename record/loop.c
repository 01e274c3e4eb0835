/* The loop of a recording, whatever its processes are: see loop.h. */
#include "record/loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "record/attach/stop.h"
#include "record/attached.h"
#include "record/control.h"
#include "record/flight.h"
#include "record/launched.h"
#include "record/pause.h"
#include "record/process/descriptors.h"
#include "record/processes.h"
#include "record/recording.h"
#include "record/rotate.h"
#include "record/session.h"
#include "record/signals.h"
#include "record/worker/worker.h"

#define SECOND_NS 1000000000ull

/* The program has ended, and what it has started goes on. */
static void say_who_is_left(struct ls_session *s)
{
        unsigned n = ls_processes_left(s);

        if (!n || s->said_who_is_left)
                return;
        s->said_who_is_left = 1;
        if (!s->o->quiet && !s->stopping && !s->o->no_wait)
                fprintf(stderr,
                        "[ luasample: the program has ended; %u process%s that it started %s still "
                        "recorded: Ctrl-C "
                        "ends the recording ]\n",
                        n, n == 1 ? "" : "es", n == 1 ? "is" : "are");
}

/* A child that was forked just before the program ended may not have run yet; one that does not
 * come is given up. */
#define COMING_NS SECOND_NS
#define COMING_LOOK_NS 2000000ull

static int child_is_coming(const struct ls_session *s)
{
        return ls_processes_come(s) && ls_session_clock(CLOCK_MONOTONIC) - s->exited_ns < COMING_NS;
}

/* As long as a program that we have started runs, and as long as there is something to record. */
static int goes_on(struct ls_session *s)
{
        if (s->launch.pid && !s->exited)
                return 1;
        if (!s->recording || s->stopping || (s->launch.pid && s->o->no_wait))
                return 0;
        if (ls_processes_left(s) || s->forked.n || child_is_coming(s))
                return 1;
        /* One that was coming a moment ago is there by now. */
        ls_processes_look(s, ls_session_clock(CLOCK_MONOTONIC));
        return ls_processes_left(s) || s->forked.n;
}

static uint64_t wait_ns(const struct ls_session *s, uint64_t end)
{
        uint64_t now = ls_session_clock(CLOCK_MONOTONIC), wait = ls_recording_wait_ns(s, now);
        uint64_t due = ls_attach_children_due(&s->forked), first = due < end ? due : end;

        if (now >= first)
                return 0;
        if (wait > first - now)
                wait = first - now;
        if (s->exited && wait > COMING_LOOK_NS && !ls_processes_left(s))
                wait = COMING_LOOK_NS;
        return wait;
}

static void wait_for_something(struct ls_session *s, uint64_t end)
{
        struct pollfd p[LS_TARGETS_MAX + 3 + LS_CONTROL_FDS] = {
                { .fd = s->signal_fd, .events = POLLIN },
                { .fd = s->recording ? ls_out_fd(s->out) : -1, .events = POLLIN }
        };
        uint64_t wait = wait_ns(s, end);
        const struct timespec t = { (time_t)(wait / SECOND_NS), (long)(wait % SECOND_NS) };
        unsigned n = s->recording ? ls_processes_poll(s, p + 2) : 0;

        if (s->recording)
                n += ls_control_poll(&s->control, p + 2 + n);
        ppoll(p, n + 2, s->recording ? &t : NULL, NULL);
}

static void end_recording(struct ls_session *s)
{
        if (!s->launch.pid)
                ls_attached_say_lost(s);
        ls_recording_end(s);
}

static void turn(struct ls_session *s)
{
        if (s->exited && !s->reaped) {
                ls_processes_look(s, ls_session_clock(CLOCK_MONOTONIC));
                ls_launched_reap(s);
        } else {
                ls_recording_work(s, 0);
        }
        if (s->reaped)
                say_who_is_left(s);
        ls_control_handle(s);
        if (s->control.stop || s->write_error == -EOWNERDEAD ||
            ls_session_clock(CLOCK_MONOTONIC) >= ls_pause_end(s))
                end_recording(s);
        else if (!s->stopping)
                ls_attached_next(s);
}

/* Until all has ended that is waited for; the recording may end before. */
static void main_loop(struct ls_session *s)
{
        while (goes_on(s)) {
                wait_for_something(s, ls_pause_end(s));
                ls_stop_let_go();
                ls_signals_handle(s);
                if (s->recording)
                        turn(s);
        }
        if (s->recording)
                end_recording(s);
        ls_launched_reap(s);
}

static void init(struct ls_session *s, const struct ls_record_options *o)
{
        s->o = o;
        s->trace_fd = s->signal_fd = s->flight.out_fd = s->registry.fd = s->registry.bell_fd = -1;
        /* Without it we look when we think fit. */
        s->full_fd = ls_fd_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        s->terminal = !o->quiet && isatty(STDERR_FILENO);
}

static void done(struct ls_session *s)
{
        const int fds[] = { s->trace_fd, s->full_fd, s->signal_fd };

        ls_control_done(&s->control);
        ls_rotate_done(s);
        ls_flight_done(s);
        ls_processes_done(s);
        ls_out_end(s->out);
        ls_workers_free(s->workers);
        ls_workers_free(s->lent);
        for (unsigned i = 0; i < s->n_notices; i++)
                free(s->notices[i]);
        for (unsigned i = 0; i < sizeof(fds) / sizeof(*fds); i++)
                if (fds[i] >= 0)
                        close(fds[i]);
}

int ls_loop_run(const struct ls_record_options *o)
{
        static struct ls_session session;
        struct ls_session *s = &session;
        int status;

        init(s, o);
        status = ls_record_attaches(o) ? ls_attached_begin(s) : ls_launched_begin(s);
        if (status < 0) {
                main_loop(s);
                status = s->exit_status;
        }
        done(s);
        return status;
}
