/* A recording: its trace is opened, takes what comes, and is ended. See recording.h. */
#include "record/recording.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/control_open.h"
#include "record/flight.h"
#include "record/pause.h"
#include "record/processes.h"
#include "record/rotate.h"
#include "record/session.h"
#include "record/status.h"
#include "record/tick/perf.h"
#include "record/tick/signal.h"
#include "record/totals.h"
#include "record/worker/worker.h"

#define SECOND_NS 1000000000ull
#define AWAY_NS (365ull * 86400 * 1000000000)

int ls_recording_open(struct ls_session *s)
{
        s->workers = ls_workers_new(ls_status_notice, s);
        if (s->workers && ls_control_open(&s->control, s->o->control) == 0)
                s->trace_fd = ls_trace_file_open(s->o->output, &s->trace_file);
        return s->trace_fd < 0 ? -1 : 0;
}

int ls_recording_timer(struct ls_session *s, pid_t pid)
{
        int asked = s->o->timer;
        int perf = asked < 0 || asked == LS_TIMER_PERF ? ls_ticker_perf_probe(pid) : -EINVAL;
        int helper = asked < 0 || asked == LS_TIMER_HELPER ? ls_ticker_helper_probe(pid) : -EINVAL;

        s->timer = perf == 0 ? LS_TIMER_PERF : helper == 0 ? LS_TIMER_HELPER : LS_TIMER_CPUTIME;
        if (asked >= 0 && asked != (int)s->timer) {
                ls_error("--timer %s: %s; leave it out for the best that works, or see: luasample doctor",
                         ls_timer_names[asked], strerror(asked == LS_TIMER_PERF ? -perf : -helper));
                return -EPERM;
        }
        return 0;
}

/* The program's name in the trace: its command line, as of its children. */
static void name_first(struct ls_session *s, struct ls_target *t)
{
        size_t n = 0;

        for (const char **a = s->o->command; *a && n < sizeof(t->name) && (!s->o->no_args || !n); a++)
                n += (size_t)snprintf(t->name + n, sizeof(t->name) - n, n ? " %s" : "%s", *a);
        ls_target_name(t, t->name);
}

int ls_recording_begin(struct ls_session *s, struct ls_target *first)
{
        int err = ls_flight_begin(s);

        if (err == 0)
                err = ls_trace_writer_open(s->trace_fd, s->o->interval_ns, &s->writer);
        if (err < 0) {
                ls_error("cannot write %s: %s; give another file with -o",
                         ls_trace_file_name(s->o->output), strerror(-err));
                return err;
        }
        s->start_ns = ls_session_clock(CLOCK_MONOTONIC);
        err = ls_processes_begin(s, first, s->pid);
        if (err < 0) {
                ls_error("cannot record: %s", strerror(-err));
                return err;
        }
        name_first(s, first);
        s->recording = 1;
        s->status_ns = s->start_ns;
        s->next_second_ns = s->start_ns + SECOND_NS;
        s->next_minute_ns = s->start_ns + 60 * SECOND_NS;
        s->children = (struct ls_children){
                .notice = ls_status_say, .ctx = s, .workers = s->workers, .cwd = s->cwd,
                .is_recorded = ls_processes_has,
                .following = s->registry.fd >= 0 || (!s->launch.pid && !s->o->no_children) };
        err = ls_rotate_begin(s);
        if (err < 0)
                return err;
        ls_pause_begin(s);
        ls_totals_start(s);
        err = ls_trace_flush(s->writer, s->start_ns, 1);
        if (err < 0)
                ls_error("cannot write %s: %s; give another file with -o",
                         ls_trace_file_name(s->o->output), strerror(-err));
        return err;
}

static void flush_trace(struct ls_session *s, uint64_t now, int force)
{
        int err = ls_trace_flush(s->writer, now, force);

        if (err < 0 && !s->write_error)
                s->write_error = err;
}

static void each_second(struct ls_session *s, uint64_t now)
{
        s->next_second_ns = now + SECOND_NS;
        ls_totals_second(s, now);
        ls_workers_second(s->workers);
        if (!s->exited)
                ls_children_walk(&s->children, s->pid);
        ls_status_line(s, now);
        if (now >= s->next_minute_ns) {
                s->next_minute_ns = now + 60 * SECOND_NS;
                ls_totals_clocks(s);
                ls_totals_write(s);
        }
}

void ls_recording_away(struct ls_session *s, int away)
{
        uint64_t until_ns = ls_session_clock(CLOCK_MONOTONIC) + (away ? AWAY_NS : 0);

        for (unsigned i = 0; i < s->n_targets; i++)
                atomic_store(&s->targets[i]->memory.shm->heartbeat_ns, until_ns);
}

void ls_recording_work(struct ls_session *s, int at_once)
{
        uint64_t now = ls_session_clock(CLOCK_MONOTONIC), fills;

        while (read(s->full_fd, &fills, sizeof(fills)) == sizeof(fills))
                s->full_ns = now;
        ls_processes_look(s, now);
        ls_pause_look(s, now);
        for (unsigned i = 0; i < s->n_targets; i++) {
                ls_target_work(s->targets[i], now, at_once);
                ls_children_poll(&s->children, s->targets[i]->memory.shm, s->targets[i]->translate.cfg.worker);
        }
        if (now >= s->next_second_ns)
                each_second(s, now);
        flush_trace(s, now, 0);
        ls_rotate_look(s, now);
        ls_flight_look(s, now);
}

#define FULL_QUIET_NS 1000000ull        /* between two looks at rings that never stop to fill */

uint64_t ls_recording_wait_ns(const struct ls_session *s, uint64_t now, struct pollfd *full)
{
        uint64_t due = s->next_second_ns;

        full->events = POLLIN;
        full->fd = s->recording ? s->full_fd : -1;
        if (s->full_ns && now - s->full_ns < FULL_QUIET_NS) {
                full->fd = -1;
                due = s->full_ns + FULL_QUIET_NS;
        }
        if (s->pause.until_ns && s->pause.until_ns < due)
                due = s->pause.until_ns;
        for (unsigned i = 0; i < s->n_targets; i++)
                if (!s->targets[i]->ended && s->targets[i]->due_ns < due)
                        due = s->targets[i]->due_ns;
        return due > now ? due - now : 0;
}

void ls_recording_end(struct ls_session *s)
{
        struct stat st;
        int err;

        s->end_ns = ls_session_clock(CLOCK_MONOTONIC);
        ls_processes_finish(s);
        for (unsigned i = 0; i < s->n_targets; i++)
                ls_children_poll(&s->children, s->targets[i]->memory.shm, s->targets[i]->translate.cfg.worker);
        if (ls_watcher_complaint(&s->targets[0]->memory))
                ls_status_say(s, ls_watcher_complaint(&s->targets[0]->memory));
        err = ls_flight_finish(s);
        if (err < 0 && !s->write_error)
                s->write_error = err;
        ls_totals_clocks(s);
        ls_totals_write(s);
        flush_trace(s, s->end_ns, 1);
        s->dropped_chunks = ls_trace_dropped(s->writer);
        s->final_size = ls_trace_size(s->writer);
        err = ls_trace_writer_close(s->writer);
        s->writer = NULL;
        if (err < 0 && !s->write_error)
                s->write_error = err;
        /* With what closing added: the repeated definitions and the index. */
        if (fstat(s->trace_fd, &st) == 0 && S_ISREG(st.st_mode))
                s->final_size = (uint64_t)st.st_size;
        close(s->trace_fd);
        s->trace_fd = -1;
        s->recording = 0;
        ls_control_done(&s->control);
        ls_status_summary(s);
}
